"""ListOffsets: v1-11. OffsetForLeaderEpoch: v2-4.

ListOffsets v2: isolation level. v4: leader epochs (KIP-320). v6: flexible. v7: the offset of the
highest timestamp, -3 (KIP-734). v8: the local log start, -4 (KIP-405). v9: the last tiered offset,
-5 (KIP-1005). v10: timeout (KIP-1075). v11: the earliest offset not yet tiered, -6 (KIP-1023).

OffsetForLeaderEpoch v2: current leader epoch. v3: replica id. v4: flexible.
"""

from typing import Annotated, Final

from twinlog.wire.api_keys import ApiKey
from twinlog.wire.primitives import Int8, Int16, Int32, Int64
from twinlog.wire.schema import Api, message, since


@message
class ListOffsetsPartition:
    partition_index: Int32
    current_leader_epoch: Annotated[Int32, since(4)] = -1
    timestamp: Int64


@message
class ListOffsetsTopic:
    name: str
    partitions: tuple[ListOffsetsPartition, ...]


@message
class ListOffsetsRequest:
    replica_id: Int32 = -1
    isolation_level: Annotated[Int8, since(2)] = 0
    topics: tuple[ListOffsetsTopic, ...]
    timeout_ms: Annotated[Int32, since(10)] = 0


@message
class ListedPartition:
    partition_index: Int32
    error_code: Int16 = 0
    timestamp: Int64 = -1
    offset: Int64 = -1
    leader_epoch: Annotated[Int32, since(4)] = -1


@message
class ListedTopic:
    name: str
    partitions: tuple[ListedPartition, ...]


@message
class ListOffsetsResponse:
    throttle_time_ms: Annotated[Int32, since(2)] = 0
    topics: tuple[ListedTopic, ...]


@message
class EpochPartition:
    partition: Int32
    current_leader_epoch: Int32 = -1
    leader_epoch: Int32


@message
class EpochTopic:
    topic: str
    partitions: tuple[EpochPartition, ...]


@message
class OffsetForLeaderEpochRequest:
    replica_id: Annotated[Int32, since(3)] = -2
    topics: tuple[EpochTopic, ...]


@message
class EpochEndOffset:
    error_code: Int16 = 0
    partition: Int32
    leader_epoch: Int32 = -1
    end_offset: Int64 = -1


@message
class EpochEndTopic:
    topic: str
    partitions: tuple[EpochEndOffset, ...]


@message
class OffsetForLeaderEpochResponse:
    throttle_time_ms: Int32 = 0
    topics: tuple[EpochEndTopic, ...]


LIST_OFFSETS: Final = Api(
    ApiKey.LIST_OFFSETS, ListOffsetsRequest, ListOffsetsResponse, 1, 11, flexible_since=6
)
OFFSET_FOR_LEADER_EPOCH: Final = Api(
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    2,
    4,
    flexible_since=4,
)
