"""Fetch: v4-18, for consumers and for mirrors of this cluster; records leave by sendfile.

v7: incremental sessions. v12: divergence is told in the answer. v13: topics by id. Differs from
Kafka: ``rack_id`` and ``replica_id`` are read but change nothing (one broker holds every replica).
"""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Final

from twinlog.broker.context import Context
from twinlog.broker.partitions import Partition
from twinlog.config.coordinators import FETCH_MAX_BYTES
from twinlog.model.errors import ApiError, DiskError, ErrorCode
from twinlog.model.ids import NO_OFFSET, LeaderEpoch, Offset, TopicId, TopicName, TopicPartition
from twinlog.replication.visible import READ_COMMITTED, Reader
from twinlog.storage.log import LogSlice
from twinlog.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchedPartition,
    FetchedTopic,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)

NO_DIVERGENCE: Final = EpochEndOffset()


@dataclass(slots=True)
class Budget:
    """How many bytes of records may still go into the answer."""

    left_bytes: int
    is_untouched: bool = True
    must_answer_now: bool = False


def handle_fetch(
    request: FetchRequest, context: Context
) -> FetchResponse | Awaitable[FetchResponse]:
    """Read what is there; if it is less than ``min_bytes`` wait for more up to ``max_wait_ms``."""
    response, is_enough = _read_all(request, context)
    if is_enough or request.max_wait_ms <= 0:
        return response
    return _wait_and_read(request, context)


async def _wait_and_read(request: FetchRequest, context: Context) -> FetchResponse:
    clock = context.broker.clock
    deadline_ms = clock.now_ms() + request.max_wait_ms
    watched = _watched(request, context)
    while True:
        left_ms = deadline_ms - clock.now_ms()
        seen = [(of, _visible_end(of, request, context)) for of in watched]
        moved = await context.broker.waiting.until(
            lambda seen=seen: any(  # type: ignore[misc]
                end != _visible_end(of, request, context) for of, end in seen
            ),
            watched,
            timeout_s=max(left_ms, 0) / 1000,
        )
        response, is_enough = _read_all(request, context)
        if is_enough or not moved:
            return response


def _watched(request: FetchRequest, context: Context) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(TopicName(_name_of(topic, context) or ""), asked.partition)
        for topic in request.topics
        for asked in topic.partitions
    )


def _visible_end(of: TopicPartition, request: FetchRequest, context: Context) -> Offset:
    partition = context.broker.partitions.find(of)
    return NO_OFFSET if partition is None else partition.visible_end(_reader(request))


def _reader(request: FetchRequest) -> Reader:
    return Reader.of(request.replica_id, request.isolation_level)


def _read_all(request: FetchRequest, context: Context) -> tuple[FetchResponse, bool]:
    """Give the answer as of now, and whether it is worth sending before the deadline."""
    bytes_max = max(min(request.max_bytes, context.broker.settings[FETCH_MAX_BYTES]), 0)
    budget = Budget(bytes_max)
    topics = tuple(
        FetchedTopic(
            topic=topic.topic,
            topic_id=topic.topic_id,
            partitions=tuple(
                _read(topic, asked, request, context, budget) for asked in topic.partitions
            ),
        )
        for topic in request.topics
    )
    taken_bytes = bytes_max - budget.left_bytes
    is_enough = budget.must_answer_now or taken_bytes >= request.min_bytes or not request.topics
    return FetchResponse(topics=topics), is_enough


def _read(
    topic: FetchTopic,
    asked: FetchPartition,
    request: FetchRequest,
    context: Context,
    budget: Budget,
) -> FetchedPartition:
    try:
        return _read_partition(_find(topic, asked, context), asked, request, budget)
    except ApiError as error:
        budget.must_answer_now = True
        return FetchedPartition(
            partition_index=asked.partition, error_code=error.code, high_watermark=-1
        )
    except DiskError:
        budget.must_answer_now = True
        return FetchedPartition(
            partition_index=asked.partition,
            error_code=ErrorCode.KAFKA_STORAGE_ERROR,
            high_watermark=-1,
        )


def _find(topic: FetchTopic, asked: FetchPartition, context: Context) -> Partition:
    name = _name_of(topic, context)
    if name is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, f"no topic has the id {topic.topic_id}")
    of = TopicPartition(TopicName(name), asked.partition)
    partition = context.broker.partitions.find(of)
    if partition is None:
        raise context.broker.facts.why_absent(of)
    partition.check_leader_epoch(asked.current_leader_epoch)
    return partition


def _name_of(topic: FetchTopic, context: Context) -> str | None:
    if context.api_version < 13:
        return topic.topic
    fact = context.broker.facts.image.topics_by_id.get(TopicId(topic.topic_id))
    return None if fact is None else fact.name


def _read_partition(
    partition: Partition, asked: FetchPartition, request: FetchRequest, budget: Budget
) -> FetchedPartition:
    divergence = _divergence(partition, asked)
    if divergence is not None:
        budget.must_answer_now = True
        return _answer(partition, asked, request, diverging_epoch=divergence)
    if not partition.log.start <= asked.fetch_offset <= partition.log.end:
        # The client can go on only if it is told where the log starts now.
        budget.must_answer_now = True
        return _answer(partition, asked, request, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    return _answer(partition, asked, request, found=_take(partition, asked, request, budget))


def _take(
    partition: Partition, asked: FetchPartition, request: FetchRequest, budget: Budget
) -> LogSlice | None:
    """Find records for the answer, as many as the partition's and the answer's bounds allow.

    The first batch of the whole answer is given even if it alone is over the bounds (KIP-74).
    """
    if budget.left_bytes <= 0 and not budget.is_untouched:
        return None
    found = partition.log.read(
        Offset(asked.fetch_offset),
        max_bytes=min(asked.partition_max_bytes, budget.left_bytes),
        up_to=partition.visible_end(_reader(request)),
        at_least_one=budget.is_untouched,
    )
    if found is not None:
        budget.left_bytes -= len(found.region)
        budget.is_untouched = False
    return found


def _answer(
    partition: Partition,
    asked: FetchPartition,
    request: FetchRequest,
    *,
    error_code: ErrorCode = ErrorCode.NONE,
    diverging_epoch: EpochEndOffset = NO_DIVERGENCE,
    found: LogSlice | None = None,
) -> FetchedPartition:
    aborted: tuple[AbortedTransaction, ...] | None = None
    if request.isolation_level == READ_COMMITTED:
        aborted = () if found is None else _aborted(partition, asked, found)
    return FetchedPartition(
        partition_index=asked.partition,
        error_code=error_code,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.last_stable_offset,
        log_start_offset=partition.log.start,
        aborted_transactions=aborted,
        records=b"" if found is None else found.region,
        diverging_epoch=diverging_epoch,
    )


def _aborted(
    partition: Partition, asked: FetchPartition, found: LogSlice
) -> tuple[AbortedTransaction, ...]:
    return tuple(
        AbortedTransaction(producer_id=txn.producer_id, first_offset=txn.first_offset)
        for txn in partition.log.aborted_between(Offset(asked.fetch_offset), found.bound)
    )


def _divergence(partition: Partition, asked: FetchPartition) -> EpochEndOffset | None:
    """Tell where the reader's log and ours part, when it says in which epoch it stands (KIP-595).

    Raises ApiError OFFSET_OUT_OF_RANGE when our log knows nothing of that epoch.
    """
    if asked.last_fetched_epoch < 0:
        return None
    epoch, end = partition.end_of_epoch(LeaderEpoch(asked.last_fetched_epoch))
    if epoch < 0 or end < 0:
        raise ApiError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{partition.of} knows no epoch {asked.last_fetched_epoch}",
        )
    if epoch < asked.last_fetched_epoch or end < asked.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end)
    return None
