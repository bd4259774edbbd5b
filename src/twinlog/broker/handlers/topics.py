"""CreateTopics: v2-7. DeleteTopics: v1-6. CreatePartitions: v0-3. DeleteRecords: v0-2.

Differs from Kafka: all topics of a request are changed together, so that they cost one commit; an
internal topic is neither deleted nor grown (its keys would be looked for in the wrong partition);
DeleteTopics and CreatePartitions on a mirror topic are POLICY_VIOLATION until it is stopped, and
so is DeleteRecords. A change has taken effect when it is answered; timeout_ms is how long (5 s
at most) DeleteTopics waits for the stop of a mirror that is under way.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from twinlog.broker.config_view import ConfigView
from twinlog.broker.context import Broker, Context
from twinlog.broker.partitions import Partition
from twinlog.cluster.changes import Change, TopicSet
from twinlog.cluster.facts import INTERNAL_TOPICS, TopicFact
from twinlog.cluster.image import ClusterImage
from twinlog.cluster.topics import (
    TopicWish,
    check_not_mirrored,
    delete_topic,
    find_topic,
    find_topic_by_id,
    grow_topic,
)
from twinlog.config.broker import DELETE_TOPIC_ENABLE
from twinlog.model.errors import ApiError, DiskError, ErrorCode
from twinlog.model.ids import NO_OFFSET, NO_TOPIC_ID, Offset, TopicId, TopicName, TopicPartition
from twinlog.wire.messages.topics import (
    CreatableTopic,
    CreatedTopic,
    CreatedTopicConfig,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsResult,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletedRecordsPartition,
    DeletedRecordsTopic,
    DeletedTopic,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    TopicToDelete,
)

Item = TypeVar("Item")
Made = TypeVar("Made", bound=Change)
TO_HIGH_WATERMARK = -1
STOP_TIMEOUT_S: Final = 5.0


@dataclass(slots=True)
class Batch(Generic[Item, Made]):
    """Many wishes decided as one change of the image: each comes true or is refused alone."""

    items: tuple[Item, ...]
    plan: Callable[[ClusterImage, Item], Made]
    outcomes: list[Made | ApiError] = field(default_factory=list)

    def decide(self, image: ClusterImage) -> list[Change]:
        """Give the changes of all items that can be; also when asked again, on a newer image."""
        self.outcomes.clear()
        changes: list[Change] = []
        for item in self.items:
            try:
                change = self.plan(image, item)
            except ApiError as error:
                self.outcomes.append(error)
                continue
            image = image.with_change(change)
            changes.append(change)
            self.outcomes.append(change)
        return changes

    async def run(self, broker: Broker, *, validate_only: bool = False) -> list[Made | ApiError]:
        """Give what became of each item, in their order."""
        if validate_only:
            self.decide(broker.facts.image)
            return self.outcomes
        try:
            await broker.facts.change(self.decide)
        except ApiError as error:  # of the store: none of them came true
            return [error for _ in self.items]
        return self.outcomes


async def handle_create_topics(
    request: CreateTopicsRequest, context: Context
) -> CreateTopicsResponse:
    """Make the topics, or only tell whether they could be made."""
    broker = context.broker
    twice = _named_twice(topic.name for topic in request.topics)

    def plan(image: ClusterImage, topic: CreatableTopic) -> TopicSet:
        if topic.name in twice:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        return broker.new_topics.plan(image, _wish(topic))

    batch = Batch(request.topics, plan)
    outcomes = await batch.run(broker, validate_only=request.validate_only)
    view = ConfigView(broker.settings, broker.facts.image, broker.broker_id)
    return CreateTopicsResponse(
        topics=tuple(
            _refused(topic.name, outcome)
            if isinstance(outcome, ApiError)
            else _created(outcome.topic, view, is_made=not request.validate_only)
            for topic, outcome in zip(request.topics, outcomes, strict=True)
        )
    )


def _wish(topic: CreatableTopic) -> TopicWish:
    config: dict[str, str] = {}
    for entry in topic.configs:
        if entry.value is None:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"{entry.name} is given no value.")
        config[entry.name] = entry.value
    assignments = {a.partition_index: a.broker_ids for a in topic.assignments}
    if len(assignments) != len(topic.assignments):
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "A partition is assigned replicas twice."
        )
    return TopicWish(
        topic.name, topic.num_partitions, topic.replication_factor, assignments, config
    )


def _refused(name: str, error: ApiError) -> CreatedTopic:
    return CreatedTopic(name=name, error_code=error.code, error_message=error.why)


def _created(topic: TopicFact, view: ConfigView, *, is_made: bool) -> CreatedTopic:
    return CreatedTopic(
        name=topic.name,
        topic_id=topic.id if is_made else NO_TOPIC_ID,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        configs=tuple(
            CreatedTopicConfig(
                name=entry.name,
                value=entry.value,
                read_only=entry.is_read_only,
                config_source=entry.source,
                is_sensitive=entry.is_sensitive,
            )
            for entry in view.of_topic(topic, None)
        ),
    )


async def handle_delete_topics(
    request: DeleteTopicsRequest, context: Context
) -> DeleteTopicsResponse:
    """Delete the topics; their data goes with them."""
    broker = context.broker
    wanted = request.topics or tuple(TopicToDelete(name=name) for name in request.topic_names)
    twice = _named_twice(w.topic_id if w.name is None else w.name for w in wanted)

    def plan(image: ClusterImage, item: TopicToDelete) -> Change:
        if not broker.settings[DELETE_TOPIC_ENABLE]:
            raise ApiError(
                ErrorCode.TOPIC_DELETION_DISABLED, "delete.topic.enable is false on this broker."
            )
        if (item.topic_id if item.name is None else item.name) in twice:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic.")
        topic = _topic_to_delete(image, item)
        _check_not_internal(topic, "cannot be deleted")
        _check_is_not_stopping(topic, broker)
        return delete_topic(image, topic)

    before = broker.facts.image
    named = (_known(before, item) for item in wanted)
    await _until_stopped(
        [topic for topic in named if topic is not None],
        broker,
        timeout_s=min(request.timeout_ms / 1000, STOP_TIMEOUT_S),
    )
    outcomes = await Batch(wanted, plan).run(broker)
    return DeleteTopicsResponse(
        responses=tuple(
            _deleted(before, item, outcome) for item, outcome in zip(wanted, outcomes, strict=True)
        )
    )


def _topic_to_delete(image: ClusterImage, item: TopicToDelete) -> TopicFact:
    if (item.name is None) == (item.topic_id == NO_TOPIC_ID):
        raise ApiError(ErrorCode.INVALID_REQUEST, "A topic is told either by name or by id.")
    if item.name is not None:
        return find_topic(image, item.name)
    return find_topic_by_id(image, TopicId(item.topic_id))


def _known(image: ClusterImage, item: TopicToDelete) -> TopicFact | None:
    if item.name is None:
        return image.topics_by_id.get(TopicId(item.topic_id))
    return image.topics.get(TopicName(item.name))


def _deleted(before: ClusterImage, item: TopicToDelete, outcome: Change | ApiError) -> DeletedTopic:
    """Answer with name and id, whichever was asked with."""
    known = _known(before, item)
    name = item.name if known is None else known.name
    topic_id = item.topic_id if known is None else known.id
    if isinstance(outcome, ApiError):
        return DeletedTopic(
            name=name, topic_id=topic_id, error_code=outcome.code, error_message=outcome.why
        )
    return DeletedTopic(name=name, topic_id=topic_id)


async def handle_create_partitions(
    request: CreatePartitionsRequest, context: Context
) -> CreatePartitionsResponse:
    """Give topics more partitions, or only tell whether they could have them."""
    twice = _named_twice(topic.name for topic in request.topics)

    def plan(image: ClusterImage, item: CreatePartitionsTopic) -> Change:
        if item.name in twice:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        topic = find_topic(image, item.name)
        _check_not_internal(topic, "cannot be given partitions")
        by_hand = item.assignments
        assigned = None if by_hand is None else [one.broker_ids for one in by_hand]
        return grow_topic(image, item.name, item.count, assigned)

    batch = Batch(request.topics, plan)
    outcomes = await batch.run(context.broker, validate_only=request.validate_only)
    return CreatePartitionsResponse(
        results=tuple(
            CreatePartitionsResult(
                name=topic.name, error_code=outcome.code, error_message=outcome.why
            )
            if isinstance(outcome, ApiError)
            else CreatePartitionsResult(name=topic.name)
            for topic, outcome in zip(request.topics, outcomes, strict=True)
        )
    )


def handle_delete_records(request: DeleteRecordsRequest, context: Context) -> DeleteRecordsResponse:
    """Move the start of logs up; what lies before it can be read no more."""
    return DeleteRecordsResponse(
        topics=tuple(
            DeletedRecordsTopic(
                name=topic.name,
                partitions=tuple(
                    _delete_records(
                        TopicPartition(TopicName(topic.name), asked.partition_index),
                        asked.offset,
                        context.broker,
                    )
                    for asked in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def _delete_records(of: TopicPartition, offset: int, broker: Broker) -> DeletedRecordsPartition:
    try:
        low_watermark = _raise_start(of, offset, broker)
    except ApiError as error:
        return DeletedRecordsPartition(
            partition_index=of.partition, low_watermark=NO_OFFSET, error_code=error.code
        )
    except DiskError:
        return DeletedRecordsPartition(
            partition_index=of.partition,
            low_watermark=NO_OFFSET,
            error_code=ErrorCode.KAFKA_STORAGE_ERROR,
        )
    return DeletedRecordsPartition(partition_index=of.partition, low_watermark=low_watermark)


def _raise_start(of: TopicPartition, offset: int, broker: Broker) -> Offset:
    partition = broker.partitions.find(of)
    topic = broker.facts.image.topics.get(of.topic)
    if partition is None or topic is None:
        raise broker.facts.why_absent(of)
    if topic.is_internal:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"Records of {of.topic} are the broker's own."
        )
    check_not_mirrored(topic, "cannot lose records")
    _check_is_not_stopping(topic, broker)
    if partition.log.settings.cleanup_policy == {"compact"}:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION, f"{of.topic} has the cleanup.policy 'compact' alone."
        )
    end = partition.high_watermark
    wanted = end if offset == TO_HIGH_WATERMARK else Offset(offset)
    if not 0 <= wanted <= end:
        raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{of}: {offset} is not between 0 and {end}.")
    partition.raise_start_to(wanted)
    partition.log.save_start()  # what is answered as deleted does not come back after a kill
    return partition.replica.low_watermark()


def _check_not_internal(topic: TopicFact, cannot: str) -> None:
    if topic.name in INTERNAL_TOPICS:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"Topic {topic.name} {cannot}: the broker keeps its own state in it.",
        )


async def _until_stopped(topics: Iterable[TopicFact], broker: Broker, *, timeout_s: float) -> None:
    """Wait a moment for stops under way: a partition that was added after one has its own."""
    stopping = [partition for topic in topics for partition in _stopping(topic, broker)]
    await broker.waiting.until(
        lambda: all(partition.mirror is None for partition in stopping),
        [partition.of for partition in stopping],
        timeout_s=timeout_s,
    )


def _stopping(topic: TopicFact, broker: Broker) -> Iterator[Partition]:
    """Give the partitions of a topic that a mirror was asked to stop and has not let go of."""
    if topic.read_only_for is not None:
        return
    for index in range(len(topic.partitions)):
        partition = broker.partitions.find(TopicPartition(topic.name, index))
        if partition is not None and partition.mirror is not None:
            yield partition


def _check_is_not_stopping(topic: TopicFact, broker: Broker) -> None:
    """Raise ApiError while a mirror's stop, which writes to the topic, is not through."""
    for partition in _stopping(topic, broker):
        assert partition.mirror is not None
        mirror = partition.mirror.mirror
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"Topic {topic.name} is still being stopped by mirror {mirror}; see "
            f"kafka-cluster-mirrors.sh --describe --mirror {mirror}, and try again.",
        )


def _named_twice(names: Iterable[object]) -> frozenset[object]:
    counts: Mapping[object, int] = Counter(names)
    return frozenset(name for name, count in counts.items() if count > 1)
