"""A mirrored partition of this broker: its machine, and how what it orders is carried out."""

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine
from typing import Any, Final

from twinlog.broker.mirrors.audit import tell_state, tell_taken_up
from twinlog.broker.mirrors.cutting import Cut, Cutting
from twinlog.broker.mirrors.local_log import Step, Write, take_step, write
from twinlog.broker.mirrors.own_state import OwnState, Save
from twinlog.broker.mirrors.questions import Asked
from twinlog.broker.mirrors.work import Fetcher, MirrorWork
from twinlog.broker.partitions import Partition
from twinlog.mirroring import effects as do
from twinlog.mirroring import events as on
from twinlog.mirroring.lag import LagInputs
from twinlog.mirroring.partition import PartitionMirror
from twinlog.mirroring.policy import MirrorPolicy
from twinlog.mirroring.records import MirrorPartition
from twinlog.mirroring.shard import Known
from twinlog.mirroring.states import DesiredState, MirrorState
from twinlog.model.errors import ApiError, DiskError, ErrorCode
from twinlog.model.ids import TopicPartition

log = logging.getLogger(__name__)

STATE_RETRY_S: Final = 1.0
BEGIN_AGAIN_S: Final = 5.0
REPLICAS_TIMEOUT_S: Final = 5.0
_FENCED: Final = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH)


class DrivenPartition:
    """Feeds one machine with events and carries out its effects, in order.

    When an effect cannot be carried out and the machine has no event for that, the machine is
    thrown away and another made from what is durable. Answers to the old one reach nobody.
    """

    def __init__(
        self,
        partition: Partition,
        work: MirrorWork,
        desired: DesiredState,
        policy: MirrorPolicy,
    ) -> None:
        self.of: Final[TopicPartition] = partition.of
        self.partition: Final = partition
        self.key: Final = MirrorPartition(
            mirror=work.name, topic_id=partition.topic_id, partition=partition.of.partition
        )
        self.desired = desired
        self._work: Final = work
        self._cutting: Final = Cutting(partition, self.key, work)
        self._own_state: Final = OwnState(partition, self.key, work)
        self.policy = policy
        self._machine = PartitionMirror(self.key, policy)
        self._life = 0
        self._is_started = False
        self._is_closed = False
        self._is_busy = False
        self._inbox: Final[deque[on.Event]] = deque()
        self._fetcher: Fetcher | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms: int | None = None

    # What is known of it

    @property
    def state(self) -> MirrorState:
        """Its last committed state."""
        return self._machine.state

    @property
    def lag(self) -> LagInputs:
        """What the source has told, and by leaving it out has told again."""
        self._take_in_unchanged()
        return self._machine.lag

    @property
    def trouble(self) -> str | None:
        """What it is waiting out."""
        return self._machine.trouble

    @property
    def is_aligned(self) -> bool:
        """Whether its log is known to hold nothing but the source's records."""
        return self._machine.standing.is_aligned

    # Its life

    def begin(self) -> None:
        """Start from what is durable, as soon as that can be read."""
        self._life += 1
        self._is_started = False
        self._stop_fetching()
        self._cancel_timer()
        self._spawn(self._begin(self._life))

    async def _begin(self, life: int) -> None:
        known = await self._known(life)
        if known is None or life != self._life:
            return
        lag = self._machine.lag
        self._machine = PartitionMirror(self.key, self.policy, lag=lag)
        self._is_started = True
        fact = self._work.facts.image.partition(self.of)
        if fact is None:
            return  # its topic is gone, and this ends with it
        self.deliver(
            on.Started(
                self.desired,
                known.state,
                known.last_mirror_epoch,
                self.partition.leader_epoch,
                known.start,
                fact.handed_over,
            )
        )

    def _begin_later(self) -> None:
        self._life += 1
        self._is_started = False
        self._stop_fetching()
        self._spawn(self._wait_and_begin(self._life))

    async def _wait_and_begin(self, life: int) -> None:
        await asyncio.sleep(BEGIN_AGAIN_S)
        if life == self._life:
            self.begin()

    async def _known(self, life: int) -> Known | None:
        """Read what is durable, as often as it takes; None once this life is over."""
        while life == self._life:
            try:
                return await self._own_state.read()
            except ApiError as error:
                fields = {"partition": str(self.of), "why": str(error)}
                log.debug("mirror state cannot be read yet", extra=fields)
                await asyncio.sleep(STATE_RETRY_S)
        return None

    def close(self) -> None:
        """Let go: the partition is no longer mirrored here."""
        self._life += 1
        self._is_closed = True
        self._is_started = False
        self._stop_fetching()
        self._cancel_timer()

    def want(self, desired: DesiredState) -> None:
        """Take in what the operator asks for now."""
        if desired != self.desired:
            self.desired = desired
            if self._is_started:
                self.deliver(on.DesiredChanged(desired))
        self._release()

    def _release(self) -> None:
        """Let writers in where the stop is through; also if it was taken back and asked anew."""
        machine = self._machine
        is_through = machine.state == MirrorState.STOPPED and machine.saving is None
        if self._is_started and is_through and self.desired == DesiredState.STOPPED:
            self.partition.release_from_mirror()

    def follow(self, policy: MirrorPolicy) -> None:
        """Decide by this from now on; what has failed looks again whether it is tried again."""
        if policy == self.policy:
            return
        self.policy = self._machine.policy = policy
        if self._is_started and self._machine.state == MirrorState.FAILED:
            self.begin()

    def leader_epoch_seen(self) -> None:
        """Take in the leader epoch that the image shows."""
        epoch = self.partition.leader_epoch
        if self._is_started and epoch > self._machine.own_epoch:
            self.deliver(on.LeaderEpochSeen(epoch))

    def deliver(self, event: on.Event) -> None:
        """Give the machine an event and carry out all that follows from it.

        Events that come of this are taken in afterwards, in order: nothing is done half.
        """
        if not self._is_started:
            return
        self._inbox.append(event)
        if self._is_busy:
            return
        self._is_busy = True
        try:
            while self._inbox and self._is_started:
                self._take(self._inbox.popleft())
        except AssertionError:
            # A fault of ours: the others go on, and this one begins again from what is durable.
            log.exception("mirror partition failed", extra={"partition": str(self.of)})
            self._begin_later()
        finally:
            self._is_busy = False
            self._inbox.clear()
        self._set_timer()

    def _take(self, event: on.Event) -> None:
        life = self._life
        before = self._machine.state
        effects = self._machine.on(event, self._work.clock.now_ms(), self._work.clock.fraction())
        if self._machine.state != before:
            self._tell(event, before)
        for effect in effects:
            if life != self._life:
                return
            self.carry_out(effect)

    def _tell(self, event: on.Event, before: MirrorState) -> None:
        machine, mirror = self._machine, self._work.name
        if isinstance(event, on.Started):
            tell_taken_up(mirror, self.partition, machine)
        else:
            tell_state(mirror, self.partition, before, machine)
        self._release()

    # Effects

    def carry_out(self, effect: do.Effect) -> None:
        """Carry out one effect; what has to wait goes on in a task of its own."""
        match effect:
            case do.FetchFrom() | do.StopFetching():
                self._fetch(effect)
            case do.Append() | do.BeginAt() | do.RaiseLogStart():
                self._write(effect)
            case (
                do.FindSourceLeader()
                | do.AskSourceRange()
                | do.AskOffsetAt()
                | do.AskEpochEnd()
                | do.ReadSourceMirrors()
            ):
                life = self._life
                self._work.questions.ask(
                    Asked(self.of, effect, lambda event: self._answer(life, event))
                )
            case do.SaveState() | do.SaveLastMirrorEpoch() | do.SaveStart():
                self._spawn(self._save(effect, self._life))
            case do.BumpEpoch(at_least):
                self._work.bump(self.of, at_least)
            case do.AwaitReplicas(turn):
                self._spawn(self._replicated(on.ReplicasConverged(turn), self._life))
            case do.AwaitCommit(turn):
                self._spawn(self._replicated(on.LogCommitted(turn), self._life))
            case do.NoteGap():
                self._cutting.gap = effect
            case do.TruncateTo() | do.RestartAt():
                self._spawn(self._cut(effect, self._life))
            case _:
                self._step(effect)

    def _answer(self, life: int, event: on.Event) -> None:
        if life == self._life:
            self.deliver(event)

    def _fetch(self, effect: do.FetchFrom | do.StopFetching) -> None:
        if isinstance(effect, do.StopFetching):
            self._stop_fetching()
            return
        fetcher = self._work.fetcher_of(effect.node, self.of)
        if fetcher is not self._fetcher:
            self._stop_fetching()
            self._fetcher = fetcher
        fetcher.plan.put(self.of, effect)
        fetcher.wake.set()

    def _take_in_unchanged(self) -> None:
        heard_ms = None if self._fetcher is None else self._fetcher.plan.unchanged_at_ms(self.of)
        if heard_ms is not None:
            self._machine.lag.unchanged(heard_ms)

    def _stop_fetching(self) -> None:
        if self._fetcher is not None:
            self._take_in_unchanged()
            self._fetcher.plan.drop(self.of)
            self._fetcher = None

    def _write(self, effect: Write) -> None:
        failed = write(self.partition, effect)
        if failed is not None:
            self.deliver(failed)

    async def _save(self, save: Save, life: int) -> None:
        try:
            event = await self._own_state.write(save)
        except ApiError as error:
            fields = {"partition": str(self.of), "why": str(error)}
            log.warning("mirror state not written, begun again", extra=fields)
            if error.code not in _FENCED:
                await asyncio.sleep(STATE_RETRY_S)
            if life == self._life:
                self.begin()
            return
        self._answer(life, event)

    async def _cut(self, cut: Cut, life: int) -> None:
        """Cut the local log unless the machine, or its turn, is another by then."""
        event: on.Event = on.StepDone(cut.turn)
        try:
            is_done = await self._cutting.carry_out(
                cut, lambda: life == self._life and cut.turn == self._machine.turn
            )
        except (ApiError, DiskError) as error:
            is_done, event = True, on.StepFailed(str(error), cut.turn)
        if is_done:
            self._answer(life, event)

    def _step(self, effect: Step) -> None:
        """Read or write the local log at once, and tell the machine."""
        event = take_step(self.partition, effect, self._work.clock.wall_ms())
        if isinstance(event, on.StepDone):
            self._spawn(self._replicated(event, self._life))
        else:
            self.deliver(event)

    async def _replicated(
        self, event: on.StepDone | on.ReplicasConverged | on.LogCommitted, life: int
    ) -> None:
        """Tell the machine once all in-sync replicas have the log up to here."""
        end = self.partition.log.end
        is_so = await self._work.waiting.until(
            lambda: self.partition.high_watermark >= end, [self.of], timeout_s=REPLICAS_TIMEOUT_S
        )
        if is_so:
            self._answer(life, event)
            return
        why = f"{self.of} is replicated up to {self.partition.high_watermark} only, not to {end}"
        self._answer(life, on.StepFailed(why, event.turn))

    # Plumbing

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._work.spawn(work)

    def _set_timer(self) -> None:
        wanted = self._machine.deadline_ms
        if wanted == self._timer_ms:
            return
        self._cancel_timer()
        if wanted is not None:
            delay_s = max(0, wanted - self._work.clock.now_ms()) / 1000
            loop = asyncio.get_running_loop()
            self._timer_ms = wanted
            self._timer = loop.call_later(delay_s, self._ring, self._life)

    def _ring(self, life: int) -> None:
        self._timer, self._timer_ms = None, None
        self._answer(life, on.TimeCame())

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_ms = None, None
