"""Fills a real Kafka with every kind of data that a mirror must carry over unchanged."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from support.cluster_admin import Broker, delete_records, until_known
from support.kafka_node import KafkaNode
from support.log_bytes import batches_of, segments_of
from support.waiting import wait_until

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
MEGABYTE = 1 << 20
_DAY_MS = 24 * 60 * 60 * 1000
# A segment rolls at the first append after this long, so that a pause in producing makes one.
_ROLL_MS = 50


# The broker aborts an undecided transaction after this long; a test session must be over by then.
_OPEN_TRANSACTION_MS = 7_200_000
OPEN_TRANSACTIONAL_ID = "source-data-open"


@dataclass(slots=True)
class SourceData:
    """What was written: the topics with their partition counts.

    The transaction left open in `transactional-0` is OPEN_TRANSACTIONAL_ID's; a producer that
    initializes with that id makes the broker abort it.
    """

    partition_counts: dict[str, int] = field(default_factory=dict)

    @property
    def topics(self) -> list[str]:
        """The names of all topics, as made."""
        return list(self.partition_counts)

    @property
    def partitions(self) -> list[tuple[str, int]]:
        """Every partition of every topic."""
        counts = self.partition_counts.items()
        return [(topic, partition) for topic, count in counts for partition in range(count)]


def fill(node: KafkaNode) -> SourceData:
    """Write all of it and wait until the broker's cleaner and retention have done their part."""
    data = SourceData()
    checks: list[Callable[[], None]] = [
        _expired_by_retention(node, data),
        _compacted_with_gaps(node, data),
    ]
    for codec in CODECS:
        _compressed(node, data, codec)
    _trimmed_inside_a_batch(node, data)
    _emptied(node, data)
    _half_empty(node, data)
    _transactional(node, data)
    _megabyte_records(node, data)
    _stamped_at_append(node, data)
    for check in checks:
        check()
    return data


def producer_of(node: Broker, **settings: str | int) -> Producer:
    """A producer that gathers records until it is flushed, so that a burst is a batch.

    Keywords are librdkafka's names with `_`.
    """
    config: dict[str, str | int] = {
        "bootstrap.servers": node.bootstrap,
        "linger.ms": 10_000,
        "log_level": 2,
    }
    config |= {name.replace("_", "."): value for name, value in settings.items()}
    return Producer(config)


def flush(producer: Producer) -> None:
    """Wait until everything produced is acknowledged."""
    left = producer.flush(120)
    assert left == 0, f"{left} records were not acknowledged in 120 s"


def await_markers(node: Broker, *transactional_ids: str) -> None:
    """Return when the transactions of these producers are over; they are of no use afterwards.

    The end of a transaction is answered once it is decided, before its markers are written. Who
    takes a transactional id over is made to wait for them.
    """
    for name in transactional_ids:
        producer_of(node, transactional_id=name).init_transactions(120)


def commit(node: Broker, group: str, positions: dict[tuple[str, int], int]) -> None:
    """Commit offsets for a group that has no members."""
    config = {"bootstrap.servers": node.bootstrap, "group.id": group, "log_level": 2}
    consumer = Consumer(config)
    offsets = [TopicPartition(*of, offset) for of, offset in positions.items()]
    try:
        done = until_known(lambda: consumer.commit(offsets=offsets, asynchronous=False))
        for result in done or []:
            assert result.error is None, f"commit of {result}: {result.error}"
    finally:
        consumer.close()


def _make(
    node: KafkaNode, data: SourceData, topic: str, *, partitions: int = 1, **config: str | float
) -> None:
    settings = {name.replace("_", "."): str(value) for name, value in config.items()}
    node.create_topic(topic, partitions=partitions, config=settings)
    data.partition_counts[topic] = partitions


def _compressed(node: KafkaNode, data: SourceData, codec: str) -> None:
    """Three partitions of one codec: keys, values and headers present, empty and absent."""
    topic = f"plain-{codec}"
    _make(node, data, topic, partitions=3, segment_ms=_ROLL_MS)
    producer = producer_of(node, compression_type=codec, enable_idempotence="true")
    for number in range(1500):
        producer.produce(topic, partition=number % 3, **record(number))
        if number % 300 == 299:
            flush(producer)
            time.sleep(2 * _ROLL_MS / 1000)
    flush(producer)


def record(number: int) -> dict[str, object]:
    """One of twelve kinds of record, as arguments of `Producer.produce`."""
    key = (None, f"key-{number % 50}".encode(), b"")[number % 3]
    value = (f"value-{number} ".encode() * (1 + number % 40), None, b"", b"\x00\xff" * 70)[
        number % 4
    ]
    headers: list[tuple[str, bytes | None]] = [
        ("trace", str(number).encode()),
        ("trace", b"again"),
        ("nothing", None),
        ("größe", b""),
    ]
    made: dict[str, object] = {"key": key, "value": value}
    if number % 5 == 0:
        made["headers"] = headers[: 1 + number % 4]
    return made


def _compacted_with_gaps(node: KafkaNode, data: SourceData) -> Callable[[], None]:
    """Few keys written often, with tombstones, until the cleaner has taken records away."""
    topic = "compacted"
    _make(
        node,
        data,
        topic,
        cleanup_policy="compact",
        segment_ms=_ROLL_MS,
        min_cleanable_dirty_ratio=0.01,
    )
    producer = producer_of(node, compression_type="lz4")
    for burst in range(6):
        for number in range(200):
            value = None if number % 20 == 7 else f"{burst}-{number}".encode() * 5
            # Each burst has keys of its own too, so that cleaned batches keep some records.
            key = f"{number % 20}" if number % 4 else f"only-in-{burst}-{number}"
            producer.produce(topic, key=key.encode(), value=value)
        flush(producer)
        time.sleep(2 * _ROLL_MS / 1000)
    what = f"{topic} of {node.version} is compacted up to its active segment"
    return lambda: wait_until(lambda: is_compacted(node, topic), what, timeout_s=180)


def is_compacted(node: KafkaNode, topic: str) -> bool:
    """True when the cleaner has done all it can: left gaps, and reached the active segment."""
    folder = node.partition_folder(topic, 0)
    checkpoint = node.log_folder / "cleaner-offset-checkpoint"
    if not checkpoint.exists():
        return False
    active = int(segments_of(folder)[-1].stem)
    return f"{topic} 0 {active}" in checkpoint.read_text().splitlines() and has_gaps(folder)


def has_gaps(folder: Path) -> bool:
    """True if a log holds fewer records than offsets, in more than one batch."""
    batches = list(batches_of(folder))
    gaps = [b for b in batches if b.record_count < b.last_offset - b.base_offset + 1]
    return len(gaps) > 1


def _expired_by_retention(node: KafkaNode, data: SourceData) -> Callable[[], None]:
    """Records of days ago in segments of their own, which retention takes, and some of now."""
    topic = "expired"
    _make(node, data, topic, segment_ms=_ROLL_MS, retention_ms=_DAY_MS)
    producer = producer_of(node)
    now_ms = int(time.time() * 1000)
    for age_ms in (5 * _DAY_MS, 4 * _DAY_MS, 0):
        for number in range(100):
            producer.produce(topic, f"{age_ms}-{number}".encode(), timestamp=now_ms - age_ms)
        flush(producer)
        time.sleep(2 * _ROLL_MS / 1000)
    return lambda: wait_until(
        lambda: node.offsets(topic, 0) == (200, 300), "retention moved the start", timeout_s=180
    )


def _trimmed_inside_a_batch(node: KafkaNode, data: SourceData) -> None:
    """DeleteRecords to an offset that lies inside a batch, in the second segment of several."""
    topic = "trimmed"
    _make(node, data, topic, segment_ms=_ROLL_MS)
    producer = producer_of(node, compression_type="zstd")
    for _ in range(4):
        for number in range(100):
            producer.produce(topic, f"record {number}".encode(), key=b"k")
        flush(producer)
        time.sleep(2 * _ROLL_MS / 1000)
    delete_records(node, topic, 0, before=150)
    inside = next(batches_of(node.partition_folder(topic, 0), start=150))
    assert inside.base_offset < 150 <= inside.last_offset, f"offset 150 begins a batch: {inside}"


def _emptied(node: KafkaNode, data: SourceData) -> None:
    """A partition whose records are all deleted: empty, and beginning far above 0."""
    topic = "emptied"
    _make(node, data, topic)
    producer = producer_of(node)
    for number in range(500):
        producer.produce(topic, f"{number}".encode())
    flush(producer)
    delete_records(node, topic, 0, before=500)


def _half_empty(node: KafkaNode, data: SourceData) -> None:
    """Two partitions, one never written."""
    _make(node, data, "half-empty", partitions=2)
    producer = producer_of(node)
    producer.produce("half-empty", b"alone", partition=0)
    flush(producer)


def _transactional(node: KafkaNode, data: SourceData) -> None:
    """Transactions committed, aborted, mixed with plain records, and one left open at the end."""
    topic = "transactional"
    _make(node, data, topic, partitions=2, segment_ms=_ROLL_MS)
    writer = producer_of(node, transactional_id="source-data", compression_type="snappy")
    writer.init_transactions(120)
    plain = producer_of(node)
    for number in range(12):
        writer.begin_transaction()
        for step in range(15):
            writer.produce(topic, f"txn {number} step {step}".encode(), partition=step % 2)
        flush(writer)
        plain.produce(topic, f"beside {number}".encode(), partition=number % 2)
        flush(plain)
        if number % 3 == 2:
            writer.abort_transaction(120)
        else:
            writer.commit_transaction(120)
    await_markers(node, "source-data")
    _leave_open(node, topic)
    plain.produce(topic, b"behind the open transaction", partition=0)
    flush(plain)


def _leave_open(node: KafkaNode, topic: str) -> None:
    """Write inside a transaction and go away, as a client does that crashes."""
    producer = producer_of(
        node,
        transactional_id=OPEN_TRANSACTIONAL_ID,
        transaction_timeout_ms=_OPEN_TRANSACTION_MS,
    )
    producer.init_transactions(120)
    producer.begin_transaction()
    for number in range(10):
        producer.produce(topic, f"undecided {number}".encode(), partition=0)
    flush(producer)


def _megabyte_records(node: KafkaNode, data: SourceData) -> None:
    """Records of 1 MB, which Kafka takes only with a larger max.message.bytes."""
    topic = "large"
    _make(node, data, topic, max_message_bytes=2 * MEGABYTE, segment_bytes=4 * MEGABYTE)
    noise = random.Random(4711)
    for codec in ("none", "lz4"):
        producer = producer_of(
            node, compression_type=codec, message_max_bytes=2 * MEGABYTE, linger_ms=0
        )
        for _ in range(4):
            producer.produce(topic, noise.randbytes(MEGABYTE))
            producer.produce(topic, b"small between large")
        flush(producer)
    assert len(segments_of(node.partition_folder(topic, 0))) > 1


def _stamped_at_append(node: KafkaNode, data: SourceData) -> None:
    """A topic whose broker writes the timestamps."""
    topic = "log-append-time"
    _make(node, data, topic, message_timestamp_type="LogAppendTime")
    producer = producer_of(node, compression_type="gzip")
    for number in range(300):
        producer.produce(topic, f"{number}".encode(), timestamp=1_000_000 + number)
    flush(producer)
