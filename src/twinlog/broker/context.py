"""What a handler gets: who asks (Context), and what of the broker it may use (Broker)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from twinlog.broker.clock import Clock
from twinlog.broker.facts import Facts
from twinlog.broker.mirror_board import MirrorBoard
from twinlog.broker.new_topics import NewTopics
from twinlog.broker.partitions import Partitions
from twinlog.broker.producer_ids import ProducerIdBlocks
from twinlog.broker.request_counts import RequestCounts
from twinlog.broker.waiting import Waiting
from twinlog.cluster.configs import broker_settings
from twinlog.config.declare import Settings
from twinlog.coordination.outcome import Outcome
from twinlog.model.ids import BrokerId
from twinlog.network.peer import Peer
from twinlog.replication.fetch_sessions import FetchSessions

Reply = TypeVar("Reply")


class Coordinators(Protocol):
    """Runs commands on the shards of one internal topic; ``loops/coordinators.py`` is the real one.

    A shard is the part of a coordinator that lives in one partition of the internal topic.
    """

    async def run(
        self, key: str, command: Callable[[Any, int], Outcome[Reply]], *, timeout_s: float
    ) -> Reply:
        """Run ``command(shard, now_ms)`` on the shard that ``key`` lives in; reply once committed.

        Raises ApiError: COORDINATOR_NOT_AVAILABLE while the topic is being made,
        COORDINATOR_LOAD_IN_PROGRESS while the shard loads, NOT_COORDINATOR when it is not here.
        """
        ...

    async def run_everywhere(
        self, command: Callable[[Any, int], Outcome[Reply]], *, timeout_s: float
    ) -> list[Reply]:
        """Run ``command`` on every shard of this broker; raises while one of them loads."""
        ...


@dataclass(frozen=True, slots=True)
class SpokenApi:
    """One line of ApiVersions: the key and the versions we advertise (ends inclusive)."""

    key: int
    min_version: int
    max_version: int


@dataclass(slots=True)
class Broker:
    """What handlers and loops may use; built by ``server.py`` and by nobody else."""

    broker_id: BrokerId
    settings: Settings
    clock: Clock
    facts: Facts
    partitions: Partitions
    waiting: Waiting
    fetch_sessions: FetchSessions
    groups: Coordinators
    mirror_states: Coordinators
    spoken: tuple[SpokenApi, ...]
    new_topics: NewTopics
    producer_ids: ProducerIdBlocks = field(default_factory=ProducerIdBlocks)
    mirrors: MirrorBoard = field(default_factory=MirrorBoard)
    requests: RequestCounts = field(default_factory=RequestCounts)

    @property
    def effective_settings(self) -> Settings:
        """The settings of the broker's file, and over them what was set at run time."""
        return broker_settings(self.settings, self.facts.image, self.broker_id)


@dataclass(slots=True)
class Context:
    """Who asks, in which version, and of which broker."""

    broker: Broker
    api_version: int
    client_id: str | None
    peer: Peer
