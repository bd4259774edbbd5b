"""Metadata: v0-13. DescribeCluster: v0-2. DescribeTopicPartitions: v0.

Metadata v1: rack, controller, internal topics; null asks for all topics, where v0 has the empty
array. v2: cluster id. v4: creation of topics can be refused. v5: offline replicas (KIP-112).
v7: leader epoch (KIP-320). v8: authorized operations (KIP-430). v9: flexible. v10: topic ids
(KIP-516). v11: no cluster operations. v12: a topic asked by id alone. v13: an error of the whole.

DescribeCluster v1: brokers or controllers (KIP-919). v2: fenced brokers (KIP-1073).
DescribeTopicPartitions v0: page by page (KIP-966).
"""

from typing import Annotated, Final
from uuid import UUID

from twinlog.wire.api_keys import ApiKey
from twinlog.wire.primitives import NO_OPERATIONS, Int8, Int16, Int32
from twinlog.wire.schema import Api, message, null_since, since, until


@message
class MetadataRequestTopic:
    topic_id: Annotated[UUID, since(10)] = UUID(int=0)
    name: Annotated[str | None, null_since(10)] = None


@message
class MetadataRequest:
    topics: Annotated[tuple[MetadataRequestTopic, ...] | None, null_since(1)]
    allow_auto_topic_creation: Annotated[bool, since(4)] = True
    include_cluster_authorized_operations: Annotated[bool, since(8), until(10)] = False
    include_topic_authorized_operations: Annotated[bool, since(8)] = False


@message
class MetadataBroker:
    node_id: Int32
    host: str
    port: Int32
    rack: Annotated[str | None, since(1)] = None


@message
class MetadataPartition:
    error_code: Int16 = 0
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Annotated[Int32, since(7)] = -1
    replica_nodes: tuple[Int32, ...]
    isr_nodes: tuple[Int32, ...]
    offline_replicas: Annotated[tuple[Int32, ...], since(5)] = ()


@message
class MetadataTopic:
    error_code: Int16 = 0
    name: Annotated[str | None, null_since(12)]
    topic_id: Annotated[UUID, since(10)] = UUID(int=0)
    is_internal: Annotated[bool, since(1)] = False
    partitions: tuple[MetadataPartition, ...]
    topic_authorized_operations: Annotated[Int32, since(8)] = NO_OPERATIONS


@message
class MetadataResponse:
    throttle_time_ms: Annotated[Int32, since(3)] = 0
    brokers: tuple[MetadataBroker, ...]
    cluster_id: Annotated[str | None, since(2)] = None
    controller_id: Annotated[Int32, since(1)] = -1
    topics: tuple[MetadataTopic, ...]
    cluster_authorized_operations: Annotated[Int32, since(8), until(10)] = NO_OPERATIONS
    error_code: Annotated[Int16, since(13)] = 0


@message
class DescribeClusterRequest:
    include_cluster_authorized_operations: bool = False
    endpoint_type: Annotated[Int8, since(1)] = 1
    include_fenced_brokers: Annotated[bool, since(2)] = False


@message
class DescribedBroker:
    broker_id: Int32
    host: str
    port: Int32
    rack: str | None = None
    is_fenced: Annotated[bool, since(2)] = False


@message
class DescribeClusterResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = None
    endpoint_type: Annotated[Int8, since(1)] = 1
    cluster_id: str
    controller_id: Int32 = -1
    brokers: tuple[DescribedBroker, ...]
    cluster_authorized_operations: Int32 = NO_OPERATIONS


@message
class TopicToDescribe:
    name: str


@message
class Cursor:
    topic_name: str
    partition_index: Int32


@message
class DescribeTopicPartitionsRequest:
    topics: tuple[TopicToDescribe, ...]
    response_partition_limit: Int32 = 2000
    cursor: Cursor | None = None


@message
class DescribedPartition:
    error_code: Int16 = 0
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Int32 = -1
    replica_nodes: tuple[Int32, ...]
    isr_nodes: tuple[Int32, ...]
    eligible_leader_replicas: tuple[Int32, ...] | None = None
    last_known_elr: tuple[Int32, ...] | None = None
    offline_replicas: tuple[Int32, ...] = ()


@message
class DescribedTopic:
    error_code: Int16 = 0
    name: str | None
    topic_id: UUID = UUID(int=0)
    is_internal: bool = False
    partitions: tuple[DescribedPartition, ...]
    topic_authorized_operations: Int32 = NO_OPERATIONS


@message
class DescribeTopicPartitionsResponse:
    throttle_time_ms: Int32 = 0
    topics: tuple[DescribedTopic, ...]
    next_cursor: Cursor | None = None


METADATA: Final = Api(ApiKey.METADATA, MetadataRequest, MetadataResponse, 0, 13, flexible_since=9)
DESCRIBE_CLUSTER: Final = Api(
    ApiKey.DESCRIBE_CLUSTER,
    DescribeClusterRequest,
    DescribeClusterResponse,
    0,
    2,
    flexible_since=0,
)
DESCRIBE_TOPIC_PARTITIONS: Final = Api(
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    0,
    0,
    flexible_since=0,
)
