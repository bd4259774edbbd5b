"""Cuts a mirrored partition's log, once what it drops is saved."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from twinlog.broker.mirror_board import LossKind
from twinlog.broker.mirrors.work import MirrorWork
from twinlog.broker.partitions import Partition
from twinlog.mirroring import effects as do
from twinlog.model.errors import DiskError
from twinlog.model.ids import Offset
from twinlog.storage.lost_tail import LogTail, SavedTail

Cut = do.TruncateTo | do.RestartAt


@dataclass(frozen=True, slots=True)
class Cutting:
    """The cuts of one partition.

    Killed between saving and cutting, the partition comes to the same cut again, and the copy
    that is there is taken.
    """

    partition: Partition
    work: MirrorWork

    async def carry_out(self, cut: Cut, is_wanted: Callable[[], bool]) -> bool:
        """Save what is to go and is not the source's, then cut; False if it is wanted no more.

        Raises DiskError, with the log as it was.
        """
        saved = await self._save(cut, is_wanted)
        if not is_wanted():
            return False
        self._note(cut, saved)
        match cut:
            case do.TruncateTo(end):
                self.partition.truncate_to(end)
            case do.RestartAt(start):
                self.partition.restart_at(start)
        return True

    async def _save(self, cut: Cut, is_wanted: Callable[[], bool]) -> SavedTail | None:
        first = cut.end if isinstance(cut, do.TruncateTo) else cut.ours_from
        if first is None:
            return None
        async with self.work.saving:  # one at a time: each holds its files open
            tail = self.partition.log.tail_from(first) if is_wanted() else None
            return None if tail is None else await _saved(tail)

    def _note(self, cut: Cut, saved: SavedTail | None) -> None:
        log, of, cause = self.partition.log, self.partition.of, cut.cause
        if isinstance(cut, do.TruncateTo):
            tail = log.tail_from(cut.end)
            first = cut.end if tail is None else min(cut.end, tail.first)
            self.work.note_loss(of, Offset(first), log.end, cause, LossKind.TRUNCATION, saved)
        elif log.end > log.start:
            self.work.note_loss(of, log.start, log.end, cause, LossKind.RESTART, saved)


async def _saved(tail: LogTail) -> SavedTail:
    saving = asyncio.get_running_loop().run_in_executor(None, tail.save)
    try:
        return await asyncio.shield(saving)
    except asyncio.CancelledError:
        # Who comes to this cut next must not write the same file at the same time.
        with suppress(DiskError):
            await saving
        raise
