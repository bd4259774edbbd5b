"""ListOffsets: v1-11. OffsetForLeaderEpoch: v2-4.

Differs from Kafka: nothing is tiered, so the offsets -5 and -6 ask for are never there (-1).
"""

import logging
from collections.abc import Callable
from typing import Final

from twinlog.broker.context import Context
from twinlog.broker.partitions import Partition
from twinlog.model.errors import ApiError, CorruptBatchError, DiskError, ErrorCode
from twinlog.model.ids import NO_EPOCH, NO_OFFSET, LeaderEpoch, Offset, TopicName, TopicPartition
from twinlog.replication.visible import Reader
from twinlog.storage.lookup import RecordPlace
from twinlog.wire.messages.offsets import (
    EpochEndOffset,
    EpochEndTopic,
    EpochPartition,
    ListedPartition,
    ListedTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)

log = logging.getLogger(__name__)

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6

Found = tuple[int, Offset]
"""A timestamp and an offset; -1 for what there is not."""
NOT_FOUND: Final[Found] = (-1, NO_OFFSET)


def handle_list_offsets(request: ListOffsetsRequest, context: Context) -> ListOffsetsResponse:
    """Find an offset for each partition: an end of the log, or the first at or after a time."""
    return ListOffsetsResponse(
        topics=tuple(
            ListedTopic(
                name=topic.name,
                partitions=tuple(
                    _list(
                        TopicPartition(TopicName(topic.name), asked.partition_index),
                        asked,
                        request,
                        context,
                    )
                    for asked in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def _list(
    of: TopicPartition, asked: ListOffsetsPartition, request: ListOffsetsRequest, context: Context
) -> ListedPartition:
    try:
        partition = _led(of, asked.current_leader_epoch, context)
        timestamp, offset = _find(
            partition, asked.timestamp, Reader.of(request.replica_id, request.isolation_level)
        )
    except ApiError as error:
        return ListedPartition(partition_index=of.partition, error_code=error.code)
    except DiskError:
        return ListedPartition(
            partition_index=of.partition, error_code=ErrorCode.KAFKA_STORAGE_ERROR
        )
    except CorruptBatchError as error:
        log.error("a batch on disk is damaged", extra={"why": str(error), "partition": str(of)})
        return ListedPartition(partition_index=of.partition, error_code=ErrorCode.CORRUPT_MESSAGE)
    epoch = NO_EPOCH
    if offset != NO_OFFSET:
        known = partition.log.epochs.epoch_at(offset)
        epoch = known if known != NO_EPOCH else partition.leader_epoch
    return ListedPartition(
        partition_index=of.partition, timestamp=timestamp, offset=offset, leader_epoch=epoch
    )


def _find(partition: Partition, timestamp: int, reader: Reader) -> Found:
    visible_end = partition.visible_end(reader)
    special: dict[int, Callable[[], Found]] = {
        LATEST: lambda: (-1, visible_end),
        EARLIEST: lambda: (-1, partition.log.start),
        EARLIEST_LOCAL: lambda: (-1, partition.log.start),
        MAX_TIMESTAMP: lambda: _visible(partition.log.offset_of_max_timestamp(), visible_end),
        LATEST_TIERED: lambda: NOT_FOUND,
        EARLIEST_PENDING_UPLOAD: lambda: NOT_FOUND,
    }
    if timestamp in special:
        return special[timestamp]()
    if timestamp < 0:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"timestamp {timestamp} means nothing")
    return _visible(partition.log.offset_for_time(timestamp), visible_end)


def _visible(found: RecordPlace | None, visible_end: Offset) -> Found:
    """Pass on a record that the reader may see; what is not committed yet is not there for it."""
    if found is None or found.offset >= visible_end:
        return NOT_FOUND
    return found.timestamp, Offset(found.offset)


def handle_offset_for_leader_epoch(
    request: OffsetForLeaderEpochRequest, context: Context
) -> OffsetForLeaderEpochResponse:
    """Tell where each asked epoch ended here (KIP-279), so that a reader can see if it diverged."""
    return OffsetForLeaderEpochResponse(
        topics=tuple(
            EpochEndTopic(
                topic=topic.topic,
                partitions=tuple(
                    _epoch_end(
                        TopicPartition(TopicName(topic.topic), asked.partition), asked, context
                    )
                    for asked in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def _epoch_end(of: TopicPartition, asked: EpochPartition, context: Context) -> EpochEndOffset:
    try:
        partition = _led(of, asked.current_leader_epoch, context)
    except ApiError as error:
        return EpochEndOffset(partition=of.partition, error_code=error.code)
    epoch, end = partition.end_of_epoch(LeaderEpoch(asked.leader_epoch))
    return EpochEndOffset(partition=of.partition, leader_epoch=epoch, end_offset=end)


def _led(of: TopicPartition, current_leader_epoch: int, context: Context) -> Partition:
    partition = context.broker.partitions.find(of)
    if partition is None:
        raise context.broker.facts.why_absent(of)
    partition.check_leader_epoch(current_leader_epoch)
    return partition
