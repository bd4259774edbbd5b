"""Cuts a mirrored partition's log, once what it drops is saved and written down."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from twinlog.broker.mirror_board import LossKind
from twinlog.broker.mirrors.work import MirrorWork
from twinlog.broker.partitions import Partition
from twinlog.mirroring import effects as do
from twinlog.mirroring.records import MirrorPartition, RecordLoss
from twinlog.model.errors import DiskError
from twinlog.storage.lost_tail import LogTail, SavedTail

Cut = do.TruncateTo | do.RestartAt


@dataclass(slots=True)
class Cutting:
    """The cuts of one partition.

    Killed between saving and cutting, the partition comes to the same cut again, and the copy
    that is there is taken. What is lost is written down before it is: a loss that is told and did
    not come is seen in the log, one that is not told is never found.
    """

    partition: Partition
    key: MirrorPartition
    work: MirrorWork
    gap: do.NoteGap | None = None
    """What will never come, to be written down with the cut that follows from it."""

    async def carry_out(self, cut: Cut, is_wanted: Callable[[], bool]) -> bool:
        """Save what is to go and is not the source's, then cut; False if it is wanted no more.

        Raises DiskError and ApiError, with the log as it was.
        """
        gap, self.gap = self.gap, None
        saved = await self._save(cut, is_wanted)
        if not is_wanted():
            return False
        await self._pull_offsets_back(cut)
        if not is_wanted():
            return False
        losses = [*self._lost_in(gap), *self._lost_by(cut, saved)]
        if losses:
            epoch = self.partition.leader_epoch
            await self.work.note_losses(self.partition.of, self.key, epoch, tuple(losses))
            if not is_wanted():
                return False
        match cut:
            case do.TruncateTo(end):
                self.partition.truncate_to(end)
            case do.RestartAt(start):
                self.partition.restart_at(start)
        return True

    async def _pull_offsets_back(self, cut: Cut) -> None:
        """Let no group stand beyond the cut; what it had read there is not what comes there."""
        if isinstance(cut, do.TruncateTo):
            tail = self.partition.log.tail_from(cut.end)
            end = cut.end if tail is None else min(cut.end, tail.first)
            await self.work.offsets.pull_back(self.partition.of, end)
        elif cut.ours_from is not None and self.partition.log.end > self.partition.log.start:
            await self.work.offsets.pull_back(self.partition.of, min(cut.ours_from, cut.start))

    async def _save(self, cut: Cut, is_wanted: Callable[[], bool]) -> SavedTail | None:
        first = cut.end if isinstance(cut, do.TruncateTo) else cut.ours_from
        if first is None:
            return None
        async with self.work.saving:  # one at a time: each holds its files open
            tail = self.partition.log.tail_from(first) if is_wanted() else None
            return None if tail is None else await _saved(tail)

    def _lost_in(self, gap: do.NoteGap | None) -> Iterator[RecordLoss]:
        if gap is not None:
            yield self._loss(LossKind.GAP, gap.first, gap.end, gap.cause, None)

    def _lost_by(self, cut: Cut, saved: SavedTail | None) -> Iterator[RecordLoss]:
        log = self.partition.log
        if isinstance(cut, do.RestartAt):
            if log.end > log.start:
                yield self._loss(LossKind.RESTART, log.start, log.end, cut.cause, saved)
            return
        tail = log.tail_from(cut.end)
        first = cut.end if tail is None else min(cut.end, tail.first)
        yield self._loss(LossKind.TRUNCATION, first, log.end, cut.cause, saved)

    def _loss(
        self, kind: LossKind, first: int, end: int, cause: str, saved: SavedTail | None
    ) -> RecordLoss:
        return RecordLoss(
            kind=kind.value,
            first=first,
            end=end,
            cause=cause,
            at_ms=self.work.clock.wall_ms(),
            saved_to=None if saved is None else saved.path,
            saved_bytes=0 if saved is None else saved.size_bytes,
        )


async def _saved(tail: LogTail) -> SavedTail:
    saving = asyncio.get_running_loop().run_in_executor(None, tail.save)
    try:
        return await asyncio.shield(saving)
    except asyncio.CancelledError:
        # Who comes to this cut next must not write the same file at the same time.
        with suppress(DiskError):
            await saving
        raise
