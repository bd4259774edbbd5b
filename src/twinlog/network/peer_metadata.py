"""What a cluster told us of its topics and brokers, merged so that epochs never go back."""

from dataclasses import dataclass, replace
from typing import Final

from twinlog.model.errors import ErrorCode
from twinlog.model.ids import (
    NO_EPOCH,
    BrokerId,
    LeaderEpoch,
    TopicId,
    TopicName,
    TopicPartition,
)
from twinlog.network.addresses import Address
from twinlog.wire.messages.metadata import MetadataPartition, MetadataResponse, MetadataTopic

NO_LEADER: Final = BrokerId(-1)


@dataclass(frozen=True, slots=True)
class PeerNode:
    """A broker of the other cluster."""

    node_id: BrokerId
    address: Address
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class PeerPartition:
    """A partition as its cluster sees it; ``leader_id`` is -1 while it has no leader."""

    partition: int
    leader_id: BrokerId
    leader_epoch: LeaderEpoch
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    error_code: int = 0


@dataclass(frozen=True, slots=True)
class PeerTopic:
    """A topic of the other cluster; its id is all zeroes where the cluster knows no ids."""

    name: TopicName
    topic_id: TopicId
    is_internal: bool
    partitions: tuple[PeerPartition, ...]
    error_code: int = 0


class PeerMetadata:
    """The latest metadata of a cluster. Who reads it never sees a leader epoch go back."""

    def __init__(self) -> None:
        self.cluster_id: str | None = None
        self.controller_id = NO_LEADER
        self.nodes: dict[BrokerId, PeerNode] = {}
        self.topics: dict[TopicName, PeerTopic] = {}

    def partition(self, of: TopicPartition) -> PeerPartition | None:
        """Give what is known of a partition."""
        topic = self.topics.get(of.topic)
        if topic is None:
            return None
        return next((p for p in topic.partitions if p.partition == of.partition), None)

    def take(self, response: MetadataResponse, *, is_of_all_topics: bool) -> list[PeerTopic]:
        """Merge a response in; give its topics, those with an error too.

        A topic that its cluster does not know, or that is missing where all were asked for, is
        forgotten.
        """
        self.cluster_id = response.cluster_id
        self.controller_id = BrokerId(response.controller_id)
        if response.brokers:
            self.nodes = {
                BrokerId(b.node_id): PeerNode(BrokerId(b.node_id), Address(b.host, b.port), b.rack)
                for b in response.brokers
            }
        told = [self._merged(topic) for topic in response.topics if topic.name is not None]
        if is_of_all_topics:
            self.topics = {t.name: t for t in told if not t.error_code}
            return told
        for topic in told:
            if not topic.error_code:
                self.topics[topic.name] = topic
            elif topic.error_code in _GONE:
                self.topics.pop(topic.name, None)
        return told

    def learn_node(self, node: PeerNode) -> None:
        """Note a broker that another response named."""
        self.nodes[node.node_id] = node

    def _merged(self, told: MetadataTopic) -> PeerTopic:
        name = TopicName(told.name or "")
        known = self.topics.get(name)
        is_same = known is not None and known.topic_id == told.topic_id
        before = {p.partition: p for p in known.partitions} if known and is_same else {}
        partitions = sorted(told.partitions, key=lambda p: p.partition_index)
        return PeerTopic(
            name,
            TopicId(told.topic_id),
            told.is_internal,
            tuple(_newer(before.get(p.partition_index), p) for p in partitions),
            told.error_code,
        )


_GONE: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


def _newer(known: PeerPartition | None, told: MetadataPartition) -> PeerPartition:
    """Give what was told, or the leader known if the broker that told it is behind."""
    partition = PeerPartition(
        told.partition_index,
        BrokerId(told.leader_id),
        LeaderEpoch(told.leader_epoch),
        tuple(told.replica_nodes),
        tuple(told.isr_nodes),
        told.error_code,
    )
    if known is None or NO_EPOCH in (told.leader_epoch, known.leader_epoch):
        return partition
    if told.leader_epoch >= known.leader_epoch:
        return partition
    return replace(
        partition, leader_id=known.leader_id, leader_epoch=known.leader_epoch, error_code=0
    )
