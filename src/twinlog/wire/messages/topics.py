"""CreateTopics: v2-7. DeleteTopics: v1-6. CreatePartitions: v0-3. DeleteRecords: v0-2.

CreateTopics v4: partitions and replicas may be left to the broker, as -1 (KIP-464). v5: flexible;
the topic's shape and configs in the answer (KIP-525). v6: may be throttled (KIP-599). v7: topic id
in the answer.

DeleteTopics v4: flexible. v5: error message. v6: topics by id (KIP-516).
CreatePartitions v2: flexible. v3: may be throttled (KIP-599).
DeleteRecords v2: flexible.
"""

from typing import Annotated, Final
from uuid import UUID

from twinlog.wire.api_keys import ApiKey
from twinlog.wire.primitives import Int8, Int16, Int32, Int64
from twinlog.wire.schema import Api, message, null_since, since, tag, until


@message
class ReplicaAssignment:
    partition_index: Int32
    broker_ids: tuple[Int32, ...]


@message
class TopicConfig:
    name: str
    value: str | None


@message
class CreatableTopic:
    name: str
    num_partitions: Int32
    replication_factor: Int16
    assignments: tuple[ReplicaAssignment, ...] = ()
    configs: tuple[TopicConfig, ...] = ()


@message
class CreateTopicsRequest:
    topics: tuple[CreatableTopic, ...]
    timeout_ms: Int32 = 60_000
    validate_only: bool = False


@message
class CreatedTopicConfig:
    name: Annotated[str, since(5)]
    value: Annotated[str | None, since(5)]
    read_only: Annotated[bool, since(5)] = False
    config_source: Annotated[Int8, since(5)] = -1
    is_sensitive: Annotated[bool, since(5)] = False


@message
class CreatedTopic:
    name: str
    topic_id: Annotated[UUID, since(7)] = UUID(int=0)
    error_code: Int16 = 0
    error_message: str | None = None
    topic_config_error_code: Annotated[Int16, since(5), tag(0)] = 0
    num_partitions: Annotated[Int32, since(5)] = -1
    replication_factor: Annotated[Int16, since(5)] = -1
    configs: Annotated[tuple[CreatedTopicConfig, ...] | None, since(5)] = None


@message
class CreateTopicsResponse:
    throttle_time_ms: Int32 = 0
    topics: tuple[CreatedTopic, ...]


@message
class TopicToDelete:
    name: Annotated[str | None, since(6)] = None
    topic_id: Annotated[UUID, since(6)] = UUID(int=0)


@message
class DeleteTopicsRequest:
    topics: Annotated[tuple[TopicToDelete, ...], since(6)] = ()
    topic_names: Annotated[tuple[str, ...], until(5)] = ()
    timeout_ms: Int32


@message
class DeletedTopic:
    name: Annotated[str | None, null_since(6)]
    topic_id: Annotated[UUID, since(6)] = UUID(int=0)
    error_code: Int16 = 0
    error_message: Annotated[str | None, since(5)] = None


@message
class DeleteTopicsResponse:
    throttle_time_ms: Int32 = 0
    responses: tuple[DeletedTopic, ...]


@message
class NewPartitionAssignment:
    broker_ids: tuple[Int32, ...]


@message
class CreatePartitionsTopic:
    name: str
    count: Int32
    assignments: tuple[NewPartitionAssignment, ...] | None = None


@message
class CreatePartitionsRequest:
    topics: tuple[CreatePartitionsTopic, ...]
    timeout_ms: Int32
    validate_only: bool = False


@message
class CreatePartitionsResult:
    name: str
    error_code: Int16 = 0
    error_message: str | None = None


@message
class CreatePartitionsResponse:
    throttle_time_ms: Int32 = 0
    results: tuple[CreatePartitionsResult, ...]


@message
class DeleteRecordsPartition:
    partition_index: Int32
    offset: Int64


@message
class DeleteRecordsTopic:
    name: str
    partitions: tuple[DeleteRecordsPartition, ...]


@message
class DeleteRecordsRequest:
    topics: tuple[DeleteRecordsTopic, ...]
    timeout_ms: Int32


@message
class DeletedRecordsPartition:
    partition_index: Int32
    low_watermark: Int64
    error_code: Int16 = 0


@message
class DeletedRecordsTopic:
    name: str
    partitions: tuple[DeletedRecordsPartition, ...]


@message
class DeleteRecordsResponse:
    throttle_time_ms: Int32 = 0
    topics: tuple[DeletedRecordsTopic, ...]


CREATE_TOPICS: Final = Api(
    ApiKey.CREATE_TOPICS, CreateTopicsRequest, CreateTopicsResponse, 2, 7, flexible_since=5
)
DELETE_TOPICS: Final = Api(
    ApiKey.DELETE_TOPICS, DeleteTopicsRequest, DeleteTopicsResponse, 1, 6, flexible_since=4
)
CREATE_PARTITIONS: Final = Api(
    ApiKey.CREATE_PARTITIONS,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    0,
    3,
    flexible_since=2,
)
DELETE_RECORDS: Final = Api(
    ApiKey.DELETE_RECORDS, DeleteRecordsRequest, DeleteRecordsResponse, 0, 2, flexible_since=2
)
