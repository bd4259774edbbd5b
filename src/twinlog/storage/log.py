"""One partition's log: append, read, truncate, roll. The only face of a log.

Nothing here is safe against other threads, and nothing waits, except where a method says that it
may be run elsewhere.
"""

from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, Self

from twinlog.model.epochs import EpochHistory
from twinlog.model.errors import ApiError, DiskError, ErrorCode
from twinlog.model.ids import Offset, TopicPartition
from twinlog.model.regions import FileRegion
from twinlog.storage.admit import NO_EPOCH_BOUND, Admitted, admit_copies
from twinlog.storage.admit_new import admit_new
from twinlog.storage.disk import OpenFile
from twinlog.storage.lookup import RecordPlace, find_by_time, find_latest_time
from twinlog.storage.open_files import OpenFiles
from twinlog.storage.recovery import LogFiles, load_log, replay_producers
from twinlog.storage.retention import SegmentFact, count_deletable
from twinlog.storage.segment import SIZE_BYTES_MAX, Segment
from twinlog.storage.settings import LogSettings
from twinlog.storage.trash import Trash
from twinlog.storage.txn_index import AbortedTxn
from twinlog.wire.primitives import Buffer
from twinlog.wire.records.batch import (
    NO_TIMESTAMP,
    BatchHeader,
    read_header,
    stamp,
    stamp_log_append_time,
)


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


class Flush(NamedTuple):
    """A flush under way: the files to wait for, and up to where the log is safe afterwards."""

    files: list[OpenFile]
    end: Offset


def _do_nothing() -> None:
    """Stand in where nobody keeps checkpoints."""


@dataclass(slots=True)
class LogHome:
    """What all logs of a log dir share."""

    files: OpenFiles
    trash: Trash
    save_points: Callable[[], None] = _do_nothing
    """Writes start and recovery point of every log to the checkpoints, before a log is cut."""


class PartitionLog:
    """The log of one partition of one broker.

    Invariants: segments rise by base and none is missing between two; only the last is written to;
    ``start <= end``; the start may lie inside a batch, the end never does.
    """

    __slots__ = ("_home", "_parts", "of", "recovery_point", "settings", "start")

    def __init__(
        self, of: TopicPartition, settings: LogSettings, home: LogHome, parts: LogFiles
    ) -> None:
        self.of = of
        self.settings = settings
        self.start = Offset(parts.segments[0].base)
        self.recovery_point = self.start
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
            home.files,
            folder,
            settings,
            log_start=log_start,
            recovery_point=recovery_point,
            is_clean=is_clean,
        )
        parts.producers.expire(now_ms, settings.producer_id_expiration_ms)
        log = cls(of, settings, home, parts)
        log.start = Offset(max(log_start, log.start))
        log.recovery_point = Offset(min(recovery_point, parts.end))
        return log

    # -- what it is ----------------------------------------------------------------------------

    @property
    def end(self) -> Offset:
        """First offset not yet written."""
        return Offset(self._parts.end)

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

    def open_transactions(self) -> list[tuple[int, int, int]]:
        """Give (producer id, epoch, first offset) of each transaction without an end."""
        return self._parts.producers.open_transactions()

    # -- append --------------------------------------------------------------------------------

    def append_as_leader(
        self, batches: Buffer, *, leader_epoch: int, now_ms: int, is_internal: bool = False
    ) -> Appended:
        """Check new batches, give them the next offsets and our epoch, and write them.

        A writable buffer is stamped in place. Raises ApiError, or DiskError with the log as it was.
        """
        content, found, markers = admit_new(
            batches, self.settings, now_ms=now_ms, is_internal=is_internal
        )
        producers = self._parts.producers
        for position, header in found:
            if header.producer_id < 0:
                continue
            repeat = producers.repeat_of(header) if not is_internal else None
            if repeat is not None:
                return Appended(
                    Offset(repeat.first_offset),
                    Offset(repeat.last_offset),
                    self.start,
                    repeat.timestamp if self.settings.is_log_append_time else NO_TIMESTAMP,
                    duplicate=True,
                    taken_bytes=len(content),
                )
            producers.check(header, markers.get(position), is_sequenced=not is_internal)
        admitted = Admitted(memoryview(content))
        first = due = self.end
        admitted.epoch_starts.append((leader_epoch, first))
        is_timed = self.settings.is_log_append_time
        for position, header in found:
            stamp(content, position, base_offset=due, leader_epoch=leader_epoch)
            if is_timed and not header.is_control:
                stamp_log_append_time(content, position, timestamp_ms=now_ms)
            if header.is_control:
                admitted.markers[due] = markers[position]
            admitted.batches.append((position, read_header(content, position)))
            due = Offset(due + header.last_offset_delta + 1)
        self._write(admitted)
        appended_ms = now_ms if is_timed else NO_TIMESTAMP
        return Appended(first, Offset(due - 1), self.start, appended_ms, taken_bytes=len(content))

    def append_as_follower(
        self, batches: Buffer, *, leader_epoch_max: int = NO_EPOCH_BOUND
    ) -> Appended:
        """Write another log's batches as they are; an incomplete one at the end is left out.

        Nothing is written unless all are good. Raises CorruptBatchError, or DiskError with the log
        as it was.
        """
        end, is_empty = self.end, self.size_bytes == 0
        admitted = admit_copies(
            memoryview(batches), end=end, is_empty=is_empty, leader_epoch_max=leader_epoch_max
        )
        if not admitted.batches:
            return Appended(end, Offset(end - 1), self.start)
        first = Offset(admitted.batches[0][1].base_offset)
        if first < end:
            self._begin_at(first)
        self._write(admitted)
        return Appended(first, Offset(self.end - 1), self.start, taken_bytes=len(admitted.content))

    def _write(self, admitted: Admitted) -> None:
        """Write checked batches, in a new segment where the last one has no room for them."""
        parts, at, batches = self._parts, 0, admitted.batches
        parts.epochs.begin(admitted.epoch_starts)
        old_end = parts.end
        try:
            while at < len(batches):
                segment = self._segment_for(batches[at][1])
                stop = self._stop_in(segment, admitted, at)
                self._write_group(segment, admitted, at, stop)
                at = stop
        except DiskError:
            with suppress(DiskError):  # the first failure is the one to tell
                self._undo_write(old_end)
            raise
        if parts.end - self.recovery_point >= self.settings.flush_messages:
            self.flush()

    def _undo_write(self, end: int) -> None:
        if self._parts.end > end:
            self._cut(end)
        self._parts.epochs.cut_at(end)

    def _write_group(self, segment: Segment, admitted: Admitted, at: int, stop: int) -> None:
        """Write the batches from index ``at`` to ``stop``, and follow them with all else."""
        parts, batches = self._parts, admitted.batches
        first, last = batches[at][0], batches[stop - 1]
        content = admitted.content[first : last[0] + last[1].length]
        group = batches
        if (at, stop) != (0, len(batches)):
            group = [(position - first, header) for position, header in batches[at:stop]]
        segment.append(content, group, self.settings.index_interval_bytes)
        parts.end = last[1].next_offset
        producers, markers = parts.producers, admitted.markers
        for _, header in group:
            if header.producer_id >= 0 or header.is_control:
                marker = markers.get(header.base_offset)
                aborted = producers.apply(header, marker)
                if aborted is not None:
                    segment.add_aborted(aborted)
        producers.end = parts.end

    def _segment_for(self, header: BatchHeader) -> Segment:
        """Give the segment that the batch belongs into; roll when the last one has no room."""
        last = self._parts.segments[-1]
        if last.size and (
            last.size + header.length > min(self.settings.segment_bytes, SIZE_BYTES_MAX)
            or not last.can_hold(header.last_offset)
            or self._is_too_old(last, header)
            or self._is_indexed_full(last)
        ):
            return self.roll(header.base_offset)
        if not last.size and not last.can_hold(header.last_offset):
            return self.roll(header.base_offset)
        return last

    def _is_too_old(self, segment: Segment, header: BatchHeader) -> bool:
        first = segment.first_timestamp
        return first >= 0 and header.max_timestamp - first > self.settings.segment_ms

    def _is_indexed_full(self, segment: Segment) -> bool:
        limit = self.settings.index_bytes_max
        return segment.offsets.size_bytes + 8 > limit or segment.times.size_bytes + 24 > limit

    def _stop_in(self, segment: Segment, admitted: Admitted, at: int) -> int:
        """Give the index after the last batch, from ``at`` on, that fits into the segment."""
        batches = admitted.batches
        room = max(min(self.settings.segment_bytes, SIZE_BYTES_MAX) - segment.size, 0)
        first = batches[at][0]
        if len(admitted.content) - first <= room and segment.can_hold(batches[-1][1].last_offset):
            return len(batches)
        for stop in range(at + 1, len(batches)):
            position, header = batches[stop]
            is_full = position + header.length - first > room
            if is_full or not segment.can_hold(header.last_offset):
                return stop
        return len(batches)

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
        at = self._index_of(from_offset)
        for segment in self._parts.segments[at:]:
            found = segment.locate(from_offset)
            if found is None:
                continue
            position, header = found
            if header.next_offset > up_to:
                return None
            end = self._end_position(segment, up_to) - position
            wanted = max(max_bytes, header.length) if at_least_one else max_bytes
            length = min(wanted, end)
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

    def _index_of(self, offset: int) -> int:
        """Give the index of the segment that would hold ``offset``."""
        segments = self._parts.segments
        return max(bisect_right(segments, offset, key=lambda segment: segment.base) - 1, 0)

    def aborted_between(self, from_offset: int, to: int) -> list[AbortedTxn]:
        """Give the aborted transactions that may have records between the two offsets."""
        found: list[AbortedTxn] = []
        for segment in self._parts.segments[self._index_of(from_offset) :]:
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
        self._cut(end)
        self.start = min(self.start, self.end)
        return self.end

    def _cut(self, end: int) -> None:
        parts = self._parts
        keep = max(bisect_right(parts.segments, end - 1, key=lambda segment: segment.base), 1)
        for segment in reversed(parts.segments[keep:]):
            self._discard(segment)
        del parts.segments[keep:]
        last = parts.segments[-1]
        found = last.locate(end)
        if found is not None:
            end = min(end, found[1].base_offset)
            last.cut_at(found[0], end)
        parts.end = max(end, last.base)
        parts.epochs.cut_at(parts.end)
        parts.snapshots.drop_above(parts.end)
        replay_producers(self._home.files, parts, up_to=parts.end)

    def restart_at(self, start: int) -> None:
        """Drop everything; the log begins at ``start``, which may be lower than before."""
        must_tell = start < self.start or self.recovery_point > start
        self.start = self.recovery_point = Offset(start)
        if must_tell:
            self._home.save_points()
        self._begin_at(start)
        self._parts.end = start

    def _begin_at(self, base: int) -> None:
        """Replace all segments by an empty one."""
        parts = self._parts
        for segment in parts.segments:
            self._discard(segment)
        parts.segments[:] = [Segment(self._home.files, parts.folder, base)]
        parts.segments[0].create()
        parts.snapshots.drop_above(-1)
        parts.epochs.clear()
        parts.producers.reset(base)

    def raise_start_to(self, start: int) -> None:
        """Let the log begin at ``start``; segments that lie wholly before it go.

        A start below the present one changes nothing. Raises ApiError beyond the end.
        """
        if start <= self.start:
            return
        self._check_in_range(start)
        self.start = Offset(start)
        self._drop_oldest(max(self._index_of(start), 0))

    def _drop_oldest(self, count: int) -> None:
        """Drop whole segments from the start; the log begins no earlier than what is left."""
        parts = self._parts
        for segment in parts.segments[:count]:
            self._discard(segment)
        del parts.segments[:count]
        base = parts.segments[0].base
        self.start = max(self.start, Offset(base))
        parts.snapshots.drop_below(base)
        parts.epochs.begin_at(self.start)

    def _discard(self, segment: Segment) -> None:
        for path in segment.paths():
            self._home.trash.add(path)

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
            self.roll(self.end)
        if count:
            self._drop_oldest(count)
        return count

    def _age_of(self, segment: Segment) -> int:
        timestamp = segment.max_timestamp
        if timestamp >= 0:
            return timestamp
        return self._home.files.disk.modified_ms(segment.stem + ".log")

    def roll(self, base: int | None = None) -> Segment:
        """Begin a new segment at ``base``, which is the log's end or above; give it."""
        parts = self._parts
        last, base = parts.segments[-1], parts.end if base is None else base
        if last.base >= base:
            return last
        last.finish()
        parts.snapshots.take(base, parts.producers.all())
        segment = Segment(self._home.files, parts.folder, base)
        segment.create()
        parts.segments.append(segment)
        return segment

    # -- keep ----------------------------------------------------------------------------------

    def begin_flush(self) -> Flush:
        """Complete the files that have not reached the disk; the caller waits for them."""
        parts, files = self._parts, []
        for segment in parts.segments[self._index_of(self.recovery_point) :]:
            files.extend(segment.begin_sync())
        return Flush(files, self.end)

    def run_flush(self, flush: Flush) -> None:
        """Wait until the files have reached the disk; this may be run on another thread."""
        for file in flush.files:
            self._home.files.disk.sync(file)

    def end_flush(self, flush: Flush) -> None:
        """Note that a flush is done, unless the log was cut meanwhile."""
        self.recovery_point = max(self.recovery_point, min(flush.end, self.end))

    def flush(self) -> None:
        """Wait until everything has reached the disk."""
        flush = self.begin_flush()
        self.run_flush(flush)
        self.end_flush(flush)

    def reset_producers(self) -> None:
        """Forget all producers and transactions."""
        self._parts.producers.reset(self.end)

    def expire_producers(self, now_ms: int) -> int:
        """Forget producers that have been idle for too long; give their number."""
        return self._parts.producers.expire(now_ms, self.settings.producer_id_expiration_ms)

    def close(self, *, is_clean: bool) -> None:
        """Complete and flush the files if this is a clean stop, and let go of them."""
        parts = self._parts
        if is_clean:
            parts.segments[-1].finish()
            if parts.snapshots.offsets[-1:] != [parts.end] and parts.end > parts.segments[0].base:
                parts.snapshots.take(parts.end, parts.producers.all())
            self.flush()
        for segment in parts.segments:
            for path in segment.paths():
                self._home.files.forget(path)
