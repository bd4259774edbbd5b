"""Fetch: v4-18, for consumers and for mirrors of this cluster; records leave by sendfile.

v7: incremental sessions. v12: divergence is told in the answer. v13: topics by id. Differs from
Kafka: ``rack_id`` and ``replica_id`` are read but change nothing (one broker holds every replica).
"""

import logging
from collections.abc import Awaitable, Hashable
from dataclasses import dataclass
from typing import Final

from twinlog.broker.context import Broker, Context
from twinlog.broker.partitions import Partition
from twinlog.config.coordinators import FETCH_MAX_BYTES
from twinlog.model.errors import ApiError, CorruptBatchError, DiskError, ErrorCode
from twinlog.model.ids import LeaderEpoch, Offset, TopicId, TopicName, TopicPartition
from twinlog.replication.fetch_sessions import FetchContext, SessionPartition
from twinlog.replication.visible import READ_COMMITTED, Reader
from twinlog.storage.log import LogSlice
from twinlog.wire.messages.fetch import (
    FETCH,
    AbortedTransaction,
    EpochEndOffset,
    FetchedPartition,
    FetchedTopic,
    FetchPartition,
    FetchRequest,
    FetchResponse,
)

log = logging.getLogger(__name__)

TOPIC_IDS_SINCE: Final = 13
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
    broker = context.broker
    asked = broker.fetch_sessions.begin(
        request,
        uses_topic_ids=context.api_version >= TOPIC_IDS_SINCE,
        is_follower=_reader(request) is Reader.FOLLOWER,
        now_ms=broker.clock.now_ms(),
    )
    is_enough = _read_all(asked, request, broker)
    if is_enough or request.max_wait_ms <= 0:
        return _finish(asked, broker)
    return _wait_and_read(asked, request, broker)


async def _wait_and_read(
    asked: FetchContext, request: FetchRequest, broker: Broker
) -> FetchResponse:
    # The first look here is not the second in vain: this begins a turn of the event loop after
    # handle_fetch looked, and what was appended in between found nobody waiting.
    deadline_ms = broker.clock.now_ms() + request.max_wait_ms
    keys = _watched(asked, broker)
    while not _read_all(asked, request, broker):
        left_ms = deadline_ms - broker.clock.now_ms()
        if left_ms <= 0 or not await broker.waiting.notice(keys, timeout_s=left_ms / 1000):
            break
    return _finish(asked, broker)


def _finish(asked: FetchContext, broker: Broker) -> FetchResponse:
    session_id, topics = asked.finish()
    _count(topics, broker, is_follower=asked.session.is_follower)
    return FetchResponse(session_id=session_id, topics=topics)


def _count(topics: tuple[FetchedTopic, ...], broker: Broker, *, is_follower: bool) -> None:
    """Count what goes out; only now, since a partition may be read several times until then."""
    traffic = broker.partitions.traffic
    for topic in topics:
        count = 0
        for partition in topic.partitions:
            records = partition.records
            if records is not None:
                count += len(records)
            if partition.error_code:
                broker.requests.of(FETCH).errors[partition.error_code] += 1
                traffic.of(_topic_name(topic, broker) or "").failed_fetches += 1
        if count and is_follower:
            traffic.replication_bytes_out += count
        elif count:
            traffic.of(_topic_name(topic, broker) or "").bytes_out += count


def _watched(asked: FetchContext, broker: Broker) -> tuple[Hashable, ...]:
    """Give what to wait for: the session, or without one every partition."""
    if asked.is_cached:
        return (asked.session,)
    names = ((_topic_name(p, broker), p.asked.partition) for p in asked.to_read())
    return tuple(TopicPartition(name, index) for name, index in names if name is not None)


def _reader(request: FetchRequest) -> Reader:
    return Reader.of(request.replica_id, request.isolation_level)


def _read_all(asked: FetchContext, request: FetchRequest, broker: Broker) -> bool:
    """Look at what may have changed; tell whether the answer is worth sending now."""
    bytes_max = max(min(request.max_bytes, broker.settings[FETCH_MAX_BYTES]), 0)
    budget = Budget(bytes_max)
    for wanted in asked.to_read():
        answer, is_drained = _read(wanted, request, broker, budget)
        asked.offer(wanted, answer, is_drained=is_drained)
    taken_bytes = bytes_max - budget.left_bytes
    return (
        budget.must_answer_now or taken_bytes >= request.min_bytes or not asked.session.partitions
    )


def _read(
    wanted: SessionPartition, request: FetchRequest, broker: Broker, budget: Budget
) -> tuple[FetchedPartition, bool]:
    """Give the answer for a partition, and whether the reader then has all it may see."""
    try:
        return _read_partition(_find(wanted, broker), wanted.asked, request, budget)
    except ApiError as error:
        code = error.code
    except DiskError:
        code = ErrorCode.KAFKA_STORAGE_ERROR
    except CorruptBatchError as error:
        log.error("a batch on disk is damaged", extra={"why": str(error), "topic": wanted.topic})
        code = ErrorCode.CORRUPT_MESSAGE
    budget.must_answer_now = True
    failed = FetchedPartition(
        partition_index=wanted.asked.partition, error_code=code, high_watermark=-1
    )
    return failed, False


def _find(wanted: SessionPartition, broker: Broker) -> Partition:
    name = _topic_name(wanted, broker)
    if name is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, f"no topic has the id {wanted.topic_id}")
    of = TopicPartition(name, wanted.asked.partition)
    partition = broker.partitions.find(of)
    if partition is None:
        raise broker.facts.why_absent(of)
    partition.check_leader_epoch(wanted.asked.current_leader_epoch)
    return partition


def _topic_name(wanted: SessionPartition | FetchedTopic, broker: Broker) -> TopicName | None:
    if wanted.topic:
        return TopicName(wanted.topic)
    fact = broker.facts.image.topics_by_id.get(TopicId(wanted.topic_id))
    return None if fact is None else fact.name


def _read_partition(
    partition: Partition, asked: FetchPartition, request: FetchRequest, budget: Budget
) -> tuple[FetchedPartition, bool]:
    partition.traffic.fetches += 1
    divergence = _divergence(partition, asked)
    if divergence is not None:
        budget.must_answer_now = True
        return _answer(partition, asked, request, diverging_epoch=divergence), False
    if not partition.log.start <= asked.fetch_offset <= partition.log.end:
        # The client can go on only if it is told where the log starts now.
        budget.must_answer_now = True
        code = ErrorCode.OFFSET_OUT_OF_RANGE
        return _answer(partition, asked, request, error_code=code), False
    up_to = partition.visible_end(_reader(request))
    found = _take(partition, asked, up_to, budget)
    is_drained = asked.fetch_offset >= up_to
    return _answer(partition, asked, request, found=found), is_drained


def _take(
    partition: Partition, asked: FetchPartition, up_to: Offset, budget: Budget
) -> LogSlice | None:
    """Find records for the answer, as many as the partition's and the answer's bounds allow.

    The first batch of the whole answer is given even if it alone is over the bounds (KIP-74).
    """
    if budget.left_bytes <= 0 and not budget.is_untouched:
        return None
    found = partition.log.read(
        Offset(asked.fetch_offset),
        max_bytes=min(asked.partition_max_bytes, budget.left_bytes),
        up_to=up_to,
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
