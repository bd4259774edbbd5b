"""What broke elsewhere where logs are cut, compacted or searched by time."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from support.asking import create, fetch, list_offset, records_in, trim
from support.batches import batch
from support.brokers import AskedBroker, LocalBroker, local_broker
from support.positions import visible_records, visible_to_aiokafka, visible_to_kafka_python
from twinlog.broker.partitions import Partition
from twinlog.model.ids import TopicName, TopicPartition

LATEST, EARLIEST = -1, -2


def partition_of(broker: LocalBroker, topic: str) -> Partition:
    return broker.server._partitions.led(TopicPartition(TopicName(topic), 0))


async def values_from(broker: AskedBroker, topic: str, offset: int) -> dict[int, bytes | None]:
    """Read to the end as a consumer does, from one answer to the next."""
    found: dict[int, bytes | None] = {}
    while True:
        answer = await fetch(broker, topic, offset, max_bytes=300)
        assert answer.error_code == 0, answer.error_code
        records = [one for one in records_in(answer) if one.offset >= offset]
        if not records:
            return found
        found.update((one.offset, bytes(one.value or b"")) for one in records)
        offset = records[-1].offset + 1


async def test_offsets_stay_what_they_are_when_old_segments_go(tmp_path: Path) -> None:
    """After an eviction the high watermark and the offsets of all records were one too high."""
    async with local_broker(tmp_path) as broker:
        await create(broker, "t", segment_bytes="500", retention_bytes="1000")

        for number in range(40):
            value = b"value %d" % number
            await broker.produce("t", batch([(b"k", value * 5)], timestamp=number + 1))
        partition = partition_of(broker, "t")
        before = await values_from(broker, "t", 0)
        assert partition.delete_old(1) > 5
        start = partition.log.start
        assert 0 < start < 40
        after = await values_from(broker, "t", start)
        assert after == {offset: v for offset, v in before.items() if offset >= start}
        assert partition.high_watermark == 40
        assert (await list_offset(broker, "t", EARLIEST)).offset == start
        assert (await broker.produce("t", batch(1))).base_offset == 40
    async with local_broker(tmp_path) as broker:
        assert (await list_offset(broker, "t", EARLIEST)).offset == start
        assert (await list_offset(broker, "t", LATEST)).offset == 41
        again = await values_from(broker, "t", start)
        assert {offset: again[offset] for offset in after} == after


def compacted() -> bytes:
    """Give what Kafka's cleaner leaves: gaps in and between batches, and one that is empty.

    0 is there; 1-2 are gone with their batch; of 3-9 only 5 is left; 10-14 are an emptied batch,
    kept for its producer's sequence; 15 is gone; 16-17 are there.
    """
    return b"".join(
        (
            batch([(b"a", b"0")], base_offset=0),
            batch([(b"a", b"5")], base_offset=3, offset_deltas=[2], last_offset_delta=6),
            batch([], base_offset=10, last_offset_delta=4, producer=(9, 0, 0)),
            batch([(b"a", b"16"), (b"b", b"17")], base_offset=16),
        )
    )


async def test_a_reader_finds_what_follows_an_offset_that_was_compacted_away(
    tmp_path: Path,
) -> None:
    """A consumer at a committed offset that was gone, or at an emptied batch, never went on."""
    async with local_broker(tmp_path) as broker:
        await create(broker, "t", cleanup_policy="compact")
        partition_of(broker, "t").append_mirrored(compacted())
        everything = {0: b"0", 5: b"5", 16: b"16", 17: b"17"}
        for offset in range(19):
            expected = {at: value for at, value in everything.items() if at >= offset}
            answer = await fetch(broker, "t", offset)
            assert answer.high_watermark == 18
            seen = {r.offset: bytes(r.value or b"") for r in records_in(answer)}
            assert {at: v for at, v in seen.items() if at >= offset} == expected, offset


@pytest.mark.slow
@pytest.mark.parametrize("name", ["librdkafka", "kafka-python", "aiokafka"])
async def test_clients_pass_over_emptied_batches_and_gaps(tmp_path: Path, name: str) -> None:
    """Three clients stood still before a batch that compaction had emptied."""
    readers: dict[str, Callable[[Bootstrap], list[tuple[int, bytes | None]]]] = {
        "librdkafka": lambda at: visible_records(at, "t"),
        "kafka-python": lambda at: visible_to_kafka_python(at, "t", 4),
        "aiokafka": lambda at: visible_to_aiokafka(at, "t", 4),
    }
    async with local_broker(tmp_path) as broker:
        await create(broker, "t", cleanup_policy="compact")
        partition_of(broker, "t").append_mirrored(compacted())
        seen = await asyncio.to_thread(readers[name], Bootstrap(str(broker.address)))
    assert [offset for offset, _ in seen] == [0, 5, 16, 17]


class Bootstrap:
    """A broker as the clients' helpers need it."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap


async def delete_before_time(broker: AskedBroker, topic: str, timestamp: int) -> int:
    """Do what tools do that delete by time: ask for the offset, then delete up to it."""
    found = await list_offset(broker, topic, timestamp)
    return await trim(broker, topic, found.offset)


async def test_deleting_by_time_keeps_all_from_the_first_record_that_is_late_enough(
    tmp_path: Path,
) -> None:
    """Timestamps out of order: records that were late enough were deleted with the others."""
    async with local_broker(tmp_path) as broker:
        await create(broker, "t", retention_ms="-1", segment_bytes="150")
        times = [1_000, 5_000, 2_000, 3_000, 9_000, 4_000]
        for time in times:
            await broker.produce("t", batch(1, timestamp=time))
        assert (await list_offset(broker, "t", 2_500)).offset == 1
        assert await delete_before_time(broker, "t", 2_500) == 1
        left = await values_from(broker, "t", 1)
        assert sorted(left) == [1, 2, 3, 4, 5]
        assert await delete_before_time(broker, "t", 6_000) == 4


async def test_retention_keeps_a_record_from_the_future_and_all_behind_it(tmp_path: Path) -> None:
    """One record of an odd time took the whole topic with it, or kept it for ever, unexplained."""
    async with local_broker(tmp_path) as broker:
        await create(broker, "t", retention_ms="1000", segment_bytes="100")
        for time in (1_000, 900_000, 2_000, 3_000):
            await broker.produce("t", batch(1, timestamp=time))
        partition = partition_of(broker, "t")
        assert partition.log.segment_count == 4
        partition.delete_old(100_000)
        # Segments go in order, oldest first: what lies behind the late one waits for it.
        assert partition.log.start == 1
        assert sorted(await values_from(broker, "t", 1)) == [1, 2, 3]
