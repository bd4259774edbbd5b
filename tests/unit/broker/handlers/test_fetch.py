import asyncio
from pathlib import Path
from typing import Any

import pytest

from support.batches import batch
from support.brokers import LocalBroker, local_broker
from twinlog.model.errors import ErrorCode
from twinlog.wire.messages.fetch import (
    FETCH,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchTopic,
)
from twinlog.wire.records.batch import iter_headers


def fetch(*partitions: FetchPartition, topic: str = "t", **settings: Any) -> FetchRequest:
    asked = {"max_wait_ms": 0, "min_bytes": 1, **settings}
    return FetchRequest(topics=(FetchTopic(topic=topic, partitions=partitions),), **asked)


def at(offset: int, *, max_bytes: int = 1 << 20, **settings: Any) -> FetchPartition:
    return FetchPartition(
        partition=0, fetch_offset=offset, partition_max_bytes=max_bytes, **settings
    )


async def ask(broker: LocalBroker, request: FetchRequest, version: int = 12) -> FetchedPartition:
    answer = await broker.ask(FETCH, request, version)
    return answer.topics[0].partitions[0]


def offsets(answer: FetchedPartition) -> list[int]:
    assert isinstance(answer.records, bytes | memoryview)
    return [header.base_offset for _, header in iter_headers(answer.records)]


async def filled(broker: LocalBroker, count: int = 3) -> None:
    await broker.make_topic("t")
    for _ in range(count):
        await broker.produce("t", batch(2, value_bytes=100))


@pytest.mark.parametrize("version", range(FETCH.min_version, FETCH.max_version + 1))
async def test_every_version_reads_what_was_produced(tmp_path: Path, version: int) -> None:
    async with local_broker(tmp_path) as broker:
        made = await broker.make_topic("t")
        await broker.produce("t", batch(2))
        topic = FetchTopic(topic="t", topic_id=made.topic_id, partitions=(at(0),))
        request = FetchRequest(max_wait_ms=0, min_bytes=1, topics=(topic,))
        answer = await broker.ask(FETCH, request, version)
        assert offsets(answer.topics[0].partitions[0]) == [0]


async def test_the_first_batch_comes_even_if_it_is_over_every_bound(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        await filled(broker)
        answer = await ask(broker, fetch(at(2, max_bytes=10), max_bytes=10))
        assert offsets(answer) == [2]


async def test_the_second_partition_waits_when_the_answer_is_full(tmp_path: Path) -> None:
    async with local_broker(tmp_path, {"num.partitions": "2"}) as broker:
        await filled(broker)
        await broker.produce("t", batch(2, value_bytes=100), partition=1)
        other = FetchPartition(partition=1, fetch_offset=0, partition_max_bytes=1 << 20)
        answer = await broker.ask(FETCH, fetch(at(0), other, max_bytes=300), 12)
        first, second = answer.topics[0].partitions
        assert offsets(first) == [0]
        assert offsets(second) == []


async def test_an_offset_out_of_range_tells_where_the_log_starts(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        await filled(broker)
        answer = await ask(broker, fetch(at(7), max_wait_ms=60_000))
        assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert answer.log_start_offset == 0


async def test_a_reader_at_the_end_waits_for_the_next_append(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        await filled(broker)
        reader = await broker.another_connection()
        request = fetch(at(6), max_wait_ms=60_000)
        waiting = asyncio.ensure_future(reader.call(FETCH, request, timeout_s=60, version=12))
        await broker.produce("t", batch(1))
        answer = await waiting
        assert offsets(answer.topics[0].partitions[0]) == [6]
        await reader.close()


@pytest.mark.parametrize("epoch", [-1, 0], ids=["without session", "with session"])
async def test_what_is_appended_just_as_a_reader_begins_to_wait_is_not_missed(
    tmp_path: Path, epoch: int
) -> None:
    async with local_broker(tmp_path) as broker:
        await broker.make_topic("t")
        producer = broker
        reader = await broker.another_connection()
        waits = fetch(at(0), max_wait_ms=120_000, session_epoch=epoch)
        async with asyncio.timeout(60):
            answer, _ = await asyncio.gather(
                reader.call(FETCH, waits, timeout_s=120, version=12),
                producer.produce("t", batch(1)),
            )
        assert answer.topics[0].partitions[0].high_watermark == 1
        await reader.close()


async def test_the_wait_ends_with_nothing_at_its_deadline(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        await filled(broker)
        answer = await ask(broker, fetch(at(6), max_wait_ms=20))
        assert (answer.error_code, offsets(answer)) == (ErrorCode.NONE, [])


async def test_a_stale_leader_epoch_is_fenced_and_a_future_one_unknown(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        await filled(broker)
    async with local_broker(tmp_path) as broker:
        made = await broker.make_topic("t")
        epoch = made.partitions[0].leader_epoch
        fenced = await ask(broker, fetch(at(0, current_leader_epoch=epoch - 1)))
        assert fenced.error_code == ErrorCode.FENCED_LEADER_EPOCH
        unknown = await ask(broker, fetch(at(0, current_leader_epoch=epoch + 1)))
        assert unknown.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        right = await ask(broker, fetch(at(0, current_leader_epoch=epoch)))
        assert right.error_code == ErrorCode.NONE


async def test_a_reader_whose_log_went_another_way_is_told_where_they_part(
    tmp_path: Path,
) -> None:
    async with local_broker(tmp_path) as broker:
        await filled(broker)
    async with local_broker(tmp_path) as broker:
        await broker.produce("t", batch(1))
        # It claims to have read up to 9 in the first epoch, which ended at 6 here.
        answer = await ask(broker, fetch(at(9, last_fetched_epoch=0), max_wait_ms=60_000))
        assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (0, 6)
        assert offsets(answer) == []


async def test_read_committed_stops_before_an_open_transaction(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        await filled(broker, 1)
        open_batch = batch(1, producer=(9, 0, 0), is_transactional=True)
        await broker.produce("t", open_batch)
        all_of_it = await ask(broker, fetch(at(0)))
        committed = await ask(broker, fetch(at(0), isolation_level=1))
        assert offsets(all_of_it) == [0, 2]
        assert offsets(committed) == [0]
        assert committed.last_stable_offset == 2
        assert committed.aborted_transactions == ()
        assert all_of_it.aborted_transactions is None


async def test_an_unknown_topic_is_said_to_be_so_at_once(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        answer = await ask(broker, fetch(at(0), topic="nowhere", max_wait_ms=60_000))
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_an_incremental_session_is_told_only_what_changed(tmp_path: Path) -> None:
    async with local_broker(tmp_path, {"num.partitions": "3"}) as broker:
        await broker.make_topic("t")
        every = [
            FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
            for index in range(3)
        ]
        first = await broker.ask(FETCH, fetch(*every, session_epoch=0), 12)
        assert first.session_id != 0
        assert len(first.topics[0].partitions) == 3
        reader = await broker.another_connection()
        nothing_new = FetchRequest(
            max_wait_ms=60_000,
            min_bytes=1,
            session_id=first.session_id,
            session_epoch=1,
            topics=(),
        )
        waiting = asyncio.ensure_future(reader.call(FETCH, nothing_new, timeout_s=60, version=12))
        await broker.produce("t", batch(1), partition=2)
        answer = await waiting
        assert [p.partition_index for p in answer.topics[0].partitions] == [2]
        await reader.close()


async def test_a_session_that_is_not_known_is_refused_as_a_whole(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        await broker.make_topic("t")
        answer = await broker.ask(FETCH, fetch(at(0), session_id=77, session_epoch=3), 12)
        assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_a_batch_damaged_on_disk_is_said_to_be_so_and_the_broker_lives(
    tmp_path: Path,
) -> None:
    async with local_broker(tmp_path) as broker:
        await filled(broker)
        file = tmp_path / "data" / "t-0" / f"{0:020}.log"
        content = bytearray(file.read_bytes())
        content[16] = 1  # the magic of the first batch
        file.write_bytes(content)
        answer = await ask(broker, fetch(at(0)))
        assert answer.error_code == ErrorCode.CORRUPT_MESSAGE
        await broker.make_topic("other")
        assert (await broker.produce("other", batch(1))).error_code == ErrorCode.NONE
