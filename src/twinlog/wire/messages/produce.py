"""Produce: v3-13.

v5: log start offset. v8: errors of single records (KIP-467). v9: flexible. v10: leader and node
endpoints in the answer (KIP-951). v12: adds partitions to transactions by itself (KIP-890).
v13: topics by id (KIP-516). v3, v4, v6, v7, v11, v12 change no field.
"""

from typing import Annotated, Final
from uuid import UUID

from twinlog.wire.api_keys import ApiKey
from twinlog.wire.primitives import Int16, Int32, Int64, RecordBytes
from twinlog.wire.schema import Api, message, since, tag, until


@message
class ProducePartition:
    index: Int32
    records: RecordBytes


@message
class ProduceTopic:
    name: Annotated[str, until(12)] = ""
    topic_id: Annotated[UUID, since(13)] = UUID(int=0)
    partition_data: tuple[ProducePartition, ...]


@message
class ProduceRequest:
    transactional_id: str | None = None
    acks: Int16
    timeout_ms: Int32
    topic_data: tuple[ProduceTopic, ...]


@message
class RecordError:
    batch_index: Annotated[Int32, since(8)]
    batch_index_error_message: Annotated[str | None, since(8)] = None


@message
class LeaderIdAndEpoch:
    leader_id: Annotated[Int32, since(10)] = -1
    leader_epoch: Annotated[Int32, since(10)] = -1


@message
class ProducedPartition:
    index: Int32
    error_code: Int16 = 0
    base_offset: Int64
    log_append_time_ms: Int64 = -1
    log_start_offset: Annotated[Int64, since(5)] = -1
    record_errors: Annotated[tuple[RecordError, ...], since(8)] = ()
    error_message: Annotated[str | None, since(8)] = None
    current_leader: Annotated[LeaderIdAndEpoch, since(10), tag(0)] = LeaderIdAndEpoch()


@message
class ProducedTopic:
    name: Annotated[str, until(12)] = ""
    topic_id: Annotated[UUID, since(13)] = UUID(int=0)
    partition_responses: tuple[ProducedPartition, ...]


@message
class NodeEndpoint:
    node_id: Annotated[Int32, since(10)]
    host: Annotated[str, since(10)]
    port: Annotated[Int32, since(10)]
    rack: Annotated[str | None, since(10)] = None


@message
class ProduceResponse:
    responses: tuple[ProducedTopic, ...]
    throttle_time_ms: Int32 = 0
    node_endpoints: Annotated[tuple[NodeEndpoint, ...], since(10), tag(0)] = ()


PRODUCE: Final = Api(ApiKey.PRODUCE, ProduceRequest, ProduceResponse, 3, 13, flexible_since=9)
