"""What brokers ask each other about mirrors (KIP-1279): all v0, flexible, under our own api keys.

Differs from the proposal: every response has an error code and message of the whole, which some of
its drafts leave out.
"""

from typing import Final

from twinlog.wire.api_keys import ApiKey
from twinlog.wire.primitives import Int8, Int16, Int32, Int64
from twinlog.wire.schema import Api, message


@message
class StatePartition:
    partition_index: Int32


@message
class StateTopic:
    topic_name: str
    partitions: tuple[StatePartition, ...]


@message
class ReadMirrorStatesRequest:
    mirror_name: str
    topics: tuple[StateTopic, ...]


@message
class ReadStatePartition:
    partition_index: Int32
    state: Int8
    leader_epoch: Int32
    state_epoch: Int32
    last_mirror_epoch: Int32 = -1
    last_mirror_offset: Int64 = -1
    error_code: Int16 = 0
    error_message: str | None = None
    retry_attempt: Int16 = 0
    previous_state: Int8 = -1


@message
class ReadStateTopic:
    topic_name: str
    partitions: tuple[ReadStatePartition, ...]


@message
class ReadMirrorStatesResponse:
    error_code: Int16 = 0
    error_message: str | None = None
    topics: tuple[ReadStateTopic, ...] = ()


@message
class StateToWrite:
    partition_index: Int32
    state: Int8
    leader_epoch: Int32 = -1
    state_epoch: Int32 = -1
    last_mirror_epoch: Int32 = -1
    last_mirror_offset: Int64 = -1
    error_message: str | None = None
    retry_attempt: Int32 = -1
    non_retryable: bool = False


@message
class StateTopicToWrite:
    topic_name: str
    partitions: tuple[StateToWrite, ...]


@message
class WriteMirrorStatesRequest:
    mirror_name: str
    topics: tuple[StateTopicToWrite, ...]


@message
class WrittenStatePartition:
    partition_index: Int32
    state_epoch: Int32
    error_code: Int16 = 0
    error_message: str | None = None


@message
class WrittenStateTopic:
    topic_name: str
    partitions: tuple[WrittenStatePartition, ...]


@message
class WriteMirrorStatesResponse:
    error_code: Int16 = 0
    error_message: str | None = None
    topics: tuple[WrittenStateTopic, ...] = ()


@message
class OffsetsTopic:
    topic_name: str
    partitions: tuple[Int32, ...]


@message
class ReadMirrorOffsetsRequest:
    mirror_name: str
    topics: tuple[OffsetsTopic, ...]


@message
class ReadOffsetsPartition:
    partition_index: Int32
    error_code: Int16 = 0
    error_message: str | None = None
    source_offset: Int64 = -1
    destination_offset: Int64 = -1


@message
class ReadOffsetsTopic:
    topic_name: str
    partitions: tuple[ReadOffsetsPartition, ...]


@message
class ReadMirrorOffsetsResponse:
    error_code: Int16 = 0
    error_message: str | None = None
    topics: tuple[ReadOffsetsTopic, ...] = ()


@message
class EpochToBump:
    partition_index: Int32
    min_leader_epoch: Int32 = -1


@message
class EpochTopicToBump:
    topic_name: str
    partitions: tuple[EpochToBump, ...]


@message
class BumpLeaderEpochsRequest:
    topics: tuple[EpochTopicToBump, ...]


@message
class BumpedPartition:
    partition_index: Int32
    error_code: Int16 = 0
    error_message: str | None = None


@message
class BumpedTopic:
    topic_name: str
    partitions: tuple[BumpedPartition, ...]


@message
class BumpLeaderEpochsResponse:
    error_code: Int16 = 0
    error_message: str | None = None
    topics: tuple[BumpedTopic, ...] = ()


READ_MIRROR_STATES: Final = Api(
    ApiKey.READ_MIRROR_STATES, ReadMirrorStatesRequest, ReadMirrorStatesResponse, 0, 0, 0
)
WRITE_MIRROR_STATES: Final = Api(
    ApiKey.WRITE_MIRROR_STATES, WriteMirrorStatesRequest, WriteMirrorStatesResponse, 0, 0, 0
)
BUMP_LEADER_EPOCHS: Final = Api(
    ApiKey.BUMP_LEADER_EPOCHS, BumpLeaderEpochsRequest, BumpLeaderEpochsResponse, 0, 0, 0
)
READ_MIRROR_OFFSETS: Final = Api(
    ApiKey.READ_MIRROR_OFFSETS, ReadMirrorOffsetsRequest, ReadMirrorOffsetsResponse, 0, 0, 0
)
