"""Produce: v3-13; v0 is advertised as Kafka does (KAFKA-18659), v0-2 are refused.

v13: topics by id. Differs from Kafka: transactional batches are refused with INVALID_TXN_STATE,
since there is no transaction coordinator yet; answers name no new leader (one broker has none).
"""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Final

from twinlog.broker.context import Broker, Context
from twinlog.broker.partitions import Partition
from twinlog.cluster.facts import INTERNAL_TOPICS
from twinlog.model.errors import ApiError, DiskError, ErrorCode, InvalidRecordsError, WireError
from twinlog.model.ids import NO_TOPIC_ID, TopicId, TopicName, TopicPartition
from twinlog.wire.messages.produce import (
    PRODUCE,
    ProducedPartition,
    ProducedTopic,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
    RecordError,
)

NO_ACKS: Final = 0
LEADER_ACKS: Final = 1
ALL_ACKS: Final = -1


@dataclass(frozen=True, slots=True)
class Unacknowledged:
    """An append that waits for the in-sync replicas: its partition and the offset after it."""

    partition: Partition
    end: int


def handle_produce(
    request: ProduceRequest, context: Context
) -> ProduceResponse | Awaitable[ProduceResponse] | None:
    """Append every partition's batches; answer at once unless acks=all has to wait."""
    if request.acks not in (NO_ACKS, LEADER_ACKS, ALL_ACKS):
        refusal = ApiError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks {request.acks}: -1, 0 or 1")
        return _refuse_all(request, refusal, context.broker)
    waits: list[Unacknowledged] = []
    topics = tuple(_append_topic(topic, request, context, waits) for topic in request.topic_data)
    response = ProduceResponse(responses=topics)
    if request.acks == NO_ACKS:
        _check_unacknowledged(topics)
        return None
    return _when_replicated(response, waits, request, context) if waits else response


def _append_topic(
    topic: ProduceTopic, request: ProduceRequest, context: Context, waits: list[Unacknowledged]
) -> ProducedTopic:
    try:
        name = topic.name or _name_of(topic, context)
        if name in INTERNAL_TOPICS:
            why = f"{name} is written by the broker itself, not by clients"
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, why)
    except ApiError as error:
        return _refused_topic(topic, error, context.broker)
    return ProducedTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_responses=tuple(
            _append(TopicPartition(TopicName(name), sent.index), sent, request, context, waits)
            for sent in topic.partition_data
        ),
    )


def _append(
    of: TopicPartition,
    sent: ProducePartition,
    request: ProduceRequest,
    context: Context,
    waits: list[Unacknowledged],
) -> ProducedPartition:
    broker = context.broker
    try:
        partition = broker.partitions.find(of) or _explain_absence(of, context)
        _check(partition, sent, request)
        assert sent.records is not None
        appended = partition.append(sent.records, now_ms=broker.clock.wall_ms())  # type: ignore[arg-type]
    except ApiError as error:
        return _refused(of, sent, error, broker)
    except DiskError as error:
        return _refused(of, sent, ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)), broker)
    if request.acks == ALL_ACKS and partition.high_watermark <= appended.last_offset:
        waits.append(Unacknowledged(partition, appended.last_offset + 1))
    return ProducedPartition(
        index=sent.index,
        base_offset=appended.first_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=partition.log.start,
    )


def _check(partition: Partition, sent: ProducePartition, request: ProduceRequest) -> None:
    if sent.records is None or len(sent.records) == 0:
        raise ApiError(ErrorCode.INVALID_RECORD, "no records were sent for this partition")
    if request.transactional_id is not None:
        raise ApiError(
            ErrorCode.INVALID_TXN_STATE, "this broker has no transaction coordinator yet"
        )
    if request.acks == ALL_ACKS and partition.is_under_min_isr:
        raise ApiError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"{partition.of} has {len(partition.replica.isr)} in-sync replicas, "
            f"min.insync.replicas asks for {partition.min_insync_replicas}",
        )


def _name_of(topic: ProduceTopic, context: Context) -> str:
    if topic.topic_id == NO_TOPIC_ID:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the topic has no name")
    fact = context.broker.facts.image.topics_by_id.get(TopicId(topic.topic_id))
    if fact is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, f"no topic has the id {topic.topic_id}")
    return fact.name


def _explain_absence(of: TopicPartition, context: Context) -> Partition:
    """Raise what a client should be told about a partition that is not here."""
    raise context.broker.facts.why_absent(of)


def _check_unacknowledged(topics: tuple[ProducedTopic, ...]) -> None:
    """Close the connection after a failed append without acks: all a producer can notice."""
    for topic in topics:
        for partition in topic.partition_responses:
            if partition.error_code != ErrorCode.NONE:
                raise WireError(
                    f"produce with acks=0 to {topic.name}-{partition.index} failed: "
                    f"{ErrorCode(partition.error_code).name}: {partition.error_message}"
                )


async def _when_replicated(
    response: ProduceResponse,
    waits: list[Unacknowledged],
    request: ProduceRequest,
    context: Context,
) -> ProduceResponse:
    await context.broker.waiting.until(
        lambda: all(w.partition.high_watermark >= w.end for w in waits),
        [w.partition.of for w in waits],
        timeout_s=max(request.timeout_ms, 0) / 1000,
    )
    late = {w.partition.of for w in waits if w.partition.high_watermark < w.end}
    return _with_timeouts(response, late, context) if late else response


def _with_timeouts(
    response: ProduceResponse, late: set[TopicPartition], context: Context
) -> ProduceResponse:
    why = ApiError(ErrorCode.REQUEST_TIMED_OUT, "not all in-sync replicas have it yet")
    topics = []
    for topic in response.responses:
        fact = context.broker.facts.image.topics_by_id.get(TopicId(topic.topic_id))
        name = TopicName(topic.name or (fact.name if fact else ""))
        partitions = tuple(
            _failed(p.index, why, context.broker) if TopicPartition(name, p.index) in late else p
            for p in topic.partition_responses
        )
        topics.append(
            ProducedTopic(name=topic.name, topic_id=topic.topic_id, partition_responses=partitions)
        )
    return ProduceResponse(responses=tuple(topics))


def _refuse_all(request: ProduceRequest, error: ApiError, broker: Broker) -> ProduceResponse:
    return ProduceResponse(
        responses=tuple(_refused_topic(topic, error, broker) for topic in request.topic_data)
    )


def _refused_topic(topic: ProduceTopic, error: ApiError, broker: Broker) -> ProducedTopic:
    return ProducedTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_responses=tuple(
            _refused(TopicPartition(TopicName(topic.name), sent.index), sent, error, broker)
            for sent in topic.partition_data
        ),
    )


def _refused(
    of: TopicPartition, sent: ProducePartition, error: ApiError, broker: Broker
) -> ProducedPartition:
    traffic = broker.partitions.traffic.of(of.topic)
    traffic.failed_produces += 1
    if error.code in _TOO_LARGE and sent.records is not None:
        traffic.bytes_rejected += len(sent.records)
    return _failed(sent.index, error, broker)


_TOO_LARGE: Final = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


def _failed(index: int, error: ApiError, broker: Broker) -> ProducedPartition:
    broker.requests.of(PRODUCE).errors[error.code] += 1
    # A record is told by its index alone: with texts, a small batch could ask for a huge answer.
    bad_records = error.indexes if isinstance(error, InvalidRecordsError) else ()
    return ProducedPartition(
        index=index,
        error_code=error.code,
        base_offset=-1,
        record_errors=tuple(RecordError(batch_index=one) for one in bad_records),
        error_message=error.why,
    )
