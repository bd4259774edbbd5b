"""A source restarted broker by broker, and one whose partitions move, are followed throughout."""

import pytest

from support.kafka_cluster import KafkaCluster
from support.log_bytes import batches_of
from support.mirror import Mirror, Partition, producing
from support.transacting import transacting
from support.twinlog_process import TwinlogProcess
from support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.cluster, pytest.mark.slow]

KEEPING = {"min.insync.replicas": "2"}


def _mirrored(
    trio: KafkaCluster, twinlog: TwinlogProcess, topics: list[str]
) -> tuple[Mirror, list[Partition]]:
    for topic in topics:
        trio.create_topic(topic, partitions=3, config=KEEPING)
    mirror = Mirror(twinlog, trio, "rolling")
    mirror.create()
    mirror.start(topics)
    return mirror, [(topic, partition) for topic in topics for partition in range(3)]


def _assert_nothing_happened(mirror: Mirror, partitions: list[Partition]) -> None:
    """Fail unless all arrived, once, and nobody was told of more than moves of leaders."""
    mirror.await_caught_up(partitions)
    mirror.await_states(partitions, "MIRRORING")
    mirror.assert_equal(partitions)
    assert not [row for row in mirror.describe() if row["losses"]]
    for word in ("FAILED", "ULE_RECOVERY"):
        assert not mirror.twinlog.server.has_said(f"to={word}"), word


def _led_by(trio: KafkaCluster, partitions: list[Partition]) -> set[int]:
    return {trio.leader_of(of) for of in partitions}


def _await_nothing_at(trio: KafkaCluster, number: int, partitions: list[Partition]) -> None:
    broker = trio.brokers[number]

    def is_empty() -> bool:
        return not any(broker.partition_folder(*of).exists() for of in partitions)

    wait_until(is_empty, f"broker {number} has given everything away", timeout_s=120)


def test_a_rolling_restart_of_every_broker_loses_and_repeats_nothing(
    trio: KafkaCluster, twinlog: TwinlogProcess, fresh: str
) -> None:
    topics = [fresh, f"{fresh}-transactions"]
    mirror, partitions = _mirrored(trio, twinlog, topics)
    with producing(trio, topics), transacting(trio, topics[1], partitions=3):
        mirror.await_more(partitions)
        for number, broker in trio.brokers.items():
            broker.stop()
            mirror.await_more(partitions)
            assert number not in _led_by(trio, partitions)
            broker.start()
            trio.await_whole(topics)
        trio.elect(partitions)
        wait_until(lambda: _led_by(trio, partitions) == set(trio.brokers), "each leads again")
        mirror.await_more(partitions)
    _assert_nothing_happened(mirror, partitions)
    epochs = {batch.leader_epoch for batch in batches_of(twinlog.partition_folder(fresh, 0))}
    assert len(epochs) > 2, f"the moves made new epochs: {epochs}"


def test_partitions_that_move_from_broker_to_broker_are_followed_to_each(
    trio: KafkaCluster, twinlog: TwinlogProcess, fresh: str
) -> None:
    mirror, partitions = _mirrored(trio, twinlog, [fresh])
    with producing(trio, [fresh]):
        mirror.await_more(partitions)
        for number in trio.brokers:
            others = [other for other in trio.brokers if other != number]
            trio.move(dict.fromkeys(partitions, others))
            _await_nothing_at(trio, number, partitions)
            mirror.await_more(partitions)
        trio.move(dict.fromkeys(partitions, tuple(trio.brokers)))
        trio.await_whole([fresh])
        mirror.await_more(partitions)
    _assert_nothing_happened(mirror, partitions)
