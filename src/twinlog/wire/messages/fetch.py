"""Fetch: v4-18.

v5: log start offset. v7: incremental sessions (KIP-227). v9: current leader epoch (KIP-320).
v11: rack (KIP-392). v12: flexible; divergence and leader in the answer (KIP-595). v13: topics by
id (KIP-516). v15: replica state (KIP-903). v16: node endpoints (KIP-951). v17: directory id
(KIP-853). v18: high watermark of the fetcher (KIP-1166).
"""

from typing import Annotated, Final
from uuid import UUID

from twinlog.wire.api_keys import ApiKey
from twinlog.wire.primitives import Int8, Int16, Int32, Int64, RecordBytes
from twinlog.wire.schema import Api, message, since, tag, until


@message
class ReplicaState:
    replica_id: Annotated[Int32, since(15)] = -1
    replica_epoch: Annotated[Int64, since(15)] = -1


@message
class FetchPartition:
    partition: Int32
    current_leader_epoch: Annotated[Int32, since(9)] = -1
    fetch_offset: Int64
    last_fetched_epoch: Annotated[Int32, since(12)] = -1
    log_start_offset: Annotated[Int64, since(5)] = -1
    partition_max_bytes: Int32
    replica_directory_id: Annotated[UUID, since(17), tag(0)] = UUID(int=0)
    high_watermark: Annotated[Int64, since(18), tag(1)] = 0x7FFF_FFFF_FFFF_FFFF


@message
class FetchTopic:
    topic: Annotated[str, until(12)] = ""
    topic_id: Annotated[UUID, since(13)] = UUID(int=0)
    partitions: tuple[FetchPartition, ...]


@message
class ForgottenTopic:
    topic: Annotated[str, since(7), until(12)] = ""
    topic_id: Annotated[UUID, since(13)] = UUID(int=0)
    partitions: Annotated[tuple[Int32, ...], since(7)]


@message
class FetchRequest:
    replica_id: Annotated[Int32, until(14)] = -1
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = 0x7FFF_FFFF
    isolation_level: Int8 = 0
    session_id: Annotated[Int32, since(7)] = 0
    session_epoch: Annotated[Int32, since(7)] = -1
    topics: tuple[FetchTopic, ...]
    forgotten_topics: Annotated[tuple[ForgottenTopic, ...], since(7)] = ()
    rack_id: Annotated[str, since(11)] = ""
    cluster_id: Annotated[str | None, since(12), tag(0)] = None
    replica_state: Annotated[ReplicaState, since(15), tag(1)] = ReplicaState()


@message
class AbortedTransaction:
    producer_id: Int64
    first_offset: Int64


@message
class EpochEndOffset:
    epoch: Annotated[Int32, since(12)] = -1
    end_offset: Annotated[Int64, since(12)] = -1


@message
class LeaderIdAndEpoch:
    leader_id: Annotated[Int32, since(12)] = -1
    leader_epoch: Annotated[Int32, since(12)] = -1


@message
class SnapshotId:
    end_offset: Annotated[Int64, since(12)] = -1
    epoch: Annotated[Int32, since(12)] = -1


@message
class FetchedPartition:
    partition_index: Int32
    error_code: Int16 = 0
    high_watermark: Int64
    last_stable_offset: Int64 = -1
    log_start_offset: Annotated[Int64, since(5)] = -1
    aborted_transactions: tuple[AbortedTransaction, ...] | None = None
    preferred_read_replica: Annotated[Int32, since(11)] = -1
    records: RecordBytes = None
    diverging_epoch: Annotated[EpochEndOffset, since(12), tag(0)] = EpochEndOffset()
    current_leader: Annotated[LeaderIdAndEpoch, since(12), tag(1)] = LeaderIdAndEpoch()
    snapshot_id: Annotated[SnapshotId, since(12), tag(2)] = SnapshotId()


@message
class FetchedTopic:
    topic: Annotated[str, until(12)] = ""
    topic_id: Annotated[UUID, since(13)] = UUID(int=0)
    partitions: tuple[FetchedPartition, ...]


@message
class NodeEndpoint:
    node_id: Annotated[Int32, since(16)]
    host: Annotated[str, since(16)]
    port: Annotated[Int32, since(16)]
    rack: Annotated[str | None, since(16)] = None


@message
class FetchResponse:
    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(7)] = 0
    session_id: Annotated[Int32, since(7)] = 0
    topics: tuple[FetchedTopic, ...]
    node_endpoints: Annotated[tuple[NodeEndpoint, ...], since(16), tag(0)] = ()


FETCH: Final = Api(ApiKey.FETCH, FetchRequest, FetchResponse, 4, 18, flexible_since=12)
