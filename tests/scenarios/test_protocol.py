"""What broke between clients and brokers that are not Java Kafka: the protocol itself."""

import asyncio
import struct
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from support.asking import create, delete, fetch, reading, trim
from support.batches import batch
from support.brokers import LocalBroker, local_broker
from support.waiting import wait_until
from twinlog.model.errors import ErrorCode
from twinlog.wire.messages.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from twinlog.wire.messages.group_offsets import (
    OFFSET_COMMIT,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from twinlog.wire.messages.groups import FIND_COORDINATOR, FindCoordinatorRequest
from twinlog.wire.messages.produce import (
    PRODUCE,
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
)
from twinlog.wire.primitives import decode_uvarint
from twinlog.wire.records.batch import read_header

API_VERSIONS, PRODUCE_KEY = 18, 0


async def test_a_flexible_api_versions_is_answered_behind_a_header_without_tags(
    tmp_path: Path,
) -> None:
    """A client could not parse the answer to v3 and fell back to the oldest protocol."""
    async with local_broker(tmp_path) as broker:
        reader, writer = await asyncio.open_connection(broker.address.host, broker.address.port)
        body = b"\x05test\x042.4\x00"
        frame = struct.pack(">hhih", API_VERSIONS, 3, 77, -1) + b"\x00" + body
        writer.write(struct.pack(">i", len(frame)) + frame)
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        answer = await reader.readexactly(size)
        writer.close()
    correlation_id, error = struct.unpack_from(">ih", answer)
    assert (correlation_id, error) == (77, 0)
    count, at = decode_uvarint(answer, 6)
    ranges = {}
    for _ in range(count - 1):
        key, oldest, newest, tags = struct.unpack_from(">hhhb", answer, at)
        assert tags == 0
        ranges[key], at = (oldest, newest), at + 7
    assert ranges[API_VERSIONS] == (0, 4)
    assert ranges[PRODUCE_KEY][0] == 0
    # Throttle time, then no tagged fields: features in v3 would stop a Java client (KAFKA-17011).
    assert answer[at:] == b"\0\0\0\0\0"


async def epoch_of(broker: LocalBroker, topic: str = "t") -> int:
    made = await broker.make_topic(topic)
    epoch = made.partitions[0].leader_epoch
    assert isinstance(epoch, int)
    return epoch


async def test_a_leader_epoch_rises_with_every_start_and_is_above_all_in_the_log(
    tmp_path: Path,
) -> None:
    """An epoch that went back sent a client into an endless loop; an equal one was ignored."""
    seen: list[int] = []
    for _ in range(4):
        async with local_broker(tmp_path) as broker:
            seen.append(await epoch_of(broker))
            assert await epoch_of(broker) == seen[-1]
            await broker.produce("t", batch(1))
            content = (await fetch(broker, "t", len(seen) - 1)).records
            assert isinstance(content, bytes | memoryview)
            header_epoch = read_header(content, 0).leader_epoch
            assert header_epoch == seen[-1]
    assert seen == sorted(set(seen))


async def produce_by_id(broker: LocalBroker, topic_id: Any) -> int:
    sent = (ProducePartition(index=0, records=batch(1)),)
    request = ProduceRequest(
        acks=-1,
        timeout_ms=60_000,
        topic_data=(ProduceTopic(topic_id=topic_id, partition_data=sent),),
    )
    answer = await broker.ask(PRODUCE, request, 13)
    return answer.responses[0].partition_responses[0].error_code


async def fetch_by_id(broker: LocalBroker, topic_id: Any) -> tuple[int, int]:
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=1, topics=(FetchTopic(topic_id=topic_id, partitions=(asked,)),)
    )
    found = (await broker.ask(FETCH, request, 13)).topics[0].partitions[0]
    return found.error_code, found.high_watermark


async def commit_by_id(broker: LocalBroker, topic_id: Any) -> int:
    await broker.ask(FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=("g",)))
    part = OffsetCommitPartition(
        partition_index=0, committed_offset=1, committed_leader_epoch=-1, committed_metadata=""
    )
    topic = OffsetCommitTopic(topic_id=topic_id, partitions=(part,))
    request = OffsetCommitRequest(group_id="g", topics=(topic,))
    async with asyncio.timeout(60):
        while True:
            answer = await broker.ask(OFFSET_COMMIT, request, 10)
            code = answer.topics[0].partitions[0].error_code
            if code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                return code


async def test_a_topic_made_again_is_another_topic(tmp_path: Path) -> None:
    """A topic was made again with a lower epoch; clients kept the old metadata, and old offsets."""
    async with local_broker(tmp_path) as broker:
        old = await create(broker, "t")
        assert await produce_by_id(broker, old.topic_id) == ErrorCode.NONE
    async with local_broker(tmp_path) as broker:
        assert await epoch_of(broker) > 0
        await delete(broker, "t")
        new = await create(broker, "t")
        told = await broker.make_topic("t")
        assert told.topic_id == new.topic_id != old.topic_id
        unknown = ErrorCode.UNKNOWN_TOPIC_ID
        assert await produce_by_id(broker, old.topic_id) == unknown
        assert (await fetch_by_id(broker, old.topic_id))[0] == unknown
        assert await commit_by_id(broker, old.topic_id) == unknown
        assert await fetch_by_id(broker, new.topic_id) == (ErrorCode.NONE, 0)
        assert await produce_by_id(broker, new.topic_id) == ErrorCode.NONE
        assert await commit_by_id(broker, new.topic_id) == ErrorCode.NONE


async def test_a_session_of_a_topic_that_is_made_again_is_told_so(tmp_path: Path) -> None:
    """A fetch session kept reading under the id of a topic that was no more."""
    async with local_broker(tmp_path) as broker:
        old = await create(broker, "t")
        asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        topic = FetchTopic(topic_id=old.topic_id, partitions=(asked,))
        first = await broker.ask(
            FETCH, FetchRequest(max_wait_ms=0, min_bytes=1, session_epoch=0, topics=(topic,)), 13
        )
        await delete(broker, "t")
        await create(broker, "t")
        await broker.produce("t", batch(1))
        again = FetchRequest(
            max_wait_ms=5_000,
            min_bytes=1,
            session_id=first.session_id,
            session_epoch=1,
            topics=(),
        )
        answer = await broker.ask(FETCH, again, 13)
        (found,) = answer.topics[0].partitions
        assert (answer.topics[0].topic_id, found.error_code) == (
            old.topic_id,
            ErrorCode.UNKNOWN_TOPIC_ID,
        )
        assert len(found.records or b"") == 0


@pytest.mark.parametrize("version", range(5, FETCH.max_version + 1))
async def test_who_reads_below_the_start_is_told_where_the_log_starts(
    tmp_path: Path, version: int
) -> None:
    """The error came without the start, so that a mirror could not tell where to go on."""
    async with local_broker(tmp_path) as broker:
        made = await create(broker, "t")
        await broker.produce("t", batch(10))
        assert await trim(broker, "t", 4) == 4
        request = reading("t", 3)
        by_id = FetchTopic(
            topic="t", topic_id=made.topic_id, partitions=request.topics[0].partitions
        )
        asked = FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=(by_id,))
        answer = (await broker.ask(FETCH, asked, version)).topics[0].partitions[0]
        assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert (answer.log_start_offset, answer.high_watermark) == (4, 10)


@pytest.mark.slow
async def test_a_client_whose_records_are_gone_goes_on_at_the_start(tmp_path: Path) -> None:
    """A consumer below the start jumped to the end, and skipped all that was still there."""
    async with local_broker(tmp_path) as broker:
        await create(broker, "t")
        for _ in range(10):
            await broker.produce("t", batch(1))
        await trim(broker, "t", 4)
        offsets = await asyncio.to_thread(offsets_from, str(broker.address), "t", 1, 6)
    assert offsets == [4, 5, 6, 7, 8, 9]


def offsets_from(bootstrap: str, topic: str, offset: int, count: int) -> list[int]:
    """Read with librdkafka from an offset; where that is gone, from the earliest there is."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    offsets: list[int] = []

    def has_all() -> bool:
        for message in consumer.consume(count, timeout=0.2):
            assert message.error() is None, message.error()
            offsets.append(message.offset())
        return len(offsets) >= count

    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, offset)])
        wait_until(has_all, lambda: f"{count} records read, only {offsets}")
    finally:
        consumer.close()
    return offsets
