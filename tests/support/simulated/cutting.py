"""Cuts a simulated log as ``broker/mirrors/cutting.py`` does: saved, written down, cut."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinlog.mirroring import effects as do
from twinlog.mirroring import events as on
from twinlog.mirroring.records import RecordLoss
from twinlog.model.ids import LeaderEpoch

if TYPE_CHECKING:
    from support.simulated.destination import Destination

Cut = do.TruncateTo | do.RestartAt


@dataclass(frozen=True, slots=True)
class Cutting:
    """One cut: each of its steps is taken later, and only if it is still wanted then."""

    at: "Destination"
    cut: Cut
    gap: do.NoteGap | None
    is_wanted: Callable[[], bool]
    bring: Callable[[on.Event], None]

    def begin(self) -> None:
        """Save what is to go and is not the source's."""
        self.at.schedule.soon(self._save)

    def _save(self) -> None:
        if not self.is_wanted():
            return
        if self.at.schedule.fails("tail not saved", 0.05):
            self.bring(on.StepFailed("no space for the tail", self.cut.turn))
            return
        first = self.cut.end if isinstance(self.cut, do.TruncateTo) else self.cut.ours_from
        tail = [] if first is None else self.at.log.tail_from(first)
        if tail:
            self.at.tails.append(tail)
        self.at.schedule.soon(self._write_down)

    def _write_down(self) -> None:
        if not self.is_wanted():
            return
        losses, epoch = tuple(self._losses()), LeaderEpoch(self.at.own_epoch)
        if losses and not self.at.coordinator.write_losses(epoch, losses):
            self.bring(on.StepFailed("the loss was not written down", self.cut.turn))
            return
        self.at.rules.cut(self.cut)
        match self.cut:
            case do.TruncateTo(end):
                self.at.log.truncate_to(end)
            case do.RestartAt(start):
                self.at.log.restart_at(start)
        self.at.rules.check()
        self.at.schedule.soon(lambda: self.bring(on.StepDone(self.cut.turn)))

    def _losses(self) -> list[RecordLoss]:
        log, gap, found = self.at.log, self.gap, []
        if gap is not None:
            found.append(_loss("gap", gap.first, gap.end))
        if isinstance(self.cut, do.TruncateTo):
            found.append(_loss("truncation", self.cut.end, log.end))
        elif log.end > log.start:
            found.append(_loss("restart", log.start, log.end))
        return found


def _loss(kind: str, first: int, end: int) -> RecordLoss:
    return RecordLoss(kind=kind, first=first, end=end, cause="simulated", at_ms=0)
