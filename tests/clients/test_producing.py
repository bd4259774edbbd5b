"""What producers ask for is kept: order, keys, headers, timestamps, acknowledgements."""

import asyncio

import aiokafka
import confluent_kafka
import pytest

from support.cluster_admin import Broker, admin_of, create_topic, offsets_of
from support.java_tools import Load, perf_consume, perf_produce
from support.kafka_install import KAFKA_4, require
from support.source_data import record
from support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


# Records with times of long ago would fall to retention while the test looks at them.
KEPT_FOR_EVER = {"retention.ms": "-1"}


def read_all(broker: Broker, topic: str, count: int) -> list[confluent_kafka.Message]:
    """Read a one-partition topic from its start, by assignment, without a group."""
    config = {"group.id": "nobody", "enable.auto.commit": False}
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap, **config})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING)])
    messages: list[confluent_kafka.Message] = []

    def has_all() -> bool:
        polled = consumer.consume(count - len(messages), timeout=0.5)
        assert not any(message.error() for message in polled), [m.error() for m in polled]
        messages.extend(polled)
        return len(messages) >= count

    try:
        wait_until(has_all, lambda: f"{count} records read, only {len(messages)} came")
    finally:
        consumer.close()
    return messages


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_keys_values_headers_and_times_come_back_as_they_went(
    broker: Broker, fresh: str, codec: str
) -> None:
    create_topic(broker, fresh, config=KEPT_FOR_EVER)
    config = {"compression.type": codec, "enable.idempotence": True, "linger.ms": 10}
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, **config})
    sent = [record(number) for number in range(60)]
    for number, each in enumerate(sent):
        producer.produce(fresh, timestamp=1_700_000_000_000 + number, **each)
    assert producer.flush(120) == 0
    messages = read_all(broker, fresh, 60)
    assert [message.offset() for message in messages] == list(range(60))
    for number, (message, each) in enumerate(zip(messages, sent, strict=True)):
        assert message.key() == each["key"]
        assert message.value() == each["value"]
        assert (message.headers() or []) == each.get("headers", [])
        assert message.timestamp()[1] == 1_700_000_000_000 + number


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_kind_of_acknowledgement_is_answered(
    broker: Broker, fresh: str, acks: int | str
) -> None:
    create_topic(broker, fresh)

    async def produce() -> list[int]:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap, acks=acks)
        await producer.start()
        try:
            sent = [await producer.send_and_wait(fresh, f"{n}".encode()) for n in range(10)]
        finally:
            await producer.stop()
        return [metadata.offset for metadata in sent if metadata is not None]

    offsets = asyncio.run(produce())
    assert offsets == ([] if acks == 0 else list(range(10)))
    wait_until(lambda: offsets_of(broker, fresh, 0) == (0, 10), "all ten records are there")


def test_offsets_are_found_by_time(broker: Broker, fresh: str) -> None:
    create_topic(broker, fresh, config=KEPT_FOR_EVER)
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(100):
        producer.produce(fresh, b"x", timestamp=1_700_000_000_000 + 1000 * number)
        if number % 10 == 9:
            assert producer.flush(120) == 0
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "t"})
    try:
        for time_ms, offset in [
            (1, 0),
            (1_700_000_042_000, 42),
            (1_700_000_042_001, 43),
            (1_700_000_099_001, -1),
        ]:
            asked = [confluent_kafka.TopicPartition(fresh, 0, time_ms)]
            assert consumer.offsets_for_times(asked, timeout=60)[0].offset == offset, time_ms
    finally:
        consumer.close()


def test_topics_are_made_grown_described_and_deleted(broker: Broker, fresh: str) -> None:
    create_topic(broker, fresh, partitions=2, config={"retention.ms": "123456789"})
    admin = admin_of(broker)
    admin.create_partitions([confluent_kafka.admin.NewPartitions(fresh, 5)])[fresh].result(60)
    wait_until(
        lambda: len(admin.list_topics(fresh, timeout=60).topics[fresh].partitions) == 5,
        "the topic has five partitions",
    )
    resource = confluent_kafka.admin.ConfigResource("topic", fresh)
    config = admin.describe_configs([resource])[resource].result(60)
    assert config["retention.ms"].value == "123456789"
    assert not config["retention.ms"].is_default
    with pytest.raises(confluent_kafka.KafkaException, match="already exists"):
        create_topic(broker, fresh)
    admin.delete_topics([fresh], operation_timeout=60)[fresh].result(90)
    wait_until(lambda: fresh not in admin.list_topics(timeout=60).topics, "the topic is gone")


def test_kafkas_perf_tools_run_to_their_end(broker: Broker, fresh: str) -> None:
    require(KAFKA_4)
    create_topic(broker, fresh, partitions=3)
    load = Load(20_000, 500, {"acks": "all", "compression.type": "lz4", "linger.ms": "5"})
    said = perf_produce(broker.bootstrap, fresh, load).stdout
    assert "20000 records sent" in said
    figures = perf_consume(broker.bootstrap, fresh, 20_000).stdout.splitlines()[-1].split(", ")
    assert int(figures[4]) == 20_000
