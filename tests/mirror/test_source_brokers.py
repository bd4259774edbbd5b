"""A source of several brokers: each is fetched from, and a leader that moves is followed."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.cluster_admin import admin_of, create_topic
from support.java_tools import main_class
from support.jvm import run_tool
from support.kafka_install import KAFKA_4, require
from support.kafka_node import KafkaNode
from support.log_bytes import batches_of
from support.mirror import Mirror, producing
from support.twinlog_process import TwinlogProcess
from support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.cluster, pytest.mark.slow]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two brokers of one Kafka cluster; the first is its controller too."""

    first: KafkaNode
    second: KafkaNode

    @property
    def bootstrap(self) -> str:
        """Where clients find them."""
        return f"{self.first.bootstrap},{self.second.bootstrap}"

    def partition_folder(self, topic: str, partition: int) -> Path:
        """Where the first keeps that partition; it is never the one that is killed."""
        return self.first.partition_folder(topic, partition)

    def leaders(self, topic: str) -> set[int]:
        """The brokers that lead that topic's partitions."""
        admin = admin_of(self.first)
        partitions = admin.list_topics(topic, timeout=60).topics[topic].partitions
        return {partition.leader for partition in partitions.values()}

    def in_sync(self, topic: str) -> int:
        """The smallest count of in-sync replicas among that topic's partitions."""
        admin = admin_of(self.first)
        partitions = admin.list_topics(topic, timeout=60).topics[topic].partitions
        return min(len(partition.isrs) for partition in partitions.values())


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """Run both."""
    require(KAFKA_4)
    first = KafkaNode(tmp_path / "first", node_id=1)
    try:
        first.start()
        second = KafkaNode(tmp_path / "second", node_id=2, joins=first)
        try:
            second.start()
            yield Pair(first, second)
        finally:
            second.stop()
    finally:
        first.stop()


def test_leaders_that_move_between_brokers_are_followed_while_producers_go_on(
    pair: Pair, twinlog: TwinlogProcess, fresh: str
) -> None:
    partitions = [(fresh, partition) for partition in range(4)]
    wait_until(
        lambda: len(admin_of(pair.first).list_topics(timeout=60).brokers) == 2, "two brokers"
    )
    create_topic(pair, fresh, partitions=4, replicas=2)
    assert pair.leaders(fresh) == {1, 2}
    mirror = Mirror(twinlog, pair, "pair")
    mirror.create()
    mirror.start([fresh])
    with producing(pair, [fresh]):
        mirror.await_more(partitions)
        pair.second.kill()
        wait_until(lambda: pair.leaders(fresh) == {1}, "the first leads everything")
        mirror.await_more(partitions)
        pair.second.start()
        wait_until(lambda: pair.in_sync(fresh) == 2, "the second is in sync again")
        _elect_preferred(pair, fresh)
        wait_until(lambda: pair.leaders(fresh) == {1, 2}, "both lead again")
        mirror.await_more(partitions)
    mirror.await_caught_up(partitions)
    mirror.assert_equal(partitions)
    mirror.await_states(partitions, "MIRRORING")
    epochs = {batch.leader_epoch for batch in batches_of(twinlog.partition_folder(fresh, 0))} | {
        batch.leader_epoch for batch in batches_of(twinlog.partition_folder(fresh, 1))
    }
    assert len(epochs) > 2, f"the moves made new epochs: {epochs}"


def _elect_preferred(pair: Pair, topic: str) -> None:
    file = pair.first.folder / "election.json"
    wanted = [{"topic": topic, "partition": partition} for partition in range(4)]
    file.write_text(json.dumps({"partitions": wanted}))
    run_tool(
        KAFKA_4,
        main_class(KAFKA_4, "LeaderElectionCommand"),
        *("--bootstrap-server", pair.first.bootstrap),
        *("--election-type", "preferred", "--path-to-json-file", str(file)),
    )
