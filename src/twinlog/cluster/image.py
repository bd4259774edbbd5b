"""ClusterImage: all facts of a cluster at one moment, immutable, cheap to change into the next."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from twinlog.cluster.changes import (
    BrokerConfigSet,
    BrokerRemoved,
    BrokerSet,
    Change,
    ClusterNamed,
    MirrorDeleted,
    MirrorSet,
    PartitionsAdded,
    PartitionSet,
    ProducerIdsTaken,
    TopicConfigSet,
    TopicDeleted,
    TopicMirrorSet,
    TopicSet,
)
from twinlog.cluster.facts import BrokerFact, MirrorFact, PartitionFact, TopicFact
from twinlog.model.ids import BrokerId, TopicId, TopicName, TopicPartition


@dataclass(frozen=True, slots=True)
class ClusterImage:
    """What all brokers agree on. Its mappings are never written to once the image is out.

    ``names_by_metric`` finds topics whose names differ only in '.' and '_', as Kafka forbids:
    the names under which their metrics would be reported are equal.
    """

    cluster_id: str = ""
    brokers: Mapping[BrokerId, BrokerFact] = field(default_factory=dict)
    topics: Mapping[TopicName, TopicFact] = field(default_factory=dict)
    topics_by_id: Mapping[TopicId, TopicFact] = field(default_factory=dict)
    names_by_metric: Mapping[str, TopicName] = field(default_factory=dict)
    mirrors: Mapping[str, MirrorFact] = field(default_factory=dict)
    broker_configs: Mapping[BrokerId | None, Mapping[str, str]] = field(default_factory=dict)
    next_producer_id: int = 0

    def partition(self, of: TopicPartition) -> PartitionFact | None:
        """Give a partition's facts; None when there is no such partition."""
        topic = self.topics.get(of.topic)
        if topic is None or not 0 <= of.partition < len(topic.partitions):
            return None
        return topic.partitions[of.partition]

    def topics_of_mirror(self, mirror: str) -> Iterator[TopicFact]:
        """Give the topics that belong to a mirror, stopped ones too."""
        for topic in self.topics.values():
            if topic.mirror is not None and topic.mirror.mirror == mirror:
                yield topic

    def with_change(self, change: Change) -> "ClusterImage":
        """Give the image after one change."""
        return self.with_changes((change,))

    def with_changes(self, changes: Iterable[Change]) -> "ClusterImage":
        """Give the image after all the changes; no mapping is copied twice for them."""
        draft = _Draft(self)
        for change in changes:
            draft.take(change)
        return draft.finish()


def metric_name(topic: str) -> str:
    """Give the name under which a topic's metrics are reported, where '.' cannot stand."""
    return topic.replace(".", "_")


class _Draft:
    """An image while it changes: mappings are copied when first written to."""

    def __init__(self, image: ClusterImage) -> None:
        self._image = image
        self._cluster_id = image.cluster_id
        self._next_producer_id = image.next_producer_id
        self._brokers: dict[BrokerId, BrokerFact] | None = None
        self._topics: dict[TopicName, TopicFact] | None = None
        self._topics_by_id: dict[TopicId, TopicFact] = {}
        self._names_by_metric: dict[str, TopicName] = {}
        self._mirrors: dict[str, MirrorFact] | None = None
        self._broker_configs: dict[BrokerId | None, Mapping[str, str]] | None = None
        # Partitions of topics of which single ones change: a tuple per change would be quadratic.
        self._partitions: dict[TopicName, list[PartitionFact]] = {}

    def take(self, change: Change) -> None:
        """Take one change in."""
        match change:
            case TopicSet() | TopicDeleted() | PartitionsAdded() | PartitionSet():
                self._take_of_topic(change)
            case TopicConfigSet(name, config):
                self._set_topic(replace(self._topic(name), config=dict(config)))
            case TopicMirrorSet(name, mirror):
                self._set_topic(replace(self._topic(name), mirror=mirror))
            case MirrorSet() | MirrorDeleted():
                self._take_of_mirror(change)
            case ClusterNamed(cluster_id):
                self._cluster_id = cluster_id
            case ProducerIdsTaken(next_producer_id):
                self._next_producer_id = next_producer_id
            case _:
                self._take_of_broker(change)

    def finish(self) -> ClusterImage:
        """Give the changed image."""
        for name in tuple(self._partitions):
            self._set_topic(self._topic(name))
        image = self._image
        topics = self._topics
        return ClusterImage(
            cluster_id=self._cluster_id,
            brokers=image.brokers if self._brokers is None else self._brokers,
            topics=image.topics if topics is None else topics,
            topics_by_id=image.topics_by_id if topics is None else self._topics_by_id,
            names_by_metric=image.names_by_metric if topics is None else self._names_by_metric,
            mirrors=image.mirrors if self._mirrors is None else self._mirrors,
            broker_configs=(
                image.broker_configs if self._broker_configs is None else self._broker_configs
            ),
            next_producer_id=self._next_producer_id,
        )

    def _take_of_topic(
        self, change: TopicSet | TopicDeleted | PartitionsAdded | PartitionSet
    ) -> None:
        match change:
            case PartitionSet(of, partition):
                self._partitions_of(of.topic)[of.partition] = partition
            case PartitionsAdded(name, first, partitions):
                # From `first` on, so that the change can be taken in twice.
                self._partitions_of(name)[first:] = partitions
            case TopicSet(topic):
                self._drop_topic(topic.name)
                self._set_topic(topic)
            case TopicDeleted(name):
                self._drop_topic(name)
            case _:
                assert_never(change)

    def _take_of_mirror(self, change: MirrorSet | MirrorDeleted) -> None:
        if self._mirrors is None:
            self._mirrors = dict(self._image.mirrors)
        match change:
            case MirrorSet(mirror):
                self._mirrors[mirror.name] = mirror
            case MirrorDeleted(name):
                self._mirrors.pop(name, None)
            case _:
                assert_never(change)

    def _take_of_broker(self, change: BrokerSet | BrokerRemoved | BrokerConfigSet) -> None:
        if self._brokers is None:
            self._brokers = dict(self._image.brokers)
        if self._broker_configs is None:
            self._broker_configs = dict(self._image.broker_configs)
        match change:
            case BrokerSet(broker):
                self._brokers[broker.id] = broker
            case BrokerRemoved(broker_id):
                self._brokers.pop(broker_id, None)
            case BrokerConfigSet(broker_id, config):
                self._broker_configs.pop(broker_id, None)
                if config:
                    self._broker_configs[broker_id] = dict(config)
            case _:
                assert_never(change)

    def _mutable_topics(self) -> dict[TopicName, TopicFact]:
        if self._topics is None:
            self._topics = dict(self._image.topics)
            self._topics_by_id = dict(self._image.topics_by_id)
            self._names_by_metric = dict(self._image.names_by_metric)
        return self._topics

    def _topic(self, name: TopicName) -> TopicFact:
        """Give a topic as it is by now, with the partitions that changed put into it."""
        topics = self._image.topics if self._topics is None else self._topics
        topic = topics[name]
        partitions = self._partitions.pop(name, None)
        return topic if partitions is None else replace(topic, partitions=tuple(partitions))

    def _partitions_of(self, name: TopicName) -> list[PartitionFact]:
        partitions = self._partitions.get(name)
        if partitions is None:
            partitions = self._partitions[name] = list(self._topic(name).partitions)
        return partitions

    def _set_topic(self, topic: TopicFact) -> None:
        self._mutable_topics()[topic.name] = topic
        self._topics_by_id[topic.id] = topic
        self._names_by_metric[metric_name(topic.name)] = topic.name

    def _drop_topic(self, name: TopicName) -> None:
        self._partitions.pop(name, None)
        topic = self._mutable_topics().pop(name, None)
        if topic is not None:
            self._topics_by_id.pop(topic.id, None)
            self._names_by_metric.pop(metric_name(name), None)
