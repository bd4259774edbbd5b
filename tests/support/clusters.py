"""Builders of small cluster images, for tests of the rules that read them."""

from uuid import UUID

from twinlog.cluster.changes import BrokerSet, Change, ClusterNamed, TopicMirrorSet, TopicSet
from twinlog.cluster.facts import (
    BrokerFact,
    DesiredState,
    MirrorTopicFact,
    PartitionFact,
    TopicFact,
)
from twinlog.cluster.image import ClusterImage
from twinlog.model.ids import BrokerId, LeaderEpoch, TopicId, TopicName

CLUSTER_ID = "destination"


def image_with(*changes: Change, brokers: int = 1) -> ClusterImage:
    """Give a cluster of so many brokers, ids from 1 on, and then changed like this."""
    serving = [
        BrokerSet(BrokerFact(BrokerId(number), f"host-{number}", 9092))
        for number in range(1, brokers + 1)
    ]
    return ClusterImage().with_changes([ClusterNamed(CLUSTER_ID), *serving, *changes])


def topic_id(number: int) -> TopicId:
    """Give the topic id with this number."""
    return TopicId(UUID(int=number))


def topic(
    name: str = "orders",
    number: int = 1,
    *,
    partitions: int = 1,
    replicas: tuple[int, ...] = (1,),
    epoch: int = 0,
) -> TopicSet:
    """Give a topic whose partitions are all led by the first of the replicas."""
    brokers = tuple(BrokerId(broker) for broker in replicas)
    partition = PartitionFact(brokers[0], LeaderEpoch(epoch), brokers, brokers)
    return TopicSet(TopicFact(TopicName(name), topic_id(number), (partition,) * partitions))


def mirrored(name: str, mirror: str, state: DesiredState) -> TopicMirrorSet:
    """Give a topic's belonging to a mirror."""
    return TopicMirrorSet(TopicName(name), MirrorTopicFact(mirror, state))
