"""What a broker tells of its partitions, topics and coordinators."""

from pathlib import Path

from support.batches import batch
from support.brokers import LocalBroker, local_broker
from support.http import http_get, samples
from twinlog.wire.messages.groups import FIND_COORDINATOR, FindCoordinatorRequest
from twinlog.wire.messages.topics import (
    CREATE_TOPICS,
    DELETE_TOPICS,
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    TopicConfig,
    TopicToDelete,
)

TELLING = {"monitoring.listener": "http://127.0.0.1:0", "offsets.topic.num.partitions": "4"}
REPLICAS = "kafka_server_replicamanager"


async def metrics_of(broker: LocalBroker) -> dict[str, float]:
    listener = broker.server.metrics_listener
    assert listener is not None
    return samples((await http_get(listener.port, "/metrics")).body)


async def test_partitions_that_refuse_acks_all_are_told(tmp_path: Path) -> None:
    async with local_broker(tmp_path, TELLING) as broker:
        config = (TopicConfig(name="min.insync.replicas", value="2"),)
        topic = CreatableTopic(name="t", num_partitions=3, replication_factor=1, configs=config)
        await broker.ask(CREATE_TOPICS, CreateTopicsRequest(topics=(topic,), timeout_ms=60_000))
        await broker.make_topic("u")
        found = await metrics_of(broker)
        assert found[f"{REPLICAS}_partitioncount"] == found[f"{REPLICAS}_leadercount"] == 4
        assert found[f"{REPLICAS}_underminisrpartitioncount"] == 3
        assert found[f"{REPLICAS}_atminisrpartitioncount"] == 1
        assert found[f"{REPLICAS}_underreplicatedpartitions"] == 0
        assert found[f"{REPLICAS}_offlinereplicacount"] == 0
        assert found["kafka_controller_kafkacontroller_globaltopiccount"] == 2
        assert found["kafka_controller_kafkacontroller_globalpartitioncount"] == 4
        assert found["kafka_controller_kafkacontroller_activecontrollercount"] == 1


async def test_a_deleted_topic_has_no_series_and_stays_in_the_sum(tmp_path: Path) -> None:
    async with local_broker(tmp_path, TELLING) as broker:
        await broker.make_topic("t")
        await broker.produce("t", batch(3))
        gone = DeleteTopicsRequest(topics=(TopicToDelete(name="t"),), timeout_ms=60_000)
        await broker.ask(DELETE_TOPICS, gone)
        found = await metrics_of(broker)
        assert found["kafka_server_brokertopicmetrics_messagesin_total"] == 3
        assert not any('topic="t"' in series for series in found)


async def test_coordinators_tell_what_they_have_loaded(tmp_path: Path) -> None:
    async with local_broker(tmp_path, TELLING) as broker:
        state = "kafka_server_group_coordinator_metrics_num_partitions"
        await broker.ask(FIND_COORDINATOR, FindCoordinatorRequest(key="g"), 1)
        found = await metrics_of(broker)
        assert found[f'{state}{{state="active"}}'] + found[f'{state}{{state="loading"}}'] == 4


async def test_connections_are_told_by_listener(tmp_path: Path) -> None:
    async with local_broker(tmp_path, TELLING) as broker:
        labels = '{listener="PLAINTEXT",networkProcessor="0"}'
        found = await metrics_of(broker)
        assert found[f"kafka_server_socket_server_metrics_connection_count{labels}"] == 1
        assert found['twinlog_listener_refused_connections_total{listener="PLAINTEXT"}'] == 0
