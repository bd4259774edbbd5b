"""What an operator's tool asks of mirrors (KIP-1279): all v0, flexible, under our own api keys.

Differs from the proposal: what later drafts add to List and Describe without showing the bytes is
in tagged fields here (filters, what to include, the topics to describe), so that a client of the
published draft is understood; so is what is ours: the lag in bytes and time, a mirror's tasks, and
the state offset that a list was read at. The proposal's brokers stamp a request with a state offset
on its way to the controller; here the client that decided by what it saw sends it, and it is
compared in the transaction that makes the change. StartMirrorTopics holds the fields of both its
drafts.
"""

from typing import Annotated, Final
from uuid import UUID

from twinlog.wire.api_keys import ApiKey
from twinlog.wire.primitives import NO_OPERATIONS, Int16, Int32, Int64
from twinlog.wire.schema import Api, message, tag


@message
class MirrorConfig:
    name: str
    value: str | None


@message
class CreateClusterMirrorRequest:
    mirror_name: str
    config: tuple[MirrorConfig, ...]


@message
class CreateClusterMirrorResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = None


@message
class DeleteClusterMirrorRequest:
    mirror_name: str
    state_offset: Int64 = -1


@message
class DeleteClusterMirrorResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = None


@message
class TopicToStart:
    topic_id: UUID = UUID(int=0)
    topic_name: str
    num_partitions: Int32 = -1


@message
class StartMirrorTopicsRequest:
    mirror_name: str
    topics: tuple[TopicToStart, ...] = ()
    include_patterns: tuple[str, ...] = ()
    state_offset: Int64 = -1
    timeout_ms: Int32 = 60_000
    exclude_patterns: Annotated[tuple[str, ...], tag(0)] = ()


@message
class MirrorTopic:
    topic_name: str


@message
class StopMirrorTopicsRequest:
    mirror_name: str
    topics: tuple[MirrorTopic, ...]
    state_offset: Int64 = -1
    patterns: Annotated[tuple[str, ...], tag(0)] = ()


@message
class PauseMirrorTopicsRequest:
    mirror_name: str
    topics: tuple[MirrorTopic, ...]
    state_offset: Int64 = -1


@message
class ResumeMirrorTopicsRequest:
    mirror_name: str
    topics: tuple[MirrorTopic, ...]
    state_offset: Int64 = -1


@message
class RecoverMirrorTopicsRequest:
    mirror_name: str
    topics: tuple[MirrorTopic, ...]


@message
class MirrorTopicResult:
    topic_name: str
    error_code: Int16 = 0
    error_message: str | None = None


@message
class MirrorTopicsResponse:
    """The answer to Start, Stop, Pause, Resume and Recover."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = None
    topics: tuple[MirrorTopicResult, ...] = ()


@message
class ListClusterMirrorsRequest:
    include_topic_names: bool = False
    mirror_name_filter: Annotated[tuple[str, ...], tag(0)] = ()
    source_cluster_id_filter: Annotated[tuple[str, ...], tag(1)] = ()
    desired_state_filter: Annotated[tuple[str, ...], tag(2)] = ()


@message
class ListedMirror:
    mirror_name: str
    source_bootstrap: str
    source_cluster_id: str = ""
    topic_count: Int32 = 0
    topic_names: tuple[str, ...] | None = None
    state_offset: Annotated[Int64, tag(0)] = -1
    """The metadata revision this was read at, for requests that are decided by it."""


@message
class ListClusterMirrorsResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = None
    mirrors: tuple[ListedMirror, ...] = ()


@message
class LastMirrorEpochLookup:
    topic_id: UUID
    partitions: tuple[Int32, ...]


@message
class MirrorTopicToDescribe:
    """A topic to describe; no partitions stands for all of them."""

    topic_name: str
    partitions: tuple[Int32, ...] = ()


@message
class DescribeClusterMirrorsRequest:
    mirror_names: tuple[str, ...] | None = None
    include_authorized_operations: bool = False
    cluster_id: Annotated[str | None, tag(0)] = None
    last_mirror_epoch_lookups: Annotated[tuple[LastMirrorEpochLookup, ...], tag(1)] = ()
    include_mirror_state: Annotated[bool, tag(2)] = True
    include_mirror_offset: Annotated[bool, tag(3)] = True
    topics: Annotated[tuple[MirrorTopicToDescribe, ...] | None, tag(4)] = None


@message
class DescribedLoss:
    kind: str
    first_offset: Int64
    end_offset: Int64
    cause: str
    at_ms: Int64
    saved_to: str | None = None
    saved_bytes: Int64 = 0


@message
class DescribedStart:
    """Where a partition began that was not to be mirrored from the earliest record on."""

    spec: str
    offset: Int64
    skipped_from: Int64
    at_ms: Int64


@message
class DescribedMirrorPartition:
    partition_index: Int32
    state_value: str
    error_message: str | None = None
    retry_attempt: Int16 = 0
    source_offset: Int64 = -1
    destination_offset: Int64 = -1
    last_mirror_epoch: Int32 = -1
    last_mirror_offset: Int64 = -1
    lag_bytes: Annotated[Int64, tag(0)] = -1
    lag_ms: Annotated[Int64, tag(1)] = -1
    losses: Annotated[tuple[DescribedLoss, ...], tag(2)] = ()
    start: Annotated[tuple[DescribedStart, ...], tag(3)] = ()


@message
class DescribedMirrorTopic:
    topic_name: str
    partitions: tuple[DescribedMirrorPartition, ...]


@message
class DescribedMirrorTask:
    """Something a mirror does again and again; at most one of error and note says why not."""

    name: str
    error: str | None = None
    note: str | None = None


@message
class DescribedMirror:
    error_code: Int16 = 0
    error_message: str | None = None
    mirror_name: str
    source_bootstrap: str = ""
    source_cluster_id: str = ""
    authorized_operations: Int32 = NO_OPERATIONS
    topics: tuple[DescribedMirrorTopic, ...] = ()
    tasks: Annotated[tuple[DescribedMirrorTask, ...], tag(0)] = ()


@message
class DescribeClusterMirrorsResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = None
    mirrors: tuple[DescribedMirror, ...] = ()


CREATE_CLUSTER_MIRROR: Final = Api(
    ApiKey.CREATE_CLUSTER_MIRROR, CreateClusterMirrorRequest, CreateClusterMirrorResponse, 0, 0, 0
)
START_MIRROR_TOPICS: Final = Api(
    ApiKey.START_MIRROR_TOPICS, StartMirrorTopicsRequest, MirrorTopicsResponse, 0, 0, 0
)
STOP_MIRROR_TOPICS: Final = Api(
    ApiKey.STOP_MIRROR_TOPICS, StopMirrorTopicsRequest, MirrorTopicsResponse, 0, 0, 0
)
LIST_CLUSTER_MIRRORS: Final = Api(
    ApiKey.LIST_CLUSTER_MIRRORS, ListClusterMirrorsRequest, ListClusterMirrorsResponse, 0, 0, 0
)
DESCRIBE_CLUSTER_MIRRORS: Final = Api(
    ApiKey.DESCRIBE_CLUSTER_MIRRORS,
    DescribeClusterMirrorsRequest,
    DescribeClusterMirrorsResponse,
    0,
    0,
    0,
)
PAUSE_MIRROR_TOPICS: Final = Api(
    ApiKey.PAUSE_MIRROR_TOPICS, PauseMirrorTopicsRequest, MirrorTopicsResponse, 0, 0, 0
)
RESUME_MIRROR_TOPICS: Final = Api(
    ApiKey.RESUME_MIRROR_TOPICS, ResumeMirrorTopicsRequest, MirrorTopicsResponse, 0, 0, 0
)
DELETE_CLUSTER_MIRROR: Final = Api(
    ApiKey.DELETE_CLUSTER_MIRROR, DeleteClusterMirrorRequest, DeleteClusterMirrorResponse, 0, 0, 0
)
RECOVER_MIRROR_TOPICS: Final = Api(
    ApiKey.RECOVER_MIRROR_TOPICS, RecoverMirrorTopicsRequest, MirrorTopicsResponse, 0, 0, 0
)
