from pathlib import Path

import pytest

from support.batches import batch
from support.brokers import LocalBroker, local_broker
from twinlog.model.errors import ErrorCode
from twinlog.wire.messages.offsets import (
    LIST_OFFSETS,
    OFFSET_FOR_LEADER_EPOCH,
    EpochEndOffset,
    EpochPartition,
    EpochTopic,
    ListedPartition,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
)


async def listed(
    broker: LocalBroker, timestamp: int, *, isolation_level: int = 0, topic: str = "t"
) -> ListedPartition:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(
        isolation_level=isolation_level,
        topics=(ListOffsetsTopic(name=topic, partitions=(asked,)),),
    )
    answer = await broker.ask(LIST_OFFSETS, request)
    return answer.topics[0].partitions[0]


async def filled(broker: LocalBroker) -> None:
    await broker.make_topic("t")
    for timestamp in (1_000, 3_000, 2_000):
        await broker.produce("t", batch(2, timestamp=timestamp))


@pytest.mark.parametrize(
    ("timestamp", "offset"),
    [(-1, 6), (-2, 0), (-3, 2), (-4, 0), (-5, -1), (-6, -1), (0, 0), (1_500, 2), (9_999, -1)],
)
async def test_an_offset_is_found_by_time_or_by_name(
    tmp_path: Path, timestamp: int, offset: int
) -> None:
    async with local_broker(tmp_path) as broker:
        await filled(broker)
        found = await listed(broker, timestamp)
        assert (found.error_code, found.offset) == (ErrorCode.NONE, offset)
        if offset < 0:
            assert found.timestamp == -1


async def test_nothing_above_the_last_stable_offset_is_found_for_read_committed(
    tmp_path: Path,
) -> None:
    async with local_broker(tmp_path) as broker:
        await filled(broker)
        in_transaction = batch(1, timestamp=7_000, producer=(9, 0, 0), is_transactional=True)
        await broker.produce("t", in_transaction)
        assert (await listed(broker, 6_000)).offset == 6
        assert (await listed(broker, 6_000, isolation_level=1)).offset == -1
        assert (await listed(broker, -1, isolation_level=1)).offset == 6
        assert (await listed(broker, -1)).offset == 7


async def test_a_timestamp_that_means_nothing_is_refused(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        await filled(broker)
        assert (await listed(broker, -99)).error_code == ErrorCode.INVALID_REQUEST
        missing = await listed(broker, -1, topic="nowhere")
        assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def epoch_end(broker: LocalBroker, epoch: int) -> EpochEndOffset:
    asked = EpochPartition(partition=0, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(topics=(EpochTopic(topic="t", partitions=(asked,)),))
    answer = await broker.ask(OFFSET_FOR_LEADER_EPOCH, request)
    return answer.topics[0].partitions[0]


async def test_every_restart_begins_an_epoch_that_ends_where_the_next_begins(
    tmp_path: Path,
) -> None:
    async with local_broker(tmp_path) as broker:
        await filled(broker)
        first = (await broker.make_topic("t")).partitions[0].leader_epoch
    async with local_broker(tmp_path) as broker:
        second = (await broker.make_topic("t")).partitions[0].leader_epoch
        assert second > first
        # Nothing was written in the new epoch yet, and it is known all the same.
        now = await epoch_end(broker, second)
        assert (now.leader_epoch, now.end_offset) == (second, 6)
        await broker.produce("t", batch(1))
        old, new = await epoch_end(broker, first), await epoch_end(broker, second)
        assert (old.leader_epoch, old.end_offset) == (first, 6)
        assert (new.leader_epoch, new.end_offset) == (second, 7)
