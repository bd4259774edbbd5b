"""The facts a cluster image is made of: brokers, topics, partitions, mirrors."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from twinlog.model.ids import NO_EPOCH, BrokerId, LeaderEpoch, TopicId, TopicName

NO_LEADER: Final = BrokerId(-1)
NEVER_HANDED_OVER: Final = (NO_EPOCH, NO_EPOCH)

CONSUMER_OFFSETS: Final = TopicName("__consumer_offsets")
MIRROR_STATE: Final = TopicName("__mirror_state")
TRANSACTION_STATE: Final = TopicName("__transaction_state")
INTERNAL_TOPICS: Final = frozenset({CONSUMER_OFFSETS, MIRROR_STATE, TRANSACTION_STATE})


class DesiredState(Enum):
    """What an operator asked of a mirror topic; where its partitions are is told elsewhere."""

    MIRRORING = "MIRRORING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


@dataclass(frozen=True, slots=True)
class BrokerFact:
    """A broker that serves, at its advertised address.

    ``epoch`` is raised at every start: it tells one life of the broker from the next.
    """

    id: BrokerId
    host: str
    port: int
    rack: str | None = None
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class PartitionFact:
    """Who leads a partition, and who holds copies.

    ``leader_epoch`` rises with every change of leader and never falls; ``partition_epoch`` rises
    with every change of anything here. ``isr`` is part of ``replicas``, and ``leader`` of ``isr``.
    ``handed_over`` are the leader epochs at which the log was given to a mirror that was not the
    one before: the last time, and the time before that. What was agreed with a source earlier may
    be about records that another mirror has replaced since.
    """

    leader: BrokerId
    leader_epoch: LeaderEpoch
    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    partition_epoch: int = 0
    handed_over: tuple[LeaderEpoch, LeaderEpoch] = NEVER_HANDED_OVER


@dataclass(frozen=True, slots=True)
class MirrorTopicFact:
    """Which mirror a topic belongs to, and what the operator asked of it.

    ``first_partitions`` is how many it had when the mirror was told of it: where those begin is
    the operator's wish; what was added later is mirrored from its earliest record.
    """

    mirror: str
    desired_state: DesiredState
    first_partitions: int = 0


@dataclass(frozen=True, slots=True)
class TopicFact:
    """A topic: its id, its partitions by number, its config overrides, its mirror if it has one."""

    name: TopicName
    id: TopicId
    partitions: tuple[PartitionFact, ...]
    config: Mapping[str, str] = field(default_factory=dict)
    mirror: MirrorTopicFact | None = None

    @property
    def is_internal(self) -> bool:
        """Tell whether the broker itself keeps its state here."""
        return self.name in INTERNAL_TOPICS

    @property
    def read_only_for(self) -> str | None:
        """Name the mirror that keeps clients from writing to the topic; None when they may."""
        if self.mirror is None or self.mirror.desired_state is DesiredState.STOPPED:
            return None
        return self.mirror.mirror


@dataclass(frozen=True, slots=True)
class MirrorFact:
    """A mirror: its config (the source's addresses, filters) and its source's cluster id.

    ``looked_for`` are the filters, to include and to exclude, by which it last looked for topics:
    what is found later and matches them was created since. None when it never looked.
    """

    name: str
    config: Mapping[str, str]
    source_cluster_id: str
    looked_for: tuple[str, str] | None = None
