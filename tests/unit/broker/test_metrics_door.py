"""A broker is asked for its metrics over HTTP."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from support.batches import batch
from support.brokers import LocalBroker, local_broker
from support.http import http_get, samples
from twinlog.model.errors import ErrorCode, SettingsError
from twinlog.telemetry.families import CHAPTERS
from twinlog.wire.messages.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic

TELLING = {"monitoring.listener": "http://127.0.0.1:0"}


def port_of(broker: LocalBroker) -> int:
    listener = broker.server.metrics_listener
    assert listener is not None
    return listener.port


async def metrics_of(broker: LocalBroker) -> dict[str, float]:
    answer = await http_get(port_of(broker), "/metrics")
    assert answer.status == 200, answer
    return samples(answer.body)


async def test_what_went_in_and_out_is_told_by_topic_and_as_a_sum(tmp_path: Path) -> None:
    async with local_broker(tmp_path, TELLING) as broker:
        await broker.make_topic("t")
        sent = batch(3)
        await broker.produce("t", sent)
        wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        topics = (FetchTopic(topic="t", partitions=(wanted,)),)
        await broker.ask(
            FETCH, FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, topics=topics), 12
        )
        found = await metrics_of(broker)
        for labels in ("", '{topic="t"}'):
            assert found[f"kafka_server_brokertopicmetrics_messagesin_total{labels}"] == 3
            assert found[f"kafka_server_brokertopicmetrics_bytesin_total{labels}"] == len(sent)
            assert found[f"kafka_server_brokertopicmetrics_bytesout_total{labels}"] == len(sent)
            assert found[f"kafka_server_brokertopicmetrics_totalproducerequests_total{labels}"] == 1
            assert found[f"kafka_server_brokertopicmetrics_totalfetchrequests_total{labels}"] == 1
        asked = 'kafka_network_requestmetrics_requests_total{request="Produce",version="12"}'
        assert found[asked] == 1
        assert found['kafka_log_log_logendoffset{topic="t",partition="0"}'] == 3
        assert found["kafka_server_replicamanager_partitioncount"] == 1
        assert found["kafka_server_kafkaserver_brokerstate"] == 3


async def test_what_failed_is_told_with_its_error(tmp_path: Path) -> None:
    none = {**TELLING, "auto.create.topics.enable": "false"}
    async with local_broker(tmp_path, none) as broker:
        answer = await broker.produce("nowhere", batch(1))
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        topics = (FetchTopic(topic="nowhere", partitions=(wanted,)),)
        await broker.ask(FETCH, FetchRequest(max_wait_ms=0, min_bytes=1, topics=topics), 12)
        await broker.make_topic("nowhere")
        found = await metrics_of(broker)
        errors = "kafka_network_requestmetrics_errors_total"
        for request in ("Produce", "Fetch", "Metadata"):
            series = f'{errors}{{request="{request}",error="UNKNOWN_TOPIC_OR_PARTITION"}}'
            assert found[series] == 1
        assert found["kafka_server_brokertopicmetrics_failedproducerequests_total"] == 1
        assert found["kafka_server_brokertopicmetrics_failedfetchrequests_total"] == 1


async def test_what_was_too_large_is_told_in_bytes(tmp_path: Path) -> None:
    small = {**TELLING, "message.max.bytes": "100"}
    async with local_broker(tmp_path, small) as broker:
        await broker.make_topic("t")
        sent = batch(20)
        answer = await broker.produce("t", sent)
        assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
        found = await metrics_of(broker)
        rejected = 'kafka_server_brokertopicmetrics_bytesrejected_total{topic="t"}'
        assert found[rejected] == len(sent)
        assert found['kafka_server_brokertopicmetrics_failedproducerequests_total{topic="t"}'] == 1


async def test_with_many_partitions_there_are_sums_only(tmp_path: Path) -> None:
    few = {**TELLING, "monitoring.partition.series.max": "1", "num.partitions": "2"}
    async with local_broker(tmp_path, few) as broker:
        await broker.make_topic("a")
        found = await metrics_of(broker)
        assert found["twinlog_metrics_partitions_left_out"] == 2
        assert not any(series.startswith("kafka_log_log_") for series in found)
        assert 'kafka_server_brokertopicmetrics_bytesin_total{topic="a"}' in found


async def test_every_series_belongs_to_a_declared_family(tmp_path: Path) -> None:
    declared = {family.name for _, families in CHAPTERS for family in families}
    async with local_broker(tmp_path, TELLING) as broker:
        assert {series.partition("{")[0] for series in await metrics_of(broker)} <= declared


async def test_health_is_told_while_the_broker_serves(tmp_path: Path) -> None:
    async with local_broker(tmp_path, TELLING) as broker:
        assert (await http_get(port_of(broker), "/healthz")).status == 200
        broker.server.stop()
        assert (await http_get(port_of(broker), "/healthz")).status == 503


async def test_by_default_nothing_listens(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        assert broker.server.metrics_listener is None


async def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(SettingsError, match=f"monitoring.listener: cannot.*{address}"):
            async with local_broker(tmp_path, {"monitoring.listener": f"http://{address}"}):
                pass


@pytest.mark.slow
def test_a_broker_without_metrics_does_not_load_the_http_library() -> None:
    code = "import sys, twinlog.broker.server; sys.exit('aiohttp' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
