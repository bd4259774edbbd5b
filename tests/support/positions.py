"""Asks any broker where things stand: what a reader may see, a group's offsets, leader epochs."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import aiokafka
import confluent_kafka
import kafka
from kafka.admin import KafkaAdminClient

from support.cluster_admin import Broker

Records = list[tuple[int, bytes | None]]

_TIMEOUT_S = 120.0


def visible_records(
    broker: Broker, topic: str, partition: int = 0, *, isolation: str = "read_committed"
) -> Records:
    """Read a partition from its start to where that reader's view ends; offsets and values."""
    of = (topic, partition)
    return visible_in_each(broker, [of], isolation=isolation)[of]


def visible_in_each(
    broker: Broker, partitions: list[tuple[str, int]], *, isolation: str = "read_committed"
) -> dict[tuple[str, int], Records]:
    """Read several partitions so, with one consumer."""
    config = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": "twinlog-tests-visible",
        "isolation.level": isolation,
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        # The end is told by an empty answer, for which the broker would wait.
        "fetch.wait.max.ms": 10,
    }
    consumer = confluent_kafka.Consumer(config)
    records: dict[tuple[str, int], Records] = {of: [] for of in partitions}
    unfinished = set(partitions)
    deadline = time.monotonic() + _TIMEOUT_S
    try:
        begin = confluent_kafka.OFFSET_BEGINNING
        consumer.assign([confluent_kafka.TopicPartition(*of, begin) for of in partitions])
        while unfinished:
            assert time.monotonic() < deadline, f"no end of {unfinished} after {_TIMEOUT_S} s"
            message = consumer.poll(0.5)
            if message is None:
                continue
            of, error = (message.topic(), message.partition()), message.error()
            if error is None:
                records[of].append((message.offset(), message.value()))
            else:
                assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, f"{of}: {error}"
                unfinished.discard(of)
    finally:
        consumer.close()
    return records


def visible_to_kafka_python(broker: Broker, topic: str, count: int) -> Records:
    """Read with kafka-python, read_committed: at least ``count`` records, and a second's more."""
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=broker.bootstrap,
        isolation_level="read_committed",
        consumer_timeout_ms=1_000,
    )
    of = kafka.TopicPartition(topic, 0)
    records: Records = []
    deadline = time.monotonic() + _TIMEOUT_S
    try:
        consumer.assign([of])
        consumer.seek_to_beginning(of)
        while len(records) < count and time.monotonic() < deadline:
            records += [(record.offset, record.value) for record in consumer]
        return records
    finally:
        consumer.close()


def visible_to_aiokafka(broker: Broker, topic: str, count: int) -> Records:
    """Read with aiokafka, read_committed: at least ``count`` records, and a second's more."""
    return asyncio.run(_visible_to_aiokafka(broker, topic, count))


async def _visible_to_aiokafka(broker: Broker, topic: str, count: int) -> Records:
    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=broker.bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    await consumer.start()
    of = aiokafka.TopicPartition(topic, 0)
    records: Records = []
    deadline = time.monotonic() + _TIMEOUT_S
    try:
        consumer.assign([of])
        await consumer.seek_to_beginning(of)
        while time.monotonic() < deadline:
            found = await consumer.getmany(of, timeout_ms=1_000)
            if not found and len(records) >= count:
                break
            records += [(r.offset, r.value) for some in found.values() for r in some]
        return records
    finally:
        await consumer.stop()


def committed_offset(broker: Broker, group: str, topic: str, partition: int = 0) -> int | None:
    """Give a group's committed offset, or None."""
    return committed_offsets(broker, group, [(topic, partition)])[topic, partition]


def committed_offsets(
    broker: Broker, group: str, partitions: Sequence[tuple[str, int]]
) -> dict[tuple[str, int], int | None]:
    """Give a group's committed offset of each partition, or None."""
    config = {"bootstrap.servers": broker.bootstrap, "group.id": group, "log_level": 2}
    consumer = confluent_kafka.Consumer(config)
    try:
        asked = [confluent_kafka.TopicPartition(*of) for of in partitions]
        found = consumer.committed(asked, timeout=_TIMEOUT_S)
    finally:
        consumer.close()
    for one in found:
        assert one.error is None, f"{group} at {one.topic}-{one.partition}: {one.error}"
    return {(one.topic, one.partition): one.offset if one.offset >= 0 else None for one in found}


def leader_epochs(broker: Broker, topics: list[str]) -> dict[tuple[str, int], int]:
    """Give the leader epoch of every partition of those topics, as Metadata tells it."""
    with kafka_python_admin(broker) as admin:
        return {
            (topic["name"], partition["partition_index"]): partition["leader_epoch"]
            for topic in admin.describe_topics(topics)
            for partition in topic["partitions"]
        }


@contextmanager
def kafka_python_admin(broker: Broker) -> Iterator[Any]:
    """An admin client that gives a broker's own words with its errors."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        yield admin
    finally:
        admin.close()


def why_produce_fails(broker: Broker, topic: str, partition: int = 0) -> str | None:
    """Produce one record without retries; give the error's name and the broker's own words."""
    producer = kafka.KafkaProducer(
        bootstrap_servers=broker.bootstrap, retries=0, enable_idempotence=False
    )
    try:
        producer.send(topic, b"refused?", partition=partition).get(timeout=_TIMEOUT_S)
    except kafka.errors.KafkaError as error:
        return f"{type(error).__name__}: {error}"
    finally:
        producer.close()
    return None
