"""One mirror at work on this broker: what its partitions and its loops have in common."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from twinlog.broker.clock import Clock
from twinlog.broker.facts import Facts
from twinlog.broker.mirror_board import LossKind, MirrorBoard, MirrorStatus
from twinlog.broker.mirrors.pulling_back import PullingBack
from twinlog.broker.mirrors.questions import Questions
from twinlog.broker.mirrors.source import SourceCluster
from twinlog.broker.waiting import Waiting
from twinlog.cluster.changes import Change
from twinlog.cluster.image import ClusterImage
from twinlog.cluster.mirrors import bump_leader_epochs
from twinlog.config.declare import Settings
from twinlog.coordination.outcome import Outcome, Parked
from twinlog.mirroring import events as on
from twinlog.mirroring.planning import FetchPlan
from twinlog.mirroring.records import MirrorPartition, RecordLoss, home_key
from twinlog.mirroring.shard import LOSSES_KEPT_MAX, MirrorShard, what_of
from twinlog.model.errors import ApiError
from twinlog.model.ids import BrokerId, LeaderEpoch, TopicPartition
from twinlog.telemetry.audit import state_change_logger

log = logging.getLogger(__name__)
audit = state_change_logger()

RunState = Callable[..., Coroutine[Any, Any, Any]]
"""``context.Coordinators.run`` of the mirror coordinator."""

BUMPS_PER_CHANGE_MAX: Final = 500

Losses = tuple[RecordLoss, ...]


class Receiver(Protocol):
    """A partition that waits for what its source tells."""

    def deliver(self, event: on.Event) -> None:
        """Take an event in."""
        ...


@dataclass(slots=True)
class Fetcher:
    """The fetches of some partitions from one source broker, and the call that wakes its loop."""

    plan: FetchPlan = field(default_factory=FetchPlan)
    wake: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True)
class MirrorWork:
    """A mirror while it is at work here; made anew when its connection settings change."""

    name: str
    settings: Settings
    source: SourceCluster
    questions: Questions
    tasks: asyncio.TaskGroup
    clock: Clock
    facts: Facts
    waiting: Waiting
    run_state: RunState
    board: MirrorBoard
    status: MirrorStatus
    offsets: PullingBack
    start_fetcher: Callable[["MirrorWork", BrokerId, int, Fetcher], Coroutine[Any, Any, None]]
    fetcher_count: int = 1
    write_timeout_s: float = 5.0
    """How long a record of ``__mirror_state`` may wait for its commit."""
    saving: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the tail of a log is copied."""
    receivers: dict[TopicPartition, Receiver] = field(default_factory=dict)
    throttled: frozenset[TopicPartition] = frozenset()
    """Those that are fetched at the broker's rate for all of them."""
    _fetchers: dict[tuple[BrokerId, int], Fetcher] = field(default_factory=dict)
    _bumps: dict[TopicPartition, LeaderEpoch] = field(default_factory=dict)
    _is_bumping: bool = False

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something beside; while the mirror is being ended, nothing is begun any more."""
        try:
            self.tasks.create_task(work)
        except RuntimeError:
            # An answer may still come in when the group is closing: it is nobody's by then.
            work.close()

    def throttle(self, partitions: frozenset[TopicPartition]) -> None:
        """Fetch these at the throttled rate from now on, and no others."""
        if partitions != self.throttled:
            self.throttled = partitions
            self.status.throttled = partitions
            self.wake_fetchers()

    def wake_fetchers(self) -> None:
        """Let every fetcher look anew what it may fetch."""
        for fetcher in self._fetchers.values():
            fetcher.wake.set()

    def fetcher_of(self, node: BrokerId, of: TopicPartition) -> Fetcher:
        """Give the fetcher of a partition at one source broker; its task is started if need be."""
        number = hash((of.topic, of.partition)) % self.fetcher_count
        fetcher = self._fetchers.get((node, number))
        if fetcher is None:
            fetcher = self._fetchers[node, number] = Fetcher()
            self.spawn(self.start_fetcher(self, node, number, fetcher))
        return fetcher

    def bump(self, of: TopicPartition, at_least: LeaderEpoch) -> None:
        """Have a partition's leader epoch raised; what is asked for at about once goes together."""
        self._bumps[of] = max(at_least, self._bumps.get(of, at_least), key=int)
        if not self._is_bumping:
            self._is_bumping = True
            self.spawn(self._bump_all())

    async def _bump_all(self) -> None:
        try:
            while self._bumps:
                some = list(self._bumps.items())[:BUMPS_PER_CHANGE_MAX]
                for of, _ in some:
                    del self._bumps[of]
                # The rule raises strictly above what it is given.
                wanted = {of: LeaderEpoch(epoch - 1) for of, epoch in some}

                def decide(
                    image: ClusterImage, wanted: dict[TopicPartition, LeaderEpoch] = wanted
                ) -> tuple[Change, ...]:
                    return bump_leader_epochs(image, wanted)

                await self.facts.change(decide)
        except ApiError as error:
            # Whoever still waits for its epoch asks again after a while.
            log.warning("leader epochs not raised", extra={"mirror": self.name, "why": str(error)})
        finally:
            self._is_bumping = False

    async def note_losses(
        self, of: TopicPartition, key: MirrorPartition, epoch: LeaderEpoch, losses: Losses
    ) -> None:
        """Write down what is about to be cut off, or will never come. Raises ApiError."""
        fresh: list[RecordLoss] = []

        def write(shard: MirrorShard, _: int) -> Outcome[Losses]:
            outcome = shard.write_losses(key, epoch, losses)
            assert not isinstance(outcome.reply, Parked)
            fresh[:] = outcome.reply
            return outcome

        unsure = self.status.counts.unsure_losses
        try:
            await self.run_on_shard(home_key(key), write, self.write_timeout_s)
        except BaseException:
            if fresh:  # they may be written: who comes with them again finds them known then
                unsure[key] = [*unsure.get(key, ()), *fresh][-LOSSES_KEPT_MAX:]
            raise
        told_again = {what_of(loss) for loss in unsure.pop(key, ())}
        self._count(of, [loss for loss in losses if loss in fresh or what_of(loss) in told_again])

    def _count(self, of: TopicPartition, losses: Iterable[RecordLoss]) -> None:
        for loss in losses:
            kind = LossKind(loss.kind)
            self.status.counts.losses[kind] += 1
            self.status.counts.lost_records[kind] += loss.end - loss.first
            fields = {
                "mirror": self.name,
                "topic": of.topic,
                "partition": of.partition,
                "kind": loss.kind,
                "first": loss.first,
                "end": loss.end,
                "why": loss.cause,
                "saved_to": loss.saved_to,
                "saved_bytes": loss.saved_bytes,
            }
            audit.warning("mirrored records lost", extra=fields)

    def run_on_shard(
        self, key: str, command: Callable[[Any, int], Outcome[Any]], timeout_s: float
    ) -> Coroutine[Any, Any, Any]:
        """Run a command of the mirror coordinator on the shard that ``key`` lives in."""
        return self.run_state(key, command, timeout_s=timeout_s)
