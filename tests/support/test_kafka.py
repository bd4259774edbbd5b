"""Tests that real Kafka starts, keeps its data over a kill, and holds what is promised."""

import pytest

from support.kafka import Source
from support.kafka_node import KafkaNode
from support.log_bytes import assert_equal_logs, batches_of
from support.source_data import CODECS, MEGABYTE, flush, producer_of

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

CODEC_BITS = 0x07
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20


def test_a_killed_broker_comes_back_on_its_port_with_its_data(any_kafka: KafkaNode) -> None:
    any_kafka.create_topic("kept")
    producer = producer_of(any_kafka)
    producer.produce("kept", b"value")
    flush(producer)
    port = any_kafka.port
    any_kafka.kill()
    any_kafka.start()
    assert any_kafka.port == port
    assert any_kafka.offsets("kept", 0) == (0, 1)


def test_every_codec_is_in_the_batches_of_its_topic(source: Source) -> None:
    for bits, codec in enumerate(CODECS):
        found = {
            batch.attributes & CODEC_BITS
            for partition in range(3)
            for batch in batches_of(source.node.partition_folder(f"plain-{codec}", partition))
        }
        assert found == {bits}, codec


def test_a_compacted_topic_has_gaps_inside_batches(source: Source) -> None:
    batches = list(batches_of(source.node.partition_folder("compacted", 0)))
    assert any(each.record_count < each.last_offset - each.base_offset + 1 for each in batches)


def test_starts_were_moved_by_deletion_and_by_retention(source: Source) -> None:
    assert source.node.offsets("trimmed", 0) == (150, 400)
    assert source.node.offsets("expired", 0) == (200, 300)
    assert source.node.offsets("emptied", 0) == (500, 500)
    assert source.node.offsets("half-empty", 1) == (0, 0)


def test_transactions_end_both_ways_and_one_not_at_all(source: Source) -> None:
    batches = list(batches_of(source.node.partition_folder("transactional", 0)))
    markers = [each for each in batches if each.attributes & CONTROL_BIT]
    # A marker holds one record: five bytes of one-byte varints, then its key (version, type).
    kinds = {bytes(each.content[66:70]) for each in markers}
    assert len(kinds) == 2, "commit and abort markers"
    last_transactional = [each for each in batches if each.attributes & TRANSACTIONAL_BIT][-1]
    assert last_transactional not in markers, "a transaction is open"
    assert batches[-1].last_offset > last_transactional.last_offset, "records lie behind it"


def test_large_records_are_there(source: Source) -> None:
    batches = batches_of(source.node.partition_folder("large", 0))
    assert sum(len(each.content) > MEGABYTE for each in batches) == 8


def test_every_log_can_be_read_from_start_to_high_watermark(source: Source) -> None:
    for topic, partition in source.data.partitions:
        folder = source.node.partition_folder(topic, partition)
        start, end = source.node.offsets(topic, partition)
        found = assert_equal_logs(folder, folder, start=start, end=end)
        assert (found.equal_batches > 0) == (end > start), f"{topic}-{partition}"
