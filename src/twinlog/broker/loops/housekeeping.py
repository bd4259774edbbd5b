"""Keeps the logs tidy: checkpoints, flushes, retention, idle producers, deleted files."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from twinlog.broker.clock import Clock
from twinlog.broker.partitions import Partitions
from twinlog.config.broker import REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS
from twinlog.config.coordinators import PRODUCER_ID_EXPIRATION_CHECK_INTERVAL_MS
from twinlog.config.declare import Settings
from twinlog.config.logs import (
    LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS,
    LOG_RETENTION_CHECK_INTERVAL_MS,
    LOG_SEGMENT_DELETE_DELAY_MS,
)
from twinlog.model.errors import DiskError
from twinlog.storage.log import PartitionLog
from twinlog.storage.logs import Logs

log = logging.getLogger(__name__)

TRASH_INTERVAL_MS: Final = 5_000
FLUSHED_LOGS_PER_TURN_MAX: Final = 50


@dataclass(slots=True)
class Chore:
    """Something done every ``interval_ms``; the next time at ``due_ms``."""

    interval_ms: int
    due_ms: int
    do: Callable[[], None]


class Housekeeping:
    """One task; its chores are short and run between requests, the slow ones on a thread."""

    def __init__(
        self, settings: Settings, logs: Logs, partitions: Partitions, clock: Clock
    ) -> None:
        self._logs: Final = logs
        self._partitions: Final = partitions
        self._clock: Final = clock
        self._delete_delay_ms: Final = settings[LOG_SEGMENT_DELETE_DELAY_MS]
        self._flush_interval_ms: Final = settings[LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS]
        self._checkpoint_interval_ms: Final = settings[
            REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS
        ]
        now_ms = clock.now_ms()
        chores = (
            (settings[LOG_RETENTION_CHECK_INTERVAL_MS], self.apply_retention),
            (settings[PRODUCER_ID_EXPIRATION_CHECK_INTERVAL_MS], self.expire_producers),
        )
        self._chores: Final = [Chore(every, now_ms + every, do) for every, do in chores]

    async def run(self) -> None:
        """Do every chore in its time, for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._run_chores())
            tasks.create_task(self._run_checkpoints())
            tasks.create_task(self._run_flushes())
            tasks.create_task(self._empty_trash())

    async def _run_chores(self) -> None:
        while True:
            now_ms = self._clock.now_ms()
            for chore in self._chores:
                if chore.due_ms <= now_ms:
                    chore.due_ms = now_ms + chore.interval_ms
                    self._attempt(chore)
            next_ms = min(chore.due_ms for chore in self._chores)
            await asyncio.sleep(max(next_ms - self._clock.now_ms(), 1) / 1000)

    def _attempt(self, chore: Chore) -> None:
        try:
            chore.do()
        except DiskError as error:
            log.error("housekeeping failed", extra={"chore": chore.do.__name__, "why": str(error)})

    def apply_retention(self) -> None:
        """Drop what is too old or too much; a mirror's log starts where its source's does."""
        for partition in self._partitions:
            if partition.mirror is not None:
                continue
            deleted = partition.delete_old(self._clock.wall_ms())
            if deleted:
                log.info(
                    "segments deleted by retention",
                    extra={
                        "partition": str(partition.of),
                        "segments": deleted,
                        "log_start": partition.log.start,
                    },
                )

    def expire_producers(self) -> None:
        """Forget idempotent producers that have been idle for too long."""
        for partition in self._partitions:
            partition.log.expire_producers(self._clock.wall_ms())

    async def _run_checkpoints(self) -> None:
        while True:
            await asyncio.sleep(self._checkpoint_interval_ms / 1000)
            try:
                await self.write_high_watermarks()
            except DiskError as error:
                log.error("high watermarks cannot be written", extra={"why": str(error)})

    async def write_high_watermarks(self) -> None:
        """Remember how far each partition is committed. Raises DiskError."""
        ends = {p.of: p.high_watermark for p in self._partitions}
        await asyncio.to_thread(self._logs.begin_write_high_watermarks(ends))

    async def _run_flushes(self) -> None:
        """Let what was appended reach the disk in turns, so that a restart has little to do."""
        while True:
            await asyncio.sleep(self._flush_interval_ms / 1000)
            try:
                await self.flush_all()
            except DiskError as error:
                log.error("recovery points cannot be written", extra={"why": str(error)})

    async def flush_all(self) -> None:
        """Flush each log that was written to. Raises DiskError."""
        dirty = [one for one in self._logs if one.recovery_point < one.end]
        for first in range(0, len(dirty), FLUSHED_LOGS_PER_TURN_MAX):
            for one in dirty[first : first + FLUSHED_LOGS_PER_TURN_MAX]:
                if self._logs.get(one.of) is one:  # else its folder may be another's by now
                    await self._flush(one)
        await asyncio.to_thread(self._logs.begin_write_points())

    async def _flush(self, one: PartitionLog) -> None:
        try:
            flush = one.begin_flush()
            await asyncio.to_thread(one.run_flush, flush)
        except DiskError as error:  # the others have theirs flushed all the same
            log.error("flush failed", extra={"partition": str(one.of), "why": str(error)})
            return
        one.end_flush(flush)

    async def _empty_trash(self) -> None:
        while True:
            await asyncio.sleep(TRASH_INTERVAL_MS / 1000)
            paths = self._logs.take_trash(self._clock.wall_ms(), self._delete_delay_ms)
            if not paths:
                continue
            try:
                await asyncio.to_thread(self._logs.empty_trash, paths)
            except DiskError as error:
                log.error("deleted files cannot be removed yet", extra={"why": str(error)})
                self._logs.put_back_trash(paths)
