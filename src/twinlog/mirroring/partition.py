"""The whole life of one mirrored partition on its leader: events in, effects out.

A state is written first and acted on when it is committed (StateSaved). Whatever the partition was
doing when it leaves a state is forgotten by a new ``turn``: answers to older questions are passed
over. So at any moment it is doing one of four things: waiting for a state to be saved, aligning,
following, or stopping.
"""

from dataclasses import dataclass, field
from typing import Final, assert_never

from twinlog.mirroring import conclusions
from twinlog.mirroring.aligning import Alignment
from twinlog.mirroring.beginning import Beginning
from twinlog.mirroring.effects import AwaitReplicas, BumpEpoch, Effect, StopFetching
from twinlog.mirroring.events import (
    AppendFailed,
    DesiredChanged,
    Diverged,
    Event,
    Fetched,
    LeaderEpochSeen,
    RecoverAsked,
    ReplicasConverged,
    SourceLeaderMoved,
    SourceLost,
    SourceRefused,
    Started,
    StateSaved,
    StepDone,
    StepFailed,
    TimeCame,
)
from twinlog.mirroring.following import BadBatch, EpochTooHigh, Following, MetadataIsOld, Obstacle
from twinlog.mirroring.lag import LagInputs
from twinlog.mirroring.policy import MirrorPolicy
from twinlog.mirroring.records import LastMirrorEpoch, MirrorPartition
from twinlog.mirroring.standing import Standing
from twinlog.mirroring.states import ALIGNING, DesiredState, MirrorState, may_step
from twinlog.mirroring.stopping import AllWritten, LookAgain, StopFailed, Stopping
from twinlog.model.errors import ErrorCode, error_name, is_retriable
from twinlog.model.ids import NO_EPOCH, LeaderEpoch

EPOCH_WAIT_MS: Final = 5_000
"""How long a raised leader epoch may take to be seen before it is asked for again."""


Order = Started | DesiredChanged | RecoverAsked | SourceLost


@dataclass(slots=True)
class PartitionMirror:
    """Mirrors one partition. ``trouble`` says what it is waiting out, None when all is well."""

    of: MirrorPartition
    policy: MirrorPolicy = field(default_factory=MirrorPolicy)
    standing: Standing = field(default_factory=Standing)
    desired: DesiredState = DesiredState.MIRRORING
    own_epoch: LeaderEpoch = NO_EPOCH
    last_mirror_epoch: LastMirrorEpoch | None = None
    handed_over_at: LeaderEpoch = NO_EPOCH
    """Our epoch when a mirror before this one was given the log."""
    beginning: Beginning = field(default_factory=Beginning)
    trouble: str | None = None
    deadline_ms: int | None = None
    lag: LagInputs = field(default_factory=LagInputs)
    turn: int = 0
    saving: MirrorState | None = None
    _alignment: Alignment | None = None
    _following: Following | None = None
    _stopping: Stopping | None = None
    _failure: tuple[str, bool] | None = None
    """Why the partition fails as soon as the state under way is committed, and if it is retried."""
    _doubted: conclusions.Doubtful | None = None
    _troubles: int = 0
    _fencing_epoch: LeaderEpoch = NO_EPOCH
    _now_ms: int = 0
    _chance: float = 0.0

    @property
    def state(self) -> MirrorState:
        """The last state that was committed."""
        return self.standing.state

    @property
    def is_following(self) -> bool:
        """Whether the partition belongs into the fetches."""
        return self._following is not None

    def on(self, event: Event, now_ms: int, chance: float) -> list[Effect]:
        """Take one event in; give the effects to carry out, in order.

        ``now_ms`` is monotonic; ``chance`` is a random number in [0, 1) for the jitter of retries.
        """
        self._now_ms, self._chance = now_ms, chance
        if type(event) is Fetched:  # the hot path first
            return self._fetched(event)
        if getattr(event, "turn", self.turn) != self.turn:
            return []
        match event:
            case Started() | DesiredChanged() | RecoverAsked() | SourceLost():
                return self._on_order(event)
            case StateSaved(state, state_epoch):
                return self._saved(state, state_epoch)
            case TimeCame():
                return self._time_came()
            case AppendFailed(offset, why, log_end):
                self.lag.destination_offset = log_end
                return self._fail(f"at offset {offset}: {why}") if self._following else []
            case SourceRefused(code, why):
                return self._refused(code, why)
            case _:
                return self._on_answer(event)

    # Orders

    def _on_order(self, event: Order) -> list[Effect]:
        match event:
            case Started():
                return self._started(event)
            case DesiredChanged(desired):
                self.desired = desired
                if self.saving is not None or self.standing.target(desired) == self.state:
                    return []
                return self._go_on()
            case RecoverAsked():
                if self.state != MirrorState.FAILED or self.saving is not None:
                    return []
                target = self.standing.retry_target
                self.standing.forgive()
                return self._save(target)
            case SourceLost(why):
                if self.state in (MirrorState.STOPPING, MirrorState.STOPPED, MirrorState.UNKNOWN):
                    return []
                if self.standing.has_failed_for_good and self.standing.error == why:
                    return []
                return self._fail(why, is_retryable=False)
            case _:
                assert_never(event)

    def _started(self, started: Started) -> list[Effect]:
        self.desired, self.own_epoch = started.desired, started.leader_epoch
        self.last_mirror_epoch, self.beginning.noted = started.agreed, started.start
        self.handed_over_at = started.handed_over[1]
        if started.actual is not None:
            self.standing.restore(started.actual)
        target = self.standing.target(self.desired)
        if target == self.state and target in (MirrorState.STOPPED, MirrorState.PAUSED):
            return []
        return self._save(target)

    def _go_on(self) -> list[Effect]:
        """Step on towards the desired state, or do what the present one stands for."""
        target = self.standing.target(self.desired)
        return self._save(target) if target != self.state else self._enter()

    # States

    def _save(self, state: MirrorState) -> list[Effect]:
        assert may_step(self.state, state), f"{self.of}: {self.state.name} -> {state.name}"
        effects = self._leave()
        if self.saving is not None:
            return effects  # once that is committed, ``_go_on`` looks again
        self.saving = state
        if state in ALIGNING and self.state not in ALIGNING:
            # Before the state is seen: by what it told long ago we would pass for level with it.
            self.lag.doubt_source()
        effects.append(self.standing.leave_for(state))
        return effects

    def _leave(self) -> list[Effect]:
        """Let go of what is being done."""
        effects: list[Effect] = [StopFetching()] if self._following is not None else []
        self._following = self._alignment = self._stopping = None
        self.deadline_ms = None
        self.turn += 1
        return effects

    def _saved(self, state: MirrorState, state_epoch: int) -> list[Effect]:
        if self.saving != state:
            return []
        self.saving = None
        is_reassertion = self.state == state == MirrorState.MIRRORING and self.is_following
        self.beginning.step(self.state, state)
        self.standing.state, self.standing.state_epoch = state, state_epoch
        if state == MirrorState.MIRRORING:
            # The shard deletes it in the same batch: the stop it belonged to is undone.
            self.last_mirror_epoch = None
        target = self.standing.target(self.desired)
        failure, self._failure = self._failure, None
        if failure is not None and target != MirrorState.STOPPING:
            return self._fail(failure[0], is_retryable=failure[1])
        return [] if is_reassertion and target == state else self._go_on()

    def _enter(self) -> list[Effect]:
        self.trouble = self._doubted = None
        self._troubles = 0
        if self.state in ALIGNING:
            return self._align()
        if self.state == MirrorState.PAUSING:
            return self._save(MirrorState.PAUSED)
        if self.state == MirrorState.STOPPING:
            return self._look_for_stop()
        if self.state == MirrorState.FAILED:
            delay_ms = self.standing.retry_delay_ms(self.policy.failed, self._chance)
            self.deadline_ms = None if delay_ms is None else self._now_ms + delay_ms
        return []

    def _is_only_saving(self) -> bool:
        """Whether nothing goes on beside the saving of a state."""
        return self.saving is not None and self._following is None and self._alignment is None

    # Failure

    def _fail(self, why: str, *, is_retryable: bool = True) -> list[Effect]:
        if self.saving is not None:
            self._failure = (why, is_retryable)
            return self._leave()
        self.standing.fail(why, is_retryable=is_retryable)
        return self._save(MirrorState.FAILED)

    def _time_came(self) -> list[Effect]:
        if self.deadline_ms is None or self._now_ms < self.deadline_ms or self.saving is not None:
            return []
        self.deadline_ms = None
        if self.state == MirrorState.FAILED:
            return self._save(self.standing.retry_target)
        if self.state == MirrorState.STOPPING:
            return self._look_for_stop()
        if self._alignment is not None and self._alignment.is_waiting_for_epoch:
            self.deadline_ms = self._now_ms + EPOCH_WAIT_MS
            return self._alignment.again()
        return self._align()

    def _refused(self, code: int, why: str) -> list[Effect]:
        if self.state not in ALIGNING or self._is_only_saving():
            return []
        # What is out of range the next pass finds out, with both ends asked again.
        if is_retriable(code) or code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return self._wait_out(f"{error_name(code)}: {why}")
        return self._fail(f"{error_name(code)}: {why}")

    def _wait_out(self, why: str) -> list[Effect]:
        """Try again later from the start of an alignment, without leaving the state."""
        effects = self._leave()
        self._troubles += 1
        self.trouble = why
        self.deadline_ms = self._now_ms + self.policy.source.delay_ms(self._troubles, self._chance)
        return effects

    # Alignment

    def _align(self) -> list[Effect]:
        effects = self._leave()
        self._alignment = Alignment(
            purpose=self.state,
            turn=self.turn,
            policy=self.policy,
            own_epoch=self.own_epoch,
            agreed=self.last_mirror_epoch,
            handed_over_at=self.handed_over_at,
            beginning=self.beginning,
            fencing_epoch=self._fencing_epoch,
            doubted=self._doubted,
        )
        return effects + self._alignment.begin()

    def _on_answer(self, event: Event) -> list[Effect]:
        if isinstance(event, LeaderEpochSeen):
            return self._leader_epoch_seen(event)
        if self._is_only_saving():
            return []
        if self.state == MirrorState.STOPPING:
            return self._on_stop_answer(event)
        match event:
            case Diverged():
                return self._align()
            case SourceLeaderMoved(node, epoch):
                following = self._following
                if following and (following.node, following.source_epoch) != (node, epoch):
                    return self._align() if epoch >= following.source_epoch else []
                return []
            case ReplicasConverged():
                return self._save(MirrorState.MIRRORING)
            case StepFailed(why):
                return self._fail(why)
            case _:
                return self._on_alignment_answer(event)

    def _leader_epoch_seen(self, event: LeaderEpochSeen) -> list[Effect]:
        if event.epoch <= self.own_epoch:
            return []
        self.own_epoch = event.epoch
        if self.state == MirrorState.STOPPING and self.deadline_ms is not None:
            return self._look_for_stop()  # it was waited for
        return self._on_alignment_answer(event)

    def _on_alignment_answer(self, event: Event) -> list[Effect]:
        if self._alignment is None:
            return []
        if isinstance(event, StepDone):  # what comes next is asked anew, and doubted anew
            self.turn += 1
            self._alignment.turn, self._doubted = self.turn, None
        step = self._alignment.on(event)
        if isinstance(step, list):
            wait_ms = self.deadline_ms or self._now_ms + EPOCH_WAIT_MS
            self.deadline_ms = wait_ms if self._alignment.is_waiting_for_epoch else None
            return step
        return self._concluded(step)

    def _concluded(self, conclusion: conclusions.Conclusion) -> list[Effect]:
        self.deadline_ms = None
        match conclusion:
            case conclusions.Aligned():
                return self._aligned(conclusion)
            case conclusions.EpochRaised():
                self._fencing_epoch = NO_EPOCH
                return self._save(MirrorState.MIRRORING)
            case conclusions.Doubtful(verdict):
                self._doubted = conclusion
                return self._wait_out(f"asking the source once more, since its answer is {verdict}")
            case conclusions.TailLost():
                return self._save(MirrorState.ULE_RECOVERY)
            case conclusions.Refused(why, is_retryable):
                return self._fail(why, is_retryable=is_retryable)
            case _:
                assert_never(conclusion)

    def _aligned(self, aligned: conclusions.Aligned) -> list[Effect]:
        self._doubted = None
        if self.state == MirrorState.ULE_RECOVERY:
            return [AwaitReplicas(self.turn)]
        if self.state == MirrorState.LOG_ALIGNMENT:
            return self._save(MirrorState.MIRRORING)
        self._alignment = None
        self._following = Following.of(aligned, self.turn, self.lag, self.beginning, self._now_ms)
        return [*self._following.begin(), self._following.fetch()]

    # Following

    def _fetched(self, fetched: Fetched) -> list[Effect]:
        following = self._following
        if following is None or fetched.turn != self.turn:
            return []
        taken = following.take(fetched, self.own_epoch, self._now_ms)
        if not isinstance(taken, list):
            return self._obstructed(taken)
        self._troubles, self.trouble = 0, None
        if self.standing.error is not None and self.saving is None:
            # KIP-1279: the first success after a failure clears it, durably.
            self.standing.forgive()
            self.saving = MirrorState.MIRRORING
            taken.append(self.standing.leave_for(MirrorState.MIRRORING))
        return taken

    def _obstructed(self, obstacle: Obstacle) -> list[Effect]:
        match obstacle:
            case EpochTooHigh(epoch):
                self._fencing_epoch = epoch
                return self._save(MirrorState.EPOCH_FENCING)
            case MetadataIsOld(why):
                return self._wait_out(why)
            case BadBatch(offset, why):
                # Tried again, whatever it says: a bit may have been spoilt that no checksum covers.
                return self._fail(f"batch at offset {offset}: {why}")
            case _:
                assert_never(obstacle)

    # Stopping

    def _look_for_stop(self) -> list[Effect]:
        self.turn += 1
        self.deadline_ms = None
        self._stopping = Stopping(
            turn=self.turn,
            saved=self.last_mirror_epoch,
            was_mirroring=self.standing.had_begun,
            began=self.beginning.noted,
            chance=self._chance,
        )
        return [self._stopping.look()]

    def _on_stop_answer(self, event: Event) -> list[Effect]:
        if self._stopping is None:
            return []
        step = self._stopping.on(event, self.own_epoch)
        match step:
            case None:
                return []
            case LookAgain(saved):
                self.last_mirror_epoch = saved
                return self._look_for_stop()
            case AllWritten():
                return self._save(MirrorState.STOPPED)
            case StopFailed(why):
                return self._fail(why)
            case _:
                if isinstance(step, BumpEpoch):
                    self.deadline_ms = self._now_ms + EPOCH_WAIT_MS
                return [step]
