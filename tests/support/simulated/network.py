"""The way between a mirror and its source: what is asked and answered gets lost, late, doubled."""

from collections.abc import Callable
from typing import Protocol

from support.simulated.log import Batch, Log
from support.simulated.schedule import Schedule
from support.simulated.source import Answer, FetchAnswer, Parted
from twinlog.mirroring import effects as do
from twinlog.mirroring import events as on
from twinlog.mirroring.records import LastMirrorEpoch
from twinlog.model.errors import ErrorCode
from twinlog.model.ids import BrokerId, LeaderEpoch, Offset

Question = (
    do.FindSourceLeader | do.AskSourceRange | do.AskOffsetAt | do.AskEpochEnd | do.ReadSourceMirrors
)
Bring = Callable[[on.Event], None]

TIMEOUT_MS = (10, 60)
LATE_MS = (30, 400)
FETCHES_MAX = 2


class Source(Protocol):
    """What a mirror can ask its source for."""

    is_dark: bool
    lost_tails: int
    """How often records that were committed were lost."""

    @property
    def lines(self) -> list[list[Batch]]:
        """Every line of records it ever told."""
        ...

    @property
    def log(self) -> Log:
        """Its log as it is now."""
        ...

    @property
    def is_same_topic(self) -> bool:
        """Whether its topic is the one that is mirrored."""
        ...

    def metadata(self) -> tuple[int, int] | ErrorCode:
        """Give leader and epoch."""
        ...

    def range(self, node: int, epoch: int) -> tuple[int, int] | ErrorCode:
        """Give where the records begin and end."""
        ...

    def offset_at(self, node: int, epoch: int, timestamp_ms: int) -> int | ErrorCode | None:
        """Give where the first record of a time lies."""
        ...

    def epoch_end(self, node: int, epoch: int, asked: int) -> tuple[int, int] | ErrorCode:
        """Give the highest epoch at or below ``asked``, and its end."""
        ...

    def fetch(self, node: int, epoch: int, offset: int, last_epoch: int) -> FetchAnswer:
        """Give what follows an offset."""
        ...

    def mirrors(self) -> tuple[LastMirrorEpoch | None, str | None] | ErrorCode:
        """Give the last mirror epoch it has of us, and why we may not follow it."""
        ...


class Network:
    """Carries one mirror's questions; ``bring`` takes an answer to the mirror as it is then."""

    def __init__(self, schedule: Schedule, source: Source) -> None:
        self.source = source
        self._schedule = schedule
        self._under_way: dict[do.FetchFrom, int] = {}

    def ask(self, question: Question | do.FetchFrom, bring: Bring) -> None:
        """Ask soon, answer a while later."""
        schedule, turn = self._schedule, question.turn
        if isinstance(question, do.FetchFrom):
            # One fetch of a kind goes on; more are answers that came twice.
            if self._under_way.get(question, 0) >= FETCHES_MAX:
                return
            self._under_way[question] = self._under_way.get(question, 0) + 1
        is_lost = self.source.is_dark or schedule.fails("question lost", 0.05)

        def at_source() -> None:
            if isinstance(question, do.FetchFrom):
                self._under_way[question] -= 1
                if not self._under_way[question]:
                    del self._under_way[question]
            if is_lost or self.source.is_dark:
                self._time_out(turn, bring)
                return
            self._carry_back(self._answered(question), turn, bring)

        schedule.soon(at_source, at_most_ms=5)

    def _time_out(self, turn: int, bring: Bring) -> None:
        refused = on.SourceRefused(ErrorCode.REQUEST_TIMED_OUT, "no answer", turn)
        self._schedule.after(self._schedule.random.randint(*TIMEOUT_MS), lambda: bring(refused))

    def _carry_back(self, event: on.Event, turn: int, bring: Bring) -> None:
        schedule = self._schedule
        if schedule.fails("answer lost", 0.04):
            self._time_out(turn, bring)
            return
        delay_ms = schedule.random.randint(0, 10)
        if schedule.fails("answer late", 0.04):
            delay_ms = schedule.random.randint(*LATE_MS)
            if schedule.random.random() < 0.7:  # who asked has given up by then
                self._time_out(turn, bring)
        schedule.after(delay_ms, lambda: bring(event))
        if schedule.fails("answer doubled", 0.02):
            schedule.soon(lambda: bring(event), at_most_ms=200)

    def _answered(self, question: Question | do.FetchFrom) -> on.Event:
        turn = question.turn
        if self._schedule.fails("not authorized", 0.004):
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            return on.SourceRefused(code, "says the source", turn)
        found = self._event(question)
        if isinstance(found, ErrorCode):
            return on.SourceRefused(found, "says the source", turn)
        return found

    def _event(self, question: Question | do.FetchFrom) -> on.Event | ErrorCode:
        source, turn = self.source, question.turn
        match question:
            case do.FetchFrom():
                return self._fetched(question)
            case do.ReadSourceMirrors():
                told = source.mirrors()
                return told if isinstance(told, ErrorCode) else on.SourceMirrorsRead(*told, turn)
            case do.FindSourceLeader():
                leader = source.metadata()
                if isinstance(leader, ErrorCode):
                    return leader
                return on.SourceLeaderFound(BrokerId(leader[0]), LeaderEpoch(leader[1]), turn)
            case _:
                return self._offsets(question)

    def _offsets(
        self, question: do.AskSourceRange | do.AskOffsetAt | do.AskEpochEnd
    ) -> on.Event | ErrorCode:
        source, turn = self.source, question.turn
        match question:
            case do.AskSourceRange(node, epoch):
                ends = source.range(node, epoch)
                if isinstance(ends, ErrorCode):
                    return ends
                return on.SourceRangeFound(Offset(ends[0]), Offset(ends[1]), turn)
            case do.AskOffsetAt(node, epoch, timestamp_ms):
                at = source.offset_at(node, epoch, timestamp_ms)
                if isinstance(at, ErrorCode):
                    return at
                return on.OffsetAtFound(None if at is None else Offset(at), turn)
            case do.AskEpochEnd(node, epoch, asked):
                ended = source.epoch_end(node, epoch, asked)
                if isinstance(ended, ErrorCode):
                    return ended
                return on.EpochEndFound(asked, LeaderEpoch(ended[0]), Offset(ended[1]), turn)

    def _fetched(self, order: do.FetchFrom) -> on.Event | ErrorCode:
        found = self.source.fetch(
            order.node, order.leader_epoch, order.offset, order.last_fetched_epoch
        )
        if isinstance(found, Parted):
            return on.Diverged(order.turn)
        if not isinstance(found, Answer):
            return found
        raw = self._on_the_wire(found.batches)
        return on.Fetched(
            order.offset, Offset(found.high_watermark), Offset(found.log_start), raw, order.turn
        )

    def _on_the_wire(self, batches: list[Batch]) -> bytes:
        chance = self._schedule.random
        raw = bytearray(b"".join(batch.encoded() for batch in batches))
        if batches and chance.random() < 0.2:  # a full answer ends within a batch
            del raw[-chance.randint(1, 20) :]
        if batches and self._schedule.fails("batch spoilt on the wire", 0.02):
            # What the checksum covers.
            raw[-chance.randint(1, 40)] ^= 1 << chance.randint(0, 7)
        return bytes(raw)
