"""OffsetCommit: v2-10. OffsetFetch: v1-10. OffsetDelete: v0.

Differs from Kafka: there are no transactions yet, so every offset is stable and ``require_stable``
changes nothing; member epochs (v9) are not looked at, since there are no groups of KIP-848 yet.
"""

from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from twinlog.broker.context import Context
from twinlog.config.coordinators import OFFSETS_COMMIT_TIMEOUT_MS
from twinlog.groups.commands import CommitOffsets, CommittedOffset, MemberClaim
from twinlog.model.bounds import GROUP_TEXT_BYTES_MAX
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import (
    NO_TOPIC_ID,
    LeaderEpoch,
    Offset,
    TopicId,
    TopicName,
    TopicPartition,
)
from twinlog.wire.messages.group_offsets import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommittedPartition,
    OffsetCommittedTopic,
    OffsetDeletedPartition,
    OffsetDeletedTopic,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchedGroup,
    OffsetFetchedPartition,
    OffsetFetchedPartitions,
    OffsetFetchedTopic,
    OffsetFetchedTopics,
    OffsetFetchGroup,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopics,
)

NOTHING_COMMITTED: Final = CommittedOffset(Offset(-1))
KEEP_AS_LONG_AS_THE_BROKER_SAYS: Final = -1


async def handle_offset_commit(
    request: OffsetCommitRequest, context: Context
) -> OffsetCommitResponse:
    """Commit what can be committed; each partition has its own result."""
    results: dict[tuple[UUID | str, int], ErrorCode] = {}
    wanted: dict[TopicPartition, tuple[UUID | str, int]] = {}
    offsets: list[tuple[TopicPartition, CommittedOffset]] = []
    for topic in request.topics:
        asked = topic.topic_id if context.api_version >= 10 else topic.name
        name = _name_of(asked, context)
        for sent in topic.partitions:
            key = (asked, sent.partition_index)
            of = TopicPartition(name or TopicName(""), sent.partition_index)
            results[key] = _unknown(asked, of, context)
            if results[key] is ErrorCode.NONE:
                wanted[of] = key
                offsets.append((of, _committed(sent, request, context)))
    if offsets:
        results |= {wanted[of]: e for of, e in await _commit(request, tuple(offsets), context)}
    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommittedTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    OffsetCommittedPartition(
                        partition_index=sent.partition_index,
                        error_code=results[
                            topic.topic_id if context.api_version >= 10 else topic.name,
                            sent.partition_index,
                        ],
                    )
                    for sent in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


async def _commit(
    request: OffsetCommitRequest,
    offsets: tuple[tuple[TopicPartition, CommittedOffset], ...],
    context: Context,
) -> Iterable[tuple[TopicPartition, ErrorCode]]:
    claim = MemberClaim(
        group_id=request.group_id,
        member_id=request.member_id,
        generation=request.generation_id_or_member_epoch,
        instance_id=request.group_instance_id,
    )
    command = CommitOffsets(claim, offsets)
    if len(request.group_id.encode()) > GROUP_TEXT_BYTES_MAX:
        return tuple((of, ErrorCode.INVALID_GROUP_ID) for of, _ in offsets)
    try:
        found: Iterable[tuple[TopicPartition, ErrorCode]] = await context.broker.groups.run(
            request.group_id,
            lambda shard, now_ms: shard.commit_offsets(command, now_ms),
            timeout_s=_timeout_s(context),
        )
    except ApiError as error:
        return tuple((of, error.code) for of, _ in offsets)
    return found


def _committed(
    sent: OffsetCommitPartition, request: OffsetCommitRequest, context: Context
) -> CommittedOffset:
    now_ms = context.broker.clock.wall_ms()
    keep_ms = request.retention_time_ms
    return CommittedOffset(
        offset=Offset(sent.committed_offset),
        leader_epoch=LeaderEpoch(sent.committed_leader_epoch),
        metadata=sent.committed_metadata or "",
        committed_at_ms=now_ms,
        expires_at_ms=None if keep_ms == KEEP_AS_LONG_AS_THE_BROKER_SAYS else now_ms + keep_ms,
    )


async def handle_offset_fetch(request: OffsetFetchRequest, context: Context) -> OffsetFetchResponse:
    """Tell committed offsets: of one group up to v7, of several from v8 on."""
    if context.api_version >= 8:
        groups = [await _fetched_group(group, context) for group in request.groups]
        return OffsetFetchResponse(groups=tuple(groups))
    asked = None
    if request.topics is not None:
        asked = tuple(
            OffsetFetchTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        )
    group = await _fetched_group(OffsetFetchGroup(group_id=request.group_id, topics=asked), context)
    if context.api_version == 1 and group.error_code != ErrorCode.NONE:
        group = _refused_partitions(group, asked or ())
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=tuple(
            OffsetFetchedTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetFetchedPartition(
                        partition_index=found.partition_index,
                        committed_offset=found.committed_offset,
                        committed_leader_epoch=found.committed_leader_epoch,
                        metadata=found.metadata,
                        error_code=found.error_code,
                    )
                    for found in topic.partitions
                ),
            )
            for topic in group.topics
        ),
    )


async def _fetched_group(group: OffsetFetchGroup, context: Context) -> OffsetFetchedGroup:
    """Tell one group's offsets; all of them when no topics are named.

    While the group's partition is loaded this is an error, never "nothing committed": a consumer
    would begin somewhere else.
    """
    try:
        offsets: Mapping[TopicPartition, CommittedOffset] = await context.broker.groups.run(
            group.group_id,
            lambda shard, _: shard.offsets_of(group.group_id),
            timeout_s=_timeout_s(context),
        )
    except ApiError as error:
        return OffsetFetchedGroup(group_id=group.group_id, topics=(), error_code=error.code)
    topics = _all_topics(offsets, context) if group.topics is None else group.topics
    return OffsetFetchedGroup(
        group_id=group.group_id,
        topics=tuple(_fetched_topic(topic, offsets, context) for topic in topics),
    )


def _all_topics(
    offsets: Mapping[TopicPartition, CommittedOffset], context: Context
) -> tuple[OffsetFetchTopics, ...]:
    by_topic: dict[TopicName, list[int]] = {}
    for of in offsets:
        by_topic.setdefault(of.topic, []).append(of.partition)
    image, must_have_id = context.broker.facts.image, context.api_version >= 10
    found = []
    for name, partitions in by_topic.items():
        fact = image.topics.get(name)
        if fact is not None or not must_have_id:
            topic_id = NO_TOPIC_ID if fact is None else fact.id
            found.append(
                OffsetFetchTopics(name=name, topic_id=topic_id, partition_indexes=tuple(partitions))
            )
    return tuple(found)


def _fetched_topic(
    topic: OffsetFetchTopics, offsets: Mapping[TopicPartition, CommittedOffset], context: Context
) -> OffsetFetchedTopics:
    asked = topic.topic_id if context.api_version >= 10 else topic.name
    name = _name_of(asked, context)
    error = ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.NONE
    return OffsetFetchedTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(
            _fetched_partition(
                index,
                offsets.get(TopicPartition(name or TopicName(""), index), NOTHING_COMMITTED),
                error,
            )
            for index in topic.partition_indexes
        ),
    )


def _fetched_partition(
    index: int, committed: CommittedOffset, error: ErrorCode
) -> OffsetFetchedPartitions:
    return OffsetFetchedPartitions(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        error_code=error,
    )


def _refused_partitions(
    group: OffsetFetchedGroup, asked: Iterable[OffsetFetchTopics]
) -> OffsetFetchedGroup:
    """Say of each partition what v1 cannot say of the group."""
    code = ErrorCode(group.error_code)
    return OffsetFetchedGroup(
        group_id=group.group_id,
        topics=tuple(
            OffsetFetchedTopics(
                name=topic.name,
                partitions=tuple(
                    _fetched_partition(index, NOTHING_COMMITTED, code)
                    for index in topic.partition_indexes
                ),
            )
            for topic in asked
        ),
    )


async def handle_offset_delete(
    request: OffsetDeleteRequest, context: Context
) -> OffsetDeleteResponse:
    """Delete offsets of topics that the group does not read now."""
    if not request.group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
    asked = [
        TopicPartition(TopicName(topic.name), partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    ]
    results = {of: _unknown(of.topic, of, context) for of in asked}
    known = [of for of in asked if results[of] is ErrorCode.NONE]
    results |= dict(
        await context.broker.groups.run(
            request.group_id,
            lambda shard, _: shard.delete_offsets(request.group_id, known),
            timeout_s=_timeout_s(context),
        )
    )
    return OffsetDeleteResponse(
        topics=tuple(
            OffsetDeletedTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetDeletedPartition(
                        partition_index=partition.partition_index,
                        error_code=results[
                            TopicPartition(TopicName(topic.name), partition.partition_index)
                        ],
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def _name_of(asked: UUID | str, context: Context) -> TopicName | None:
    """Give the name of the topic asked for by name or id; None for an id that is not known."""
    if isinstance(asked, str):
        return TopicName(asked)
    fact = context.broker.facts.image.topics_by_id.get(TopicId(asked))
    return None if fact is None else fact.name


def _unknown(asked: UUID | str, of: TopicPartition, context: Context) -> ErrorCode:
    """Give what is wrong with a partition that a client names; NONE when it exists."""
    if _name_of(asked, context) is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    exists = context.broker.facts.image.partition(of) is not None
    return ErrorCode.NONE if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _timeout_s(context: Context) -> float:
    return context.broker.settings[OFFSETS_COMMIT_TIMEOUT_MS] / 1000
