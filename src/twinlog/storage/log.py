"""One partition's log: append, read, truncate, roll. The only face of a log.

Nothing here is safe against other threads, and nothing waits, except where a method says that it
may be run elsewhere.
"""

from typing import NamedTuple, Self

from twinlog.model.epochs import EpochHistory
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import Offset, TopicPartition
from twinlog.model.regions import FileRegion
from twinlog.storage.admit import NO_EPOCH_BOUND, Admitted, admit_copies
from twinlog.storage.admit_new import admit_new
from twinlog.storage.flushing import Flush, FlushGate
from twinlog.storage.home import LogHome
from twinlog.storage.lookup import RecordPlace, find_by_time, find_latest_time
from twinlog.storage.lost_tail import LogTail
from twinlog.storage.parts import LogParts
from twinlog.storage.recovery import load_log
from twinlog.storage.retention import SegmentFact, count_deletable
from twinlog.storage.segment import Segment
from twinlog.storage.settings import LogSettings
from twinlog.storage.txn_index import AbortedTxn, OpenTxn
from twinlog.wire.primitives import Buffer
from twinlog.wire.records.batch import NO_TIMESTAMP


class Appended(NamedTuple):
    """What an append did; without a whole batch the offsets are those of nothing: end, end - 1."""

    first_offset: Offset
    last_offset: Offset
    log_start: Offset
    log_append_time_ms: int = NO_TIMESTAMP
    duplicate: bool = False
    """The batch was in the log already, at these offsets."""
    taken_bytes: int = 0
    """How much of the buffer was whole batches."""


class LogSlice(NamedTuple):
    """Batches in a file: the first may begin before the offset asked for, the last may be cut."""

    region: FileRegion
    first_offset: Offset
    """Base offset of the first batch."""
    bound: Offset
    """No batch of the slice reaches this offset; there may be more before it."""


class PartitionLog:
    """The log of one partition of one broker.

    Invariant: ``start <= end``; the start may lie inside a batch, the end never does.
    """

    __slots__ = ("_home", "_parts", "flushes", "of", "recovery_point", "settings", "start")

    def __init__(
        self, of: TopicPartition, settings: LogSettings, home: LogHome, parts: LogParts
    ) -> None:
        self.of = of
        self.settings = settings
        self.start = Offset(parts.segments[0].base)
        self.recovery_point = self.start
        self.flushes = FlushGate()
        self._home = home
        self._parts = parts

    @classmethod
    def open(  # noqa: PLR0913 - all that is known from outside the folder
        cls,
        folder: str,
        of: TopicPartition,
        settings: LogSettings,
        *,
        home: LogHome,
        log_start: int = 0,
        recovery_point: int = 0,
        is_clean: bool = False,
        now_ms: int = 0,
    ) -> Self:
        """Open the log in ``folder``, which exists; recover it unless it was stopped cleanly."""
        parts = load_log(
            LogParts(home, folder),
            settings,
            log_start=log_start,
            recovery_point=recovery_point,
            is_clean=is_clean,
        )
        parts.producers.expire(now_ms, settings.producer_id_expiration_ms)
        log = cls(of, settings, home, parts)
        log.start = Offset(max(log_start, log.start))
        parts.epochs.begin_at(log.start)
        log.recovery_point = Offset(min(recovery_point, parts.end))
        return log

    # -- what it is ----------------------------------------------------------------------------

    @property
    def end(self) -> Offset:
        """First offset not yet written."""
        return self._parts.end

    @property
    def folder(self) -> str:
        """Path of the folder the log lives in."""
        return self._parts.folder

    @property
    def epochs(self) -> EpochHistory:
        """Which leader epoch began where, as the batches say."""
        return self._parts.epochs.history

    @property
    def size_bytes(self) -> int:
        """Bytes of batches, those before the start that are still there included."""
        return sum(segment.size for segment in self._parts.segments)

    @property
    def segment_count(self) -> int:
        """Number of segments."""
        return len(self._parts.segments)

    @property
    def cut_bytes(self) -> int:
        """What opening cut off because a crash had left it torn."""
        return self._parts.cut_bytes

    @property
    def producer_count(self) -> int:
        """Number of idempotent producers remembered."""
        return len(self._parts.producers)

    def last_stable_offset(self, high_watermark: int) -> Offset:
        """Give how far a read_committed reader may see."""
        unstable = self._parts.producers.first_unstable(high_watermark)
        return Offset(high_watermark if unstable is None else min(high_watermark, unstable))

    def open_transactions(self) -> list[OpenTxn]:
        """Give each transaction without an end."""
        return self._parts.producers.open_transactions()

    # -- append --------------------------------------------------------------------------------

    def append_as_leader(
        self, batches: Buffer, *, leader_epoch: int, now_ms: int, is_internal: bool = False
    ) -> Appended:
        """Check new batches, give them the next offsets and our epoch, and write them.

        A writable buffer is stamped in place. Raises ApiError, or DiskError with the log as it was.
        """
        self.flushes.check()
        new = admit_new(batches, self.settings, now_ms=now_ms, is_internal=is_internal)
        repeat = new.check_producers(self._parts.producers)
        if repeat is not None:
            return Appended(
                Offset(repeat.first_offset),
                Offset(repeat.last_offset),
                self.start,
                repeat.timestamp if self.settings.is_log_append_time else NO_TIMESTAMP,
                duplicate=True,
                taken_bytes=len(new.content),
            )
        first = self._parts.end
        time_ms = now_ms if self.settings.is_log_append_time else NO_TIMESTAMP
        self._write(new.stamped(first, leader_epoch=leader_epoch, log_append_time_ms=time_ms))
        last = Offset(self._parts.end - 1)
        return Appended(first, last, self.start, time_ms, taken_bytes=len(new.content))

    def append_as_follower(
        self, batches: Buffer, *, leader_epoch_max: int = NO_EPOCH_BOUND
    ) -> Appended:
        """Write another log's batches as they are; an incomplete one at the end is left out.

        Nothing is written unless all are good. Raises CorruptBatchError, or DiskError with the log
        as it was.
        """
        self.flushes.check()
        end, segments = self.end, self._parts.segments
        is_empty = len(segments) == 1 and segments[0].size == 0
        admitted = admit_copies(
            memoryview(batches), end=end, is_empty=is_empty, leader_epoch_max=leader_epoch_max
        )
        if not admitted.batches:
            return Appended(end, Offset(end - 1), self.start)
        first = Offset(admitted.batches[0][1].base_offset)
        if first < end:
            self._parts.begin_at(first)
        self._write(admitted)
        return Appended(first, Offset(self.end - 1), self.start, taken_bytes=len(admitted.content))

    def _write(self, admitted: Admitted) -> None:
        self._parts.write(admitted, self.settings)
        if self._parts.end - self.recovery_point >= self.settings.flush_messages:
            self.flush()

    # -- read ----------------------------------------------------------------------------------

    def read(
        self, from_offset: int, *, max_bytes: int, up_to: int, at_least_one: bool
    ) -> LogSlice | None:
        """Give where the batches from ``from_offset`` on lie, ``max_bytes`` of them at most.

        Only batches that end before ``up_to`` are given. ``at_least_one`` gives the first one even
        when it is longer than ``max_bytes``. None when there is nothing to give. Raises ApiError
        when the log does not reach to that offset.
        """
        self._check_in_range(from_offset)
        if from_offset >= up_to:
            return None  # as for every reader that waits at the end
        at = self._parts.index_of(from_offset)
        for segment in self._parts.segments[at:]:
            found = segment.locate(from_offset)
            if found is None:
                continue
            position, header = found
            if header.next_offset > up_to:
                return None
            end = self._end_position(segment, up_to) - position
            length = min(end, max(max_bytes, header.length if at_least_one else 0))
            if length <= 0:
                return None
            bound = segment.bound_after(position + length)
            return LogSlice(
                FileRegion(segment.file, position, length),
                Offset(header.base_offset),
                Offset(up_to if bound is None else min(up_to, bound)),
            )
        return None

    def _end_position(self, segment: Segment, up_to: int) -> int:
        """Give the position in a segment where the batches before ``up_to`` end."""
        if up_to >= self.end:
            return segment.size
        found = segment.locate(up_to)
        return segment.size if found is None else found[0]

    def _check_in_range(self, offset: int) -> None:
        if not self.start <= offset <= self.end:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.of} has offsets {self.start} to {self.end}, not {offset}",
            )

    def aborted_between(self, from_offset: int, to: int) -> list[AbortedTxn]:
        """Give the aborted transactions that may have records between the two offsets."""
        found: list[AbortedTxn] = []
        for segment in self._parts.segments[self._parts.index_of(from_offset) :]:
            for txn in segment.aborted():
                if txn.last_offset >= from_offset and txn.first_offset < to:
                    found.append(txn)
                if txn.last_stable_offset >= to:
                    return found
        return found

    def offset_for_time(self, timestamp_ms: int) -> RecordPlace | None:
        """Find the first record that is at least that late."""
        return find_by_time(
            self._home.files.disk, self._parts.segments, timestamp_ms, start=self.start
        )

    def offset_of_max_timestamp(self) -> RecordPlace | None:
        """Find the first record with the highest timestamp."""
        return find_latest_time(self._home.files.disk, self._parts.segments, start=self.start)

    # -- cut and move --------------------------------------------------------------------------

    def tail_from(self, offset: int) -> LogTail | None:
        """Give all that ``truncate_to(offset)`` would drop; None when that is nothing."""
        return self._parts.tail_from(max(offset, self.start))

    def truncate_to(self, end: int) -> Offset:
        """Drop what lies at ``end`` and beyond; a batch that reaches beyond it goes whole.

        Gives the new end.
        """
        if end >= self.end:
            return self.end
        if end < self._parts.segments[0].base:
            self.restart_at(end)
            return self.end
        self.recovery_point = min(self.recovery_point, Offset(end))
        self.start = min(self.start, Offset(end))
        self._home.save_points()
        self._parts.cut(end)
        self.start = min(self.start, self.end)
        return self.end

    def restart_at(self, start: int) -> None:
        """Drop everything; the log begins at ``start``, which may be lower than before."""
        assert start >= 0, f"{self.of} cannot begin at {start}"
        must_tell = start < self.start or self.recovery_point > start
        self.start = self.recovery_point = Offset(start)
        if must_tell:
            self._home.save_points()
        self._parts.begin_at(start)

    def raise_start_to(self, start: int) -> None:
        """Let the log begin at ``start``; segments that lie wholly before it go.

        A start below the present one changes nothing. Raises ApiError beyond the end.
        """
        if start <= self.start:
            return
        self._check_in_range(start)
        self.start = Offset(start)
        self._drop_oldest(self._parts.index_of(start))

    def save_start(self) -> None:
        """Make the present start survive a kill (it is written from time to time anyway)."""
        self._home.save_points()

    def _drop_oldest(self, count: int) -> None:
        """Drop whole segments; the log begins no earlier than what is left."""
        if count:
            self.start = max(self.start, Offset(self._parts.segments[count].base))
        self._parts.drop_oldest(count, self.start)

    def delete_old(self, now_ms: int, *, up_to: int) -> int:
        """Drop the oldest segments that retention gives up; give their number.

        Nothing at or above ``up_to``, the high watermark, goes.
        """
        segments = self._parts.segments
        ends = [segment.base for segment in segments[1:]] + [int(self.end)]
        facts = [
            SegmentFact(end, segment.size, self._age_of(segment))
            for segment, end in zip(segments, ends, strict=True)
        ]
        count = count_deletable(
            facts, self.settings, now_ms=now_ms, log_start=self.start, up_to=up_to
        )
        if count == len(segments):
            self.roll()
        if count:
            self._drop_oldest(count)
        return count

    def _age_of(self, segment: Segment) -> int:
        if segment.max_timestamp >= 0:
            return segment.max_timestamp
        return self._home.files.disk.modified_ms(segment.stem + ".log")

    def roll(self) -> None:
        """Begin a new segment at the end, unless the last one is empty."""
        self._parts.roll(self.end)

    # -- keep ----------------------------------------------------------------------------------

    def begin_flush(self) -> Flush:
        """Complete what has not reached the disk, to be waited for; DiskError after a failure."""
        self.flushes.check()
        parts = self._parts
        parts.epochs.save()
        unsafe = parts.segments[parts.index_of(self.recovery_point) :]
        files = [file for segment in unsafe for file in segment.begin_sync()]
        return Flush(files, self.end, parts.cut_count)

    def run_flush(self, flush: Flush) -> None:
        """Wait until the files have reached the disk; this may be run on another thread."""
        self.flushes.run(self._home.files.disk, flush)

    def end_flush(self, flush: Flush) -> None:
        """Note that a flush is done, unless the log was cut or another one failed meanwhile."""
        if flush.cut_count == self._parts.cut_count and self.flushes.failure is None:
            self.recovery_point = max(self.recovery_point, flush.end)

    def flush(self) -> None:
        """Wait until everything has reached the disk."""
        self._complete(self.begin_flush())

    def _complete(self, flush: Flush) -> None:
        self.run_flush(flush)
        self.end_flush(flush)

    def expire_producers(self, now_ms: int) -> int:
        """Forget producers that have been idle for too long; give their number."""
        return self._parts.producers.expire(now_ms, self.settings.producer_id_expiration_ms)

    def begin_close(self) -> Flush:
        """Complete the files for a clean stop, and begin to flush what has not reached the disk."""
        self.flushes.check()
        parts = self._parts
        parts.segments[-1].finish()
        if parts.snapshots.offsets[-1:] != [parts.end] and parts.end > parts.segments[0].base:
            parts.snapshots.take(parts.end, parts.producers.all())
        is_dirty = self.recovery_point < self.end
        return self.begin_flush() if is_dirty else Flush([], self.end, parts.cut_count)

    def close(self, *, is_clean: bool) -> None:
        """Let go of the files, which a clean stop completes and flushes before."""
        if is_clean:
            self._complete(self.begin_close())
        for segment in self._parts.segments:
            for path in segment.paths():
                self._home.files.forget(path)
