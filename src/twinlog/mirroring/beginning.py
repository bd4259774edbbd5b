"""Where a partition that is mirrored from scratch begins, and what is noted of it.

What is chosen is written down before the log begins there. So whoever takes over before the first
record has come begins at the same place, not at what is the latest by then; and a comparison of
both logs knows where equality begins. A partition that is to have everything has no note.
"""

from dataclasses import dataclass, replace

from twinlog.config.mirror_start import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from twinlog.mirroring.alignment import LogFacts, SourceFacts
from twinlog.mirroring.effects import SaveStart
from twinlog.mirroring.policy import StartSpec
from twinlog.mirroring.records import PartitionStart
from twinlog.mirroring.states import MirrorState
from twinlog.model.ids import Offset


@dataclass(slots=True)
class Beginning:
    """What is durable of a partition's beginning.

    A note of a life before ``is_confirmed`` by writing it again: another write of then, about a
    place that was not taken, may have landed since the note was read.
    """

    noted: PartitionStart | None = None
    is_confirmed: bool = False

    def place(self, spec: StartSpec, source: SourceFacts) -> Offset | None:
        """Give where to begin; None while the source has to be asked for the place of a time."""
        noted = self.noted
        if noted is not None and not noted.is_over and noted.spec == spec.words:
            return Offset(min(noted.offset, source.end))
        if spec.timestamp_ms == EARLIEST_TIMESTAMP:
            return source.start
        return source.end if spec.timestamp_ms == LATEST_TIMESTAMP else None

    def note(
        self, spec: StartSpec, place: Offset, source: SourceFacts, turn: int
    ) -> SaveStart | None:
        """Give what has to be written before the log begins at ``place``; None if it is."""
        noted = self.noted
        if spec.timestamp_ms == EARLIEST_TIMESTAMP:
            return None if noted is None else SaveStart(None, turn)
        is_of_now = noted is not None and not noted.is_over and noted.spec == spec.words
        if noted is None or not is_of_now:
            return SaveStart(_started(spec, place, source), turn)
        if noted.offset == place and self.is_confirmed:
            return None
        return SaveStart(replace(noted, offset=place), turn)

    def saved(self, start: PartitionStart | None) -> None:
        """Take in that it is written."""
        self.noted, self.is_confirmed = start, True

    def begun_at(self, log_start: Offset, turn: int) -> list[SaveStart]:
        """Note that a whole batch came, though the place lies inside of it."""
        if self.noted is None or self.noted.offset <= log_start:
            return []
        self.noted = replace(
            self.noted, offset=log_start, skipped_from=min(self.noted.skipped_from, log_start)
        )
        return [SaveStart(self.noted, turn)]

    def keep_below(self, began: Offset | None, log: LogFacts, turn: int) -> SaveStart | None:
        """Give what has to be written when the source began inside of our log; None if nothing."""
        if began is None or not log.start < began <= log.end or began == self.own_below:
            return None
        return SaveStart(replace(self.noted or PartitionStart(), own_below=began), turn)

    @property
    def own_below(self) -> Offset:
        """Up to where the source's log start does not move ours."""
        return Offset(-1 if self.noted is None else self.noted.own_below)

    def step(self, before: MirrorState, after: MirrorState) -> None:
        """Take in a change of state, as the shard does: a start after a stop is another one."""
        if self.noted is not None and is_another_start(before, after):
            self.noted = replace(self.noted, is_over=True)


def _started(spec: StartSpec, place: Offset, source: SourceFacts) -> PartitionStart:
    return PartitionStart(
        spec=spec.words,
        offset=place,
        skipped_from=min(source.start, place, key=int),
        leader_epoch=source.leader_epoch,
    )


def is_another_start(before: MirrorState, after: MirrorState) -> bool:
    """Tell whether a step of the state begins what was ended before."""
    return before == MirrorState.STOPPED and after == MirrorState.LOG_ALIGNMENT
