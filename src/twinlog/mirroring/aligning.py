"""Brings the local log to where it can follow the source: leader, epoch, range, common end.

One ``Alignment`` is one pass, for one state: LOG_ALIGNMENT may cut the log down to what both
clusters agreed on before; ULE_RECOVERY may cut what an unclean election took from the source;
MIRRORING may cut nothing; EPOCH_FENCING only raises our leader epoch. A pass is repeated from the
start after every cut, and whenever something goes wrong.
"""

from dataclasses import dataclass, field
from typing import Final, assert_never

from twinlog.mirroring import epoch_fencing
from twinlog.mirroring.alignment import (
    AskEnd,
    Comparison,
    LogFacts,
    NothingInCommon,
    SameUpTo,
    SourceFacts,
    first_question,
    later_of,
    next_question,
    still_agreed,
)
from twinlog.mirroring.beginning import Beginning
from twinlog.mirroring.conclusions import (
    IS_ANOTHER_TOPIC,
    Aligned,
    Conclusion,
    Doubtful,
    EpochRaised,
    Refused,
    TailLost,
)
from twinlog.mirroring.effects import (
    AskEpochEnd,
    AskOffsetAt,
    AskSourceRange,
    BumpEpoch,
    Effect,
    FindSourceLeader,
    NoteGap,
    ReadLog,
    ReadSourceMirrors,
    RestartAt,
    SaveStart,
    TruncateTo,
)
from twinlog.mirroring.events import (
    EpochEndFound,
    Event,
    LeaderEpochSeen,
    LogRead,
    OffsetAtFound,
    SourceLeaderFound,
    SourceMirrorsRead,
    SourceRangeFound,
    StartSaved,
    StepDone,
)
from twinlog.mirroring.policy import GapPolicy, MirrorPolicy
from twinlog.mirroring.records import LastMirrorEpoch
from twinlog.mirroring.states import MirrorState
from twinlog.model.ids import NO_EPOCH, BrokerId, LeaderEpoch, Offset

NO_NODE: Final = BrokerId(-1)
REGRESSION_LOOKS: Final = 5
"""A broker that lost its controller tells of a leader of before, for seconds; an operator has to
mend what is believed of it."""


Step = list[Effect] | Conclusion

_ANSWERS: Final[dict[type[Effect], type[Event]]] = {
    ReadSourceMirrors: SourceMirrorsRead,
    FindSourceLeader: SourceLeaderFound,
    BumpEpoch: LeaderEpochSeen,
    ReadLog: LogRead,
    AskSourceRange: SourceRangeFound,
    AskEpochEnd: EpochEndFound,
    AskOffsetAt: OffsetAtFound,
    SaveStart: StartSaved,
    TruncateTo: StepDone,
    RestartAt: StepDone,
}
"""What is waited for after an order; nothing else is taken then, nor the same a second time."""


@dataclass(slots=True)
class Alignment:
    """One pass; ``on`` gives the next orders or how it ended. ``turn`` marks its questions."""

    purpose: MirrorState
    turn: int
    policy: MirrorPolicy
    own_epoch: LeaderEpoch
    agreed: LastMirrorEpoch | None = None
    """What both clusters hold, by the last stop between them; matters in LOG_ALIGNMENT only."""
    told: LastMirrorEpoch | None = None
    """What of it the source remembers: beyond that it may have lost what was here, too."""
    began: Offset | None = None
    """Where the source began when it mirrored us."""
    handed_over_at: LeaderEpoch = NO_EPOCH
    """Our epoch when a mirror before this one was given the log."""
    beginning: Beginning = field(default_factory=Beginning)
    fencing_epoch: LeaderEpoch = NO_EPOCH
    """The epoch of a batch that was above ours."""
    doubted: Doubtful | None = None
    """What the pass before came to, if that was doubted."""
    node: BrokerId = NO_NODE
    source_epoch: LeaderEpoch = NO_EPOCH
    wanted_epoch: LeaderEpoch = NO_EPOCH
    local: LogFacts | None = None
    source: SourceFacts | None = None
    is_level: bool = False
    _asked: Effect | None = None

    def begin(self) -> list[Effect]:
        """Give the first orders."""
        is_first = self._is_first()
        self._asked = ReadSourceMirrors(self.turn) if is_first else FindSourceLeader(self.turn)
        return [self._asked]

    def on(self, event: Event) -> Step:
        """Take an answer; events that do not answer what was asked last change nothing."""
        if isinstance(event, LeaderEpochSeen):
            self.own_epoch = event.epoch
        if not self._is_awaited(event):
            return []
        step = self._take(event)
        if isinstance(step, list) and step:
            self._asked = step[-1]
        return step

    def _is_awaited(self, event: Event) -> bool:
        asked = self._asked
        if isinstance(event, EpochEndFound):
            return isinstance(asked, AskEpochEnd) and asked.epoch == event.asked
        return asked is not None and isinstance(event, _ANSWERS[type(asked)])

    def _take(self, event: Event) -> Step:
        match event:
            case SourceMirrorsRead(agreed, problem, _, began):
                if problem is not None:
                    return Refused(problem, is_retryable=True)
                if agreed is not None:
                    agreed = still_agreed(agreed, agreed.epoch, self.handed_over_at)
                self.told, self.agreed, self.began = agreed, later_of(agreed, self.agreed), began
                return [FindSourceLeader(self.turn)]
            case SourceLeaderFound(node, epoch):
                self.node, self.source_epoch = node, epoch
                return self._raise_epoch()
            case LeaderEpochSeen():
                return [] if self.is_waiting_for_epoch else self._epoch_is_high()
            case LogRead(facts):
                return self._log_read(facts)
            case SourceRangeFound(start, end):
                return self._range_found(SourceFacts(self.source_epoch, start, end))
            case StepDone():
                self.doubted = None
                return [ReadLog(None, self.turn)]
            case _:
                return self._on_later_answer(event)

    def _on_later_answer(self, event: Event) -> Step:
        """Take an answer to what is asked once both ranges are known."""
        match event:
            case EpochEndFound():
                return self._epoch_end_found(event)
            case OffsetAtFound(offset):
                assert self.source is not None
                found = self.source.end if offset is None else max(offset, self.source.start)
                return self._begin_at(found)
            case StartSaved(start):
                self.beginning.saved(start)
                return self._aligned() if self.is_level else self._begin()
            case _:
                return []

    def again(self) -> list[Effect]:
        """Repeat the request for a higher epoch, if that is what the pass waits for."""
        return [BumpEpoch(self.wanted_epoch)] if self.is_waiting_for_epoch else []

    @property
    def is_waiting_for_epoch(self) -> bool:
        """Whether nothing goes on before our leader epoch has risen."""
        return self.wanted_epoch > self.own_epoch

    def _raise_epoch(self) -> Step:
        needed = max(self.source_epoch, self.fencing_epoch, key=int)
        if epoch_fencing.is_too_near(needed, self.own_epoch):
            self.wanted_epoch = epoch_fencing.raised_epoch(needed)
            return [BumpEpoch(self.wanted_epoch)]
        return self._epoch_is_high()

    def _epoch_is_high(self) -> Step:
        if self.purpose == MirrorState.EPOCH_FENCING:
            return EpochRaised()
        return [ReadLog(None, self.turn)]

    def _log_read(self, facts: LogFacts) -> Step:
        self.local = facts
        if self._is_first() and facts.latest_epoch >= self.own_epoch:
            # What this pass cuts off was written here and may have been mirrored from here: no
            # other records may ever come in its epoch, or that mirror took them for what it has.
            self.wanted_epoch = LeaderEpoch(facts.latest_epoch + 1)
            return [BumpEpoch(self.wanted_epoch)]
        return [AskSourceRange(self.node, self.source_epoch, self.turn)]

    def _kept(self, local: LogFacts) -> LogFacts:
        """Give the part of the local log that may be kept at all."""
        if self.purpose != MirrorState.LOG_ALIGNMENT:
            return local
        if self.agreed is None or self.agreed.epoch == NO_EPOCH:
            return LogFacts(Offset(0), Offset(0))
        _, end = local.end_of(LeaderEpoch(self.agreed.epoch))
        return local.cut_to(min(end, Offset(self.agreed.log_end)))

    def _range_found(self, source: SourceFacts) -> Step:
        assert self.local is not None, "the source's range was found before the log was read"
        self.source = source
        kept = self._kept(self.local)
        if kept.end < source.start or (kept.is_empty and self._is_first()):
            return self._restart(kept)
        # The epoch that an emptied log remembers is perhaps our own, and of nothing that is here.
        has_regressed = not kept.is_empty and NO_EPOCH != source.leader_epoch < kept.latest_epoch
        if self.purpose != MirrorState.LOG_ALIGNMENT and has_regressed:
            return self._doubt("regressed", source.start, looks=REGRESSION_LOOKS) or Refused(
                f"the source's leader epoch went back from {kept.latest_epoch} to "
                f"{source.leader_epoch}: {IS_ANOTHER_TOPIC}",
                is_retryable=False,
            )
        return self._compared(first_question(kept, source))

    def _epoch_end_found(self, found: EpochEndFound) -> Step:
        assert self.local is not None
        assert self.source is not None
        kept, answer = self._kept(self.local), (found.epoch, found.end)
        return self._compared(next_question(kept, self.source, found.asked, answer))

    def _is_first(self) -> bool:
        return self.purpose == MirrorState.LOG_ALIGNMENT

    def _restart(self, kept: LogFacts) -> Step:
        """Let the log begin at the source's start: the first time, or over a gap."""
        assert self.local is not None
        assert self.source is not None
        start = self.source.start
        if self._is_first() and kept.end == 0:
            return self._begin()
        if self.local.is_empty and self.local.end == start:
            return self._aligned()
        if self._is_first() and kept.end >= start:
            return self._aligned() if kept.end == self.local.end else self._cut(kept.end)
        return self._doubt("gap", start) or self._gap(kept)

    def _begin(self) -> Step:
        """Let the log begin where the operator wants it, or began before the first record came."""
        assert self.source is not None
        place = self.beginning.place(self.policy.start, self.source)
        if place is not None:
            return self._begin_at(place)
        timestamp_ms = self.policy.start.timestamp_ms
        return [AskOffsetAt(self.node, self.source_epoch, timestamp_ms, self.turn)]

    def _begin_at(self, place: Offset) -> Step:
        assert self.local is not None
        assert self.source is not None
        noted = self.beginning.noted
        is_short = (
            noted is not None and not noted.is_over and place == self.source.end < noted.offset
        )
        doubt = None
        if not self.local.is_empty:
            doubt = self._doubt("scratch", place)
        elif is_short:  # a leader that is new may not know yet what is committed
            doubt = self._doubt("short", place)
        if doubt is not None:
            return doubt
        note = self.beginning.note(self.policy.start, place, self.source, self.turn)
        if note is not None:
            return [note]
        if self.local.is_empty and self.local.end == place:
            return self._aligned()
        why = "mirrored from scratch: nothing here is known to come from the source"
        return [RestartAt(place, why, self.turn, self.local.start)]

    def _gap(self, kept: LogFacts) -> Step:
        assert self.local is not None
        assert self.source is not None
        assert self.doubted is not None
        start = min(self.source.start, self.doubted.offset)
        why = f"the source's log starts at {start}, ours ended at {kept.end}"
        if self.policy.gap == GapPolicy.FAIL:
            return Refused(
                f"records {kept.end} to {start - 1} are lost: {why}; mirror.gap.policy is fail, "
                "so nothing was changed here; to go on without them, set it to continue "
                "(kafka-configs.sh --entity-type cluster-mirrors) and recover the topic "
                "(kafka-cluster-mirrors.sh --recover)",
                is_retryable=False,
            )
        known = kept.end if self.told is None else min(kept.end, Offset(self.told.log_end))
        ours_from = known if known < self.local.end else None
        return [NoteGap(kept.end, start, why), RestartAt(start, why, self.turn, ours_from)]

    def _compared(self, comparison: Comparison) -> Step:
        match comparison:
            case AskEnd(epoch):
                return [AskEpochEnd(self.node, self.source_epoch, epoch, self.turn)]
            case SameUpTo(end):
                assert self.local is not None
                return self._aligned() if end == self.local.end else self._cut(end)
            case NothingInCommon():
                return self._cut(None)
            case _:
                assert_never(comparison)

    def _cut(self, end: Offset | None) -> Step:
        """Cut the log at ``end``, or drop it when nothing is in common, if this pass may."""
        assert self.local is not None
        assert self.source is not None
        verdict, offset = ("drop", self.source.start) if end is None else ("cut", end)
        doubt = self._doubt(verdict, offset)
        if doubt is not None:
            return doubt
        assert self.doubted is not None
        if end is not None:
            end = max(end, self.doubted.offset)
        keeps = "no record of ours" if end is None else f"our records below {end}"
        why = (
            f"the source (leader epoch {self.source.leader_epoch}, records {self.source.start} to "
            f"{self.source.end}) has {keeps}, ours end at {self.local.end}"
        )
        if self.purpose != MirrorState.MIRRORING or self.local.is_empty:  # there is nothing to lose
            if end is None:
                return [RestartAt(self.source.start, why, self.turn, self.local.start)]
            if end <= self.local.start:
                # Nothing is kept, so all comes that the source has, also if it was trimmed here.
                first = self.source.start if self.beginning.noted is None else end
                return [RestartAt(first, why, self.turn, self.local.start)]
            return [TruncateTo(end, why, self.turn)]
        if self.source.leader_epoch == self.local.latest_epoch:
            why += "; within one leader epoch a topic cannot shrink: it was recreated or restored"
            return Refused(why, is_retryable=False)
        if self.policy.supports_unclean_election:
            return TailLost(why)
        why += (
            "; an unclean leader election at the source is implied, and "
            "mirror.support.unclean.leader.election is false, so nothing was cut here: set it to "
            "true for this topic and use --recover to follow the source (what is cut is saved "
            "first), or --stop to keep what is here"
        )
        return Refused(why, is_retryable=False)

    def _doubt(self, verdict: str, offset: Offset, *, looks: int = 1) -> Doubtful | None:
        """Give a doubt, unless the passes before came to the same verdict so often."""
        before = self.doubted
        seen = before.looks if before is not None and before.verdict == verdict else 0
        return None if seen >= looks else Doubtful(verdict, offset, seen + 1)

    def _aligned(self) -> Step:
        assert self.local is not None
        assert self.source is not None
        if self._is_first():
            note = self.beginning.keep_below(self.began, self.local, self.turn)
            if note is not None:
                self.is_level = True
                return [note]
        return Aligned(self.node, self.source, self.local)
