"""Makes topics and asks offsets through an admin client, at any broker that speaks Kafka."""

import time
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

T = TypeVar("T")

# What a broker answers about a topic of which the controller told it a moment ago, or not yet;
# the last three about the offsets of a group, just after its start.
_NOT_YET = {
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
}
_LOST = {
    KafkaError._TIMED_OUT,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError._TRANSPORT,
    # No broker is there for its controller.
    KafkaError.INVALID_REPLICATION_FACTOR,
}
_TIMEOUT_S = 120.0
_ANSWER_S = 30.0


class Broker(Protocol):
    """What the tests need of a broker, ours or Kafka's."""

    @property
    def bootstrap(self) -> str:
        """Where clients find it."""


def admin_of(broker: Broker) -> AdminClient:
    """An admin client of that broker; hold it by name while its answers are awaited."""
    return AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 2})


def create_topic(
    broker: Broker,
    name: str,
    *,
    partitions: int = 1,
    replicas: int = 1,
    config: Mapping[str, str] | None = None,
) -> None:
    """Create a topic and return when the broker leads all of it."""
    admin = admin_of(broker)
    new = NewTopic(name, partitions, replicas, config=dict(config or {}))
    deadline = time.monotonic() + _TIMEOUT_S
    is_again = False
    while True:
        try:
            asked = admin.create_topics([new], operation_timeout=20.0, request_timeout=_ANSWER_S)
            asked[name].result(timeout=2 * _ANSWER_S)
        except KafkaException as error:
            why = error.args[0]
            # An answer may be lost while a broker is just coming up; what it did then stands.
            if why.code() == KafkaError.TOPIC_ALREADY_EXISTS and is_again:
                break
            if not _may_pass(why) or time.monotonic() > deadline:
                raise
            is_again = True
            time.sleep(0.2)
        else:
            break
    for partition in range(partitions):
        offsets_of(broker, name, partition)


def _may_pass(why: KafkaError) -> bool:
    """Whether an answer is lost, or a broker stood still for longer than its own session."""
    return why.code() in _LOST or "KeeperErrorCode = Session expired" in why.str()


def delete_records(broker: Broker, topic: str, partition: int, *, before: int) -> None:
    """Move a partition's start by DeleteRecords, and see that it moved."""
    admin = admin_of(broker)
    for future in admin.delete_records([TopicPartition(topic, partition, before)]).values():
        future.result(timeout=_TIMEOUT_S)
    start, _ = offsets_of(broker, topic, partition)
    assert start == before, f"{topic}-{partition} begins at {start} after DeleteRecords({before})"


def offsets_of(
    broker: Broker, topic: str, partition: int, *, timeout_s: float = _TIMEOUT_S
) -> tuple[int, int]:
    """Give a partition's log start and high watermark."""
    of = TopicPartition(topic, partition)
    consumer = offset_asker(broker)
    try:
        low, high = until_known(
            lambda: consumer.get_watermark_offsets(of, timeout=_TIMEOUT_S), timeout_s=timeout_s
        )
        return int(low), int(high)
    finally:
        consumer.close()


def offset_asker(broker: Broker) -> Consumer:
    """Give a consumer for watermarks; who asks often keeps it, and closes it."""
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "twinlog-tests-offsets",
            "log_level": 2,
            # For read_committed, which is librdkafka's default, the end would be the last stable
            # offset, and an open transaction would hide what lies behind it.
            "isolation.level": "read_uncommitted",
        }
    )


def until_known(ask: Callable[[], T], *, timeout_s: float = _TIMEOUT_S) -> T:
    """Ask again while the broker has not yet heard of what was just made."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return ask()
        except KafkaException as error:
            if error.args[0].code() not in _NOT_YET or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
