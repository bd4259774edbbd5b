"""Groups of unlike clients share a topic, take over from each other, and can be looked at."""

import threading
import time
from collections.abc import Callable, Sequence

import confluent_kafka
import kafka
import pytest

from support.client_drivers import Confluent
from support.cluster_admin import Broker, admin_of, create_topic
from support.java_tools import main_class
from support.jvm import run_tool
from support.kafka_install import KAFKA_4, require
from support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

SESSION_MS = 60_000


class Member:
    """A member that polls in a thread of its own, as an application does, until it is stopped."""

    def __init__(self, poll: Callable[[], Sequence[str]], assigned: Callable[[], set[int]]) -> None:
        self.values: list[str] = []
        self.assigned: set[int] = set()
        self._poll, self._ask = poll, assigned
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Poll no more; the owner of the consumer closes it."""
        self._stopping.set()
        self._thread.join(timeout=60)
        assert not self._thread.is_alive(), "a member hangs in poll"

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.values += self._poll()
            self.assigned = self._ask()


def confluent_member(broker: Broker, topic: str, group: str) -> tuple[Member, Callable[[], None]]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": SESSION_MS,
            "partition.assignment.strategy": "range",
        }
    )
    consumer.subscribe([topic])

    def poll() -> list[str]:
        message = consumer.poll(0.1)
        return [message.value().decode()] if message is not None and not message.error() else []

    member = Member(poll, lambda: {each.partition for each in consumer.assignment()})
    return member, consumer.close


def python_member(broker: Broker, topic: str, group: str) -> tuple[Member, Callable[[], None]]:
    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=broker.bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=500,
    )

    def poll() -> list[str]:
        polled = consumer.poll(timeout_ms=100)
        return [record.value.decode() for records in polled.values() for record in records]

    return Member(poll, lambda: {each.partition for each in consumer.assignment()}), consumer.close


def test_unlike_members_share_a_topic_and_take_over_from_each_other(
    broker: Broker, fresh: str
) -> None:
    create_topic(broker, fresh, partitions=6)
    group = f"{fresh}-group"
    first, close_first = confluent_member(broker, fresh, group)
    wait_until(lambda: first.assigned == set(range(6)), "the first member has all partitions")
    second, close_second = python_member(broker, fresh, group)

    def is_shared() -> bool:
        sizes = {len(first.assigned), len(second.assigned)}
        return sizes == {3} and first.assigned | second.assigned == set(range(6))

    wait_until(is_shared, lambda: f"shared: {first.assigned} and {second.assigned}")
    Confluent().produce(broker.bootstrap, fresh, [f"shared {n}" for n in range(200)])
    wait_until(
        lambda: len(first.values) + len(second.values) >= 200,
        lambda: f"all read: {len(first.values)} and {len(second.values)}",
    )
    assert sorted(first.values + second.values) == sorted(f"shared {n}" for n in range(200))

    first.stop()
    close_first()
    wait_until(lambda: second.assigned == set(range(6)), "the second member took over")
    Confluent().produce(broker.bootstrap, fresh, [f"alone {n}" for n in range(50)])
    alone = sorted(f"alone {n}" for n in range(50))
    wait_until(
        lambda: sorted(v for v in second.values if v.startswith("alone")) == alone,
        lambda: f"the second member read all that came later, once: {len(second.values)}",
    )
    second.stop()
    close_second()


def test_a_static_member_comes_back_without_a_rebalance(broker: Broker, fresh: str) -> None:
    create_topic(broker, fresh, partitions=2)
    rebalances: list[str] = []

    def member(instance: str) -> confluent_kafka.Consumer:
        config = {"group.id": f"{fresh}-group", "group.instance.id": instance}
        more = {"bootstrap.servers": broker.bootstrap, "session.timeout.ms": SESSION_MS}
        consumer = confluent_kafka.Consumer({**config, **more})
        consumer.subscribe([fresh], on_revoke=lambda *_: rebalances.append(instance))
        return consumer

    staying, leaving = member("staying"), member("leaving")
    poll_until(
        [staying, leaving], lambda: [len(c.assignment()) for c in (staying, leaving)] == [1, 1]
    )
    had = [each.partition for each in leaving.assignment()]
    rebalances.clear()
    leaving.close()  # A static member leaves without a word, and its place is kept.
    rebalances.clear()
    back = member("leaving")
    poll_until([staying, back], lambda: len(back.assignment()) == 1)
    assert [each.partition for each in back.assignment()] == had
    assert rebalances == []
    staying.close()
    back.close()


def poll_until(
    consumers: Sequence[confluent_kafka.Consumer], condition: Callable[[], bool]
) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, [c.assignment() for c in consumers]
        for consumer in consumers:
            consumer.poll(0.1)


def test_a_group_can_be_listed_described_and_deleted(broker: Broker, fresh: str) -> None:
    create_topic(broker, fresh)
    group = f"{fresh}-group"
    Confluent().produce(broker.bootstrap, fresh, [f"{n}" for n in range(5)])
    Confluent().consume(broker.bootstrap, fresh, group, 3)
    admin = admin_of(broker)
    listed = admin.list_consumer_groups().result(timeout=60)
    assert group in {each.group_id for each in listed.valid}

    def is_empty() -> bool:
        described = admin.describe_consumer_groups([group])[group].result(timeout=60)
        return (described.state.name, list(described.members)) == ("EMPTY", [])

    # The last word of a member that leaves is not waited for.
    wait_until(is_empty, f"nobody is left in {group}")
    asked = [confluent_kafka.ConsumerGroupTopicPartitions(group)]
    committed = admin.list_consumer_group_offsets(asked)[group].result(timeout=60)
    assert [(tp.topic, tp.partition, tp.offset) for tp in committed.topic_partitions] == [
        (fresh, 0, 3)
    ]
    admin.delete_consumer_groups([group])[group].result(timeout=60)
    listed = admin.list_consumer_groups().result(timeout=60)
    assert group not in {each.group_id for each in listed.valid}


def test_kafkas_own_command_shows_a_groups_lag(broker: Broker, fresh: str) -> None:
    require(KAFKA_4)
    create_topic(broker, fresh)
    Confluent().produce(broker.bootstrap, fresh, [f"{n}" for n in range(5)])
    Confluent().consume(broker.bootstrap, fresh, f"{fresh}-group", 3)
    tool = main_class(KAFKA_4, "ConsumerGroupCommand")
    where = ("--bootstrap-server", broker.bootstrap)
    said = run_tool(KAFKA_4, tool, *where, "--describe", "--group", f"{fresh}-group").stdout
    line = next(line.split() for line in said.splitlines() if fresh in line.split())
    # Group, topic, partition, committed offset, log end, lag; a leader epoch in newer versions.
    assert line[:3] == [f"{fresh}-group", fresh, "0"]
    assert [number for number in line[3:] if number.isdigit()][-3:] == ["3", "5", "2"]
