"""Group offsets come over partition by partition, and never against who is at work here."""

from dataclasses import dataclass
from itertools import count
from typing import Final

import confluent_kafka
import pytest

from support.cluster_admin import admin_of, delete_records
from support.kafka_node import KafkaNode
from support.mirror import Mirror
from support.positions import committed_offset
from support.proxied_kafka import ProxiedKafka
from support.source_data import commit, flush, producer_of
from support.twinlog_process import TwinlogProcess
from support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.cluster, pytest.mark.slow]

OFTEN: Final = {"groups_sync_interval_ms": "200"}


@dataclass(frozen=True, slots=True)
class Synced:
    """A topic of three partitions and 100 records each, mirrored by a mirror that syncs often."""

    source: KafkaNode
    twinlog: TwinlogProcess
    mirror: Mirror
    topic: str

    def await_offset(self, group: str, partition: int, offset: int | None) -> None:
        """Return when twinlog has that offset for the group."""

        def now() -> int | None:
            return committed_offset(self.twinlog, group, self.topic, partition)

        wait_until(
            lambda: now() == offset, lambda: f"{group} at {partition}: {offset}, not {now()}"
        )

    def commit(self, group: str, **offsets: int) -> None:
        """Commit at the source; keywords are ``p0``, ``p1``..."""
        commit(self.source, group, self.positions(**offsets))

    def positions(self, **offsets: int) -> dict[tuple[str, int], int]:
        """Give offsets by partition of the topic."""
        return {(self.topic, int(key[1:])): offset for key, offset in offsets.items()}

    def let_rounds_pass(self) -> None:
        """Return after several more rounds of the sync: it has brought over a later commit."""
        witness = f"witness-{next(_witnesses)}"
        for offset in (1, 2):
            self.commit(witness, p0=offset)
            self.await_offset(witness, 0, offset)


_witnesses = count(1)


@pytest.fixture
def synced(any_kafka: KafkaNode, twinlog: TwinlogProcess, fresh: str) -> Synced:
    """Mirror a topic of three partitions."""
    any_kafka.create_topic(fresh, partitions=3)
    producer = producer_of(any_kafka)
    for number in range(300):
        producer.produce(fresh, f"{number}".encode(), partition=number % 3)
    flush(producer)
    mirror = Mirror(twinlog, any_kafka, "synced")
    mirror.create(**OFTEN)
    mirror.start([fresh])
    mirror.await_caught_up([(fresh, partition) for partition in range(3)])
    return Synced(any_kafka, twinlog, mirror, fresh)


def test_offsets_follow_the_source_s_forwards_backwards_and_away(synced: Synced) -> None:
    group = f"follower of {synced.topic}"
    synced.commit(group, p0=10, p1=100)
    synced.await_offset(group, 0, 10)
    synced.await_offset(group, 1, 100)
    assert committed_offset(synced.twinlog, group, synced.topic, 2) is None
    synced.commit(group, p0=90, p1=5)
    synced.await_offset(group, 0, 90)
    synced.await_offset(group, 1, 5)
    admin = admin_of(synced.source)
    admin.delete_consumer_groups([group])[group].result(timeout=60)
    synced.await_offset(group, 0, None)


def test_a_group_deleted_while_twinlog_was_down_goes_and_what_a_consumer_moved_stays(
    synced: Synced,
) -> None:
    gone, moved = f"gone from {synced.topic}", f"moved at {synced.topic}"
    for group in (gone, moved):
        synced.commit(group, p0=10, p1=100)
        synced.await_offset(group, 0, 10)
        synced.await_offset(group, 1, 100)
    # A consumer here that stands where the source's stood: the same offset, and its own.
    commit(synced.twinlog, moved, synced.positions(p0=10))
    synced.twinlog.stop()
    admin = admin_of(synced.source)
    for future in admin.delete_consumer_groups([gone, moved]).values():
        future.result(timeout=60)
    synced.twinlog.start()
    synced.await_offset(gone, 0, None)
    synced.await_offset(gone, 1, None)
    synced.await_offset(moved, 1, None)
    synced.let_rounds_pass()
    assert committed_offset(synced.twinlog, moved, synced.topic, 0) == 10


def test_an_offset_below_the_start_is_the_start_and_the_lag_is_never_negative(
    synced: Synced,
) -> None:
    group = f"late at {synced.topic}"
    synced.commit(group, p0=50, p1=100)
    delete_records(synced.source, synced.topic, 0, before=80)
    delete_records(synced.source, synced.topic, 1, before=100)
    synced.await_offset(group, 0, 80)
    synced.await_offset(group, 1, 100)
    ends = {"sourceOffset": 100, "destinationOffset": 100, "lag": 0}
    synced.mirror.await_row((synced.topic, 1), "MIRRORING", **ends)


def test_a_group_with_members_here_is_left_alone_until_they_are_gone(synced: Synced) -> None:
    group = f"active at {synced.topic}"
    synced.commit(group, p0=10)
    synced.await_offset(group, 0, 10)
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": synced.twinlog.bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "session.timeout.ms": 60_000,
        }
    )
    try:
        consumer.subscribe([synced.topic])
        wait_until(lambda: consumer.poll(0.2) is not None, "the member reads")
        position = confluent_kafka.TopicPartition(synced.topic, 0, 33)
        consumer.commit(offsets=[position], asynchronous=False)
        synced.commit(group, p0=77)
        synced.let_rounds_pass()
        assert committed_offset(synced.twinlog, group, synced.topic) == 33
    finally:
        consumer.close()
    synced.await_offset(group, 0, 77)


def test_a_group_s_offsets_at_a_stopped_topic_are_its_own(synced: Synced) -> None:
    group = f"moved from {synced.topic}"
    other = f"{synced.topic}-other"
    synced.source.create_topic(other)
    synced.mirror.start([other])
    synced.mirror.await_states([(other, 0)], "MIRRORING")
    synced.commit(group, p0=40)
    synced.await_offset(group, 0, 40)
    synced.mirror.stop([synced.topic])
    synced.mirror.await_states([(synced.topic, 0)], "STOPPED")
    commit(synced.twinlog, group, synced.positions(p0=60))
    synced.commit(group, p0=41)
    commit(synced.source, "witness", {(other, 0): 0})
    wait_until(
        lambda: committed_offset(synced.twinlog, "witness", other) == 0,
        "the sync goes on for the other topic",
    )
    assert committed_offset(synced.twinlog, group, synced.topic) == 60


def test_one_partition_that_is_behind_holds_its_own_offset_back_and_no_other(
    proxied: ProxiedKafka, twinlog: TwinlogProcess, fresh: str
) -> None:
    node = proxied.node
    node.create_topic(fresh, partitions=2)
    producer = producer_of(node)
    marker = f"marker of {fresh}:".encode()
    for partition in range(2):
        for number in range(50):
            producer.produce(fresh, f"{number}".encode(), partition=partition)
    flush(producer)
    producer.produce(fresh, marker + b"payload", partition=0)
    flush(producer)
    commit(node, fresh, {(fresh, 0): 51, (fresh, 1): 20})
    proxied.proxy.spoil(marker)
    mirror = Mirror(twinlog, node, "halved")
    mirror.create(bootstrap_servers=proxied.proxy.bootstrap, **OFTEN)
    mirror.start([fresh])
    mirror.await_states([(fresh, 0)], "FAILED")
    here = Synced(node, twinlog, mirror, fresh)
    here.await_offset(fresh, 1, 20)
    here.await_offset(fresh, 0, 50)
    proxied.proxy.spoil(b"")
    here.await_offset(fresh, 0, 51)
