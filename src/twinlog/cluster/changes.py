"""Every way in which a cluster image can change.

Changes say what is so from now on, not what to do: taking one in twice gives the same image.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from twinlog.cluster.facts import (
    BrokerFact,
    MirrorFact,
    MirrorTopicFact,
    PartitionFact,
    TopicFact,
)
from twinlog.model.ids import BrokerId, TopicName, TopicPartition


@dataclass(frozen=True, slots=True)
class ClusterNamed:
    """The cluster has its id."""

    cluster_id: str


@dataclass(frozen=True, slots=True)
class BrokerSet:
    """A broker serves, or serves at another address."""

    broker: BrokerFact


@dataclass(frozen=True, slots=True)
class BrokerRemoved:
    """A broker serves no more."""

    broker_id: BrokerId


@dataclass(frozen=True, slots=True)
class BrokerConfigSet:
    """These are now all the dynamic settings of a broker; of every broker, when id is None."""

    broker_id: BrokerId | None
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TopicSet:
    """A topic was created, or is now all this."""

    topic: TopicFact


@dataclass(frozen=True, slots=True)
class TopicDeleted:
    """A topic is no more."""

    name: TopicName


@dataclass(frozen=True, slots=True)
class PartitionsAdded:
    """A topic has more partitions, numbered from its old count on."""

    topic: TopicName
    first: int
    partitions: tuple[PartitionFact, ...]


@dataclass(frozen=True, slots=True)
class PartitionSet:
    """One partition is now led and copied like this."""

    of: TopicPartition
    partition: PartitionFact


@dataclass(frozen=True, slots=True)
class TopicConfigSet:
    """These are now all of a topic's config overrides."""

    topic: TopicName
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TopicMirrorSet:
    """A topic now belongs to a mirror in this way, or to none."""

    topic: TopicName
    mirror: MirrorTopicFact | None


@dataclass(frozen=True, slots=True)
class MirrorSet:
    """A mirror was created, or has another config."""

    mirror: MirrorFact


@dataclass(frozen=True, slots=True)
class MirrorDeleted:
    """A mirror is no more."""

    name: str


@dataclass(frozen=True, slots=True)
class ProducerIdsTaken:
    """Producer ids below ``next_producer_id`` are handed out."""

    next_producer_id: int


Change = (
    ClusterNamed
    | BrokerSet
    | BrokerRemoved
    | BrokerConfigSet
    | TopicSet
    | TopicDeleted
    | PartitionsAdded
    | PartitionSet
    | TopicConfigSet
    | TopicMirrorSet
    | MirrorSet
    | MirrorDeleted
    | ProducerIdsTaken
)
