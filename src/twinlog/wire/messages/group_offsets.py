"""OffsetCommit: v2-10. OffsetFetch: v1-10. OffsetDelete: v0.

OffsetCommit v5: no retention time. v6: leader epoch (KIP-320). v7: static members. v8: flexible.
v9: member epochs of the new group protocol (KIP-848). v10: topics by id (KIP-848).

OffsetFetch v2: null asks for all topics; an error of the group. v5: leader epoch. v6: flexible.
v7: only stable offsets, outside open transactions (KIP-447). v8: several groups at once (KIP-709).
v9: member epochs (KIP-848). v10: topics by id.

OffsetDelete v0: never flexible (KIP-496).
"""

from typing import Annotated, Final
from uuid import UUID

from twinlog.wire.api_keys import ApiKey
from twinlog.wire.primitives import Int16, Int32, Int64
from twinlog.wire.schema import Api, message, null_since, since, until


@message
class OffsetCommitPartition:
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Annotated[Int32, since(6)] = -1
    committed_metadata: str | None = None


@message
class OffsetCommitTopic:
    name: Annotated[str, until(9)] = ""
    topic_id: Annotated[UUID, since(10)] = UUID(int=0)
    partitions: tuple[OffsetCommitPartition, ...]


@message
class OffsetCommitRequest:
    group_id: str
    generation_id_or_member_epoch: Int32 = -1
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(7)] = None
    retention_time_ms: Annotated[Int64, until(4)] = -1
    topics: tuple[OffsetCommitTopic, ...]


@message
class OffsetCommittedPartition:
    partition_index: Int32
    error_code: Int16 = 0


@message
class OffsetCommittedTopic:
    name: Annotated[str, until(9)] = ""
    topic_id: Annotated[UUID, since(10)] = UUID(int=0)
    partitions: tuple[OffsetCommittedPartition, ...]


@message
class OffsetCommitResponse:
    throttle_time_ms: Annotated[Int32, since(3)] = 0
    topics: tuple[OffsetCommittedTopic, ...]


@message
class OffsetFetchTopic:
    """What one group is asked for, up to v7."""

    name: Annotated[str, until(7)]
    partition_indexes: Annotated[tuple[Int32, ...], until(7)]


@message
class OffsetFetchTopics:
    """What each group is asked for, from v8 on."""

    name: Annotated[str, since(8), until(9)] = ""
    topic_id: Annotated[UUID, since(10)] = UUID(int=0)
    partition_indexes: Annotated[tuple[Int32, ...], since(8)]


@message
class OffsetFetchGroup:
    group_id: Annotated[str, since(8)]
    member_id: Annotated[str | None, since(9)] = None
    member_epoch: Annotated[Int32, since(9)] = -1
    topics: Annotated[tuple[OffsetFetchTopics, ...] | None, since(8)] = None


@message
class OffsetFetchRequest:
    group_id: Annotated[str, until(7)] = ""
    topics: Annotated[tuple[OffsetFetchTopic, ...] | None, until(7), null_since(2)] = ()
    groups: Annotated[tuple[OffsetFetchGroup, ...], since(8)] = ()
    require_stable: Annotated[bool, since(7)] = False


@message
class OffsetFetchedPartition:
    """A committed offset, up to v7."""

    partition_index: Annotated[Int32, until(7)]
    committed_offset: Annotated[Int64, until(7)]
    committed_leader_epoch: Annotated[Int32, since(5), until(7)] = -1
    metadata: Annotated[str | None, until(7)] = None
    error_code: Annotated[Int16, until(7)] = 0


@message
class OffsetFetchedTopic:
    name: Annotated[str, until(7)]
    partitions: Annotated[tuple[OffsetFetchedPartition, ...], until(7)]


@message
class OffsetFetchedPartitions:
    """A committed offset, from v8 on."""

    partition_index: Annotated[Int32, since(8)]
    committed_offset: Annotated[Int64, since(8)]
    committed_leader_epoch: Annotated[Int32, since(8)] = -1
    metadata: Annotated[str | None, since(8)] = None
    error_code: Annotated[Int16, since(8)] = 0


@message
class OffsetFetchedTopics:
    name: Annotated[str, since(8), until(9)] = ""
    topic_id: Annotated[UUID, since(10)] = UUID(int=0)
    partitions: Annotated[tuple[OffsetFetchedPartitions, ...], since(8)]


@message
class OffsetFetchedGroup:
    group_id: Annotated[str, since(8)]
    topics: Annotated[tuple[OffsetFetchedTopics, ...], since(8)]
    error_code: Annotated[Int16, since(8)] = 0


@message
class OffsetFetchResponse:
    throttle_time_ms: Annotated[Int32, since(3)] = 0
    topics: Annotated[tuple[OffsetFetchedTopic, ...], until(7)] = ()
    error_code: Annotated[Int16, since(2), until(7)] = 0
    groups: Annotated[tuple[OffsetFetchedGroup, ...], since(8)] = ()


@message
class OffsetDeletePartition:
    partition_index: Int32


@message
class OffsetDeleteTopic:
    name: str
    partitions: tuple[OffsetDeletePartition, ...]


@message
class OffsetDeleteRequest:
    group_id: str
    topics: tuple[OffsetDeleteTopic, ...]


@message
class OffsetDeletedPartition:
    partition_index: Int32
    error_code: Int16 = 0


@message
class OffsetDeletedTopic:
    name: str
    partitions: tuple[OffsetDeletedPartition, ...]


@message
class OffsetDeleteResponse:
    error_code: Int16 = 0
    throttle_time_ms: Int32 = 0
    topics: tuple[OffsetDeletedTopic, ...]


OFFSET_COMMIT: Final = Api(
    ApiKey.OFFSET_COMMIT, OffsetCommitRequest, OffsetCommitResponse, 2, 10, flexible_since=8
)
OFFSET_FETCH: Final = Api(
    ApiKey.OFFSET_FETCH, OffsetFetchRequest, OffsetFetchResponse, 1, 10, flexible_since=6
)
OFFSET_DELETE: Final = Api(ApiKey.OFFSET_DELETE, OffsetDeleteRequest, OffsetDeleteResponse, 0, 0)
