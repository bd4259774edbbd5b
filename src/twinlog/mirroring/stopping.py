"""The stop of one partition, step by step, each decided from what is durable.

KIP-1279 section "Failover", with our decisions: after STOPPING is committed and the fetcher gone,
(LME, log end) is committed; our epoch leaps above every epoch in the log; open transactions are
aborted in it; a producer reset is written; STOPPED is committed. Whoever takes over in the middle
asks ``next_step`` again and goes on where the last one ended. Nothing is asked of the source.
"""

from dataclasses import dataclass

from twinlog.mirroring.alignment import LogFacts
from twinlog.mirroring.effects import (
    AppendAbortMarkers,
    AppendPidReset,
    AwaitCommit,
    BumpEpoch,
    Effect,
    ReadLog,
    SaveLastMirrorEpoch,
)
from twinlog.mirroring.epoch_fencing import epoch_after_stop
from twinlog.mirroring.events import (
    Event,
    LastMirrorEpochSaved,
    LogCommitted,
    LogRead,
    StepDone,
    StepFailed,
)
from twinlog.mirroring.records import LastMirrorEpoch, PartitionStart
from twinlog.model.ids import NO_EPOCH, LeaderEpoch, Offset


@dataclass(frozen=True, slots=True)
class LookAgain:
    """Something was done: what comes next is decided anew, with this last mirror epoch."""

    saved: LastMirrorEpoch | None


@dataclass(frozen=True, slots=True)
class AllWritten:
    """Everything that a stop writes is committed."""


@dataclass(frozen=True, slots=True)
class StopFailed:
    """A step could not be done."""

    why: str


StopStep = Effect | LookAgain | AllWritten | StopFailed | None


@dataclass(frozen=True, slots=True)
class Stopping:
    """One look at what is left to do; ``turn`` marks what it asks and orders.

    ``saved`` is of this stop: it is deleted together with the step to MIRRORING. A partition that
    had not begun ``was_mirroring`` holds nothing that came from the source by this mirror. One that
    has nothing yet, but ``began`` at some offset, agrees with the source up to there.
    """

    turn: int
    saved: LastMirrorEpoch | None
    was_mirroring: bool
    began: PartitionStart | None = None
    chance: float = 0.0

    def look(self) -> ReadLog:
        """Give the question that begins it."""
        return ReadLog(None if self.saved is None else Offset(self.saved.log_end), self.turn)

    def on(self, event: Event, own_epoch: LeaderEpoch) -> StopStep:
        """Take an answer; give the next order, or how it came out; None for other events."""
        match event:
            case LogRead(facts):
                return self.next_step(facts, own_epoch) or AwaitCommit(self.turn)
            case LastMirrorEpochSaved(saved):
                return LookAgain(saved)
            case StepDone():
                return LookAgain(self.saved)
            case LogCommitted():
                return AllWritten()
            case StepFailed(why):
                return StopFailed(why)
            case _:
                return None

    def next_step(self, facts: LogFacts, own_epoch: LeaderEpoch) -> Effect | None:
        """Give the next order, or None when all is written and only has to be committed."""
        saved = self.saved
        if saved is None or saved.log_end > facts.end:
            latest = max(own_epoch, facts.latest_epoch, key=int)
            own_from = epoch_after_stop(latest, self.chance)
            return SaveLastMirrorEpoch(self._epoch_of(facts), facts.end, own_from)
        own_from = LeaderEpoch(max(saved.own_from, saved.epoch + 1))
        if own_epoch < own_from:
            return BumpEpoch(own_from)
        if facts.open_transactions:
            return AppendAbortMarkers(self.turn)
        if not facts.has_pid_reset:
            return AppendPidReset(self.turn)
        return None

    def _epoch_of(self, facts: LogFacts) -> LeaderEpoch:
        """Give the epoch in which both logs are known to be the same."""
        if not self.was_mirroring:
            return NO_EPOCH
        began = self.began
        if began is not None and facts.is_empty and facts.end == began.offset:
            return LeaderEpoch(began.leader_epoch)
        return facts.latest_epoch
