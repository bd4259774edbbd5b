"""Metadata: v0-13. DescribeCluster: v0-2. DescribeTopicPartitions: v0.

Metadata creates missing topics where client and broker allow it (auto.create.topics.enable), and
answers with them at once. Differs from Kafka: authorized operations are answered with "not asked"
(there is no authorizer yet); the controller is the broker with the lowest id.
"""

from collections.abc import Awaitable, Iterable
from typing import Final

from twinlog.broker.context import Context
from twinlog.cluster.facts import INTERNAL_TOPICS, NO_LEADER, PartitionFact, TopicFact
from twinlog.cluster.image import ClusterImage
from twinlog.cluster.topics import TopicWish, check_topic_name
from twinlog.config.broker import AUTO_CREATE_TOPICS_ENABLE
from twinlog.model.bounds import DESCRIBED_PARTITIONS_MAX
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import NO_TOPIC_ID, TopicId, TopicName
from twinlog.wire.messages.metadata import (
    Cursor,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribedBroker,
    DescribedPartition,
    DescribedTopic,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    MetadataBroker,
    MetadataPartition,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataTopic,
)

BROKER_ENDPOINTS: Final = 1
CONTROLLER_ENDPOINTS: Final = 2


def handle_metadata(
    request: MetadataRequest, context: Context
) -> MetadataResponse | Awaitable[MetadataResponse]:
    """Tell brokers and topics; make missing topics first, where that is allowed."""
    missing = _to_create(request, context)
    if missing:
        return _create_and_answer(request, context, missing)
    return _answer(request, context, {})


async def _create_and_answer(
    request: MetadataRequest, context: Context, missing: Iterable[str]
) -> MetadataResponse:
    refused: dict[str, ErrorCode] = {}
    for name in missing:
        try:
            await context.broker.new_topics.create(TopicWish(name))
        except ApiError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                refused[name] = error.code
    return _answer(request, context, refused)


def _to_create(request: MetadataRequest, context: Context) -> list[str]:
    """Give the names to create; internal topics are made by those who need them."""
    may_create = context.api_version < 4 or request.allow_auto_topic_creation
    if not may_create or not context.broker.settings[AUTO_CREATE_TOPICS_ENABLE]:
        return []
    topics = context.broker.facts.image.topics
    names = dict.fromkeys(asked.name for asked in request.topics or () if asked.name)
    return [name for name in names if name not in topics and name not in INTERNAL_TOPICS]


def _answer(
    request: MetadataRequest, context: Context, refused: dict[str, ErrorCode]
) -> MetadataResponse:
    image = context.broker.facts.image
    asks_for_all = request.topics is None or (context.api_version == 0 and not request.topics)
    if asks_for_all:
        topics = tuple(_topic(fact, image) for fact in image.topics.values())
    else:
        topics = tuple(_asked(asked, image, refused) for asked in request.topics or ())
    return MetadataResponse(
        brokers=tuple(
            MetadataBroker(node_id=b.id, host=b.host, port=b.port, rack=b.rack)
            for b in image.brokers.values()
        ),
        cluster_id=image.cluster_id,
        controller_id=_controller(image),
        topics=topics,
    )


def _controller(image: ClusterImage) -> int:
    return min(image.brokers, default=NO_LEADER)


def _asked(
    asked: MetadataRequestTopic, image: ClusterImage, refused: dict[str, ErrorCode]
) -> MetadataTopic:
    if asked.name is None or (asked.name == "" and asked.topic_id != NO_TOPIC_ID):
        fact = image.topics_by_id.get(TopicId(asked.topic_id))
        if fact is None:
            return _absent(None, ErrorCode.UNKNOWN_TOPIC_ID, asked)
        return _topic(fact, image)
    fact = image.topics.get(TopicName(asked.name))
    if fact is not None:
        return _topic(fact, image)
    code = refused.get(asked.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    try:
        check_topic_name(asked.name)
    except ApiError as error:
        code = error.code
    return _absent(asked.name, code, asked)


def _absent(name: str | None, code: ErrorCode, asked: MetadataRequestTopic) -> MetadataTopic:
    return MetadataTopic(error_code=code, name=name, topic_id=asked.topic_id, partitions=())


def _topic(fact: TopicFact, image: ClusterImage) -> MetadataTopic:
    return MetadataTopic(
        name=fact.name,
        topic_id=fact.id,
        is_internal=fact.is_internal,
        partitions=tuple(
            MetadataPartition(
                error_code=_leader_error(partition),
                partition_index=index,
                leader_id=partition.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=partition.replicas,
                isr_nodes=partition.isr,
                offline_replicas=_offline(partition, image),
            )
            for index, partition in enumerate(fact.partitions)
        ),
    )


def _leader_error(partition: PartitionFact) -> ErrorCode:
    has_leader = partition.leader != NO_LEADER
    return ErrorCode.NONE if has_leader else ErrorCode.LEADER_NOT_AVAILABLE


def _offline(partition: PartitionFact, image: ClusterImage) -> tuple[int, ...]:
    return tuple(b for b in partition.replicas if b not in image.brokers)


def handle_describe_cluster(
    request: DescribeClusterRequest, context: Context
) -> DescribeClusterResponse:
    """Tell the brokers of the cluster. Controllers have no endpoints of their own here."""
    if request.endpoint_type != BROKER_ENDPOINTS and context.api_version >= 1:
        raise ApiError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE
            if request.endpoint_type == CONTROLLER_ENDPOINTS
            else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            "this is a broker's endpoint: ask for endpoints of brokers (type 1)",
        )
    image = context.broker.facts.image
    return DescribeClusterResponse(
        cluster_id=image.cluster_id,
        controller_id=_controller(image),
        endpoint_type=BROKER_ENDPOINTS,
        brokers=tuple(
            DescribedBroker(broker_id=b.id, host=b.host, port=b.port, rack=b.rack)
            for b in image.brokers.values()
        ),
    )


def handle_describe_topic_partitions(
    request: DescribeTopicPartitionsRequest, context: Context
) -> DescribeTopicPartitionsResponse:
    """Tell topics in the order of their names, a page of partitions at a time."""
    image = context.broker.facts.image
    if request.cursor is not None and request.cursor.partition_index < 0:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the cursor's partition is negative")
    limit = min(max(request.response_partition_limit, 1), DESCRIBED_PARTITIONS_MAX)
    names = sorted({t.name for t in request.topics} or image.topics)
    cursor = request.cursor
    if cursor is not None:
        names = [name for name in names if name >= cursor.topic_name]
    topics: list[DescribedTopic] = []
    left = limit
    for name in names:
        first = cursor.partition_index if cursor and cursor.topic_name == name else 0
        if left <= 0:
            return _page(topics, Cursor(topic_name=name, partition_index=first))
        topic = _described(name, image, first, left)
        topics.append(topic)
        left -= len(topic.partitions)
        after = first + len(topic.partitions)
        fact = image.topics.get(TopicName(name))
        if fact is not None and after < len(fact.partitions):
            return _page(topics, Cursor(topic_name=name, partition_index=after))
    return _page(topics, None)


def _page(topics: list[DescribedTopic], cursor: Cursor | None) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(topics=tuple(topics), next_cursor=cursor)


def _described(name: str, image: ClusterImage, first: int, count: int) -> DescribedTopic:
    fact = image.topics.get(TopicName(name))
    if fact is None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        try:
            check_topic_name(name)
        except ApiError as error:
            code = error.code
        return DescribedTopic(error_code=code, name=name, partitions=())
    return DescribedTopic(
        name=fact.name,
        topic_id=fact.id,
        is_internal=fact.is_internal,
        partitions=tuple(
            DescribedPartition(
                error_code=_leader_error(partition),
                partition_index=index,
                leader_id=partition.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=partition.replicas,
                isr_nodes=partition.isr,
                eligible_leader_replicas=(),
                last_known_elr=(),
                offline_replicas=_offline(partition, image),
            )
            for index, partition in enumerate(fact.partitions)
            if first <= index < first + count
        ),
    )
