"""One segment of a log: its batches, and the indexes that find an offset or a time in them."""

from contextlib import suppress

from twinlog.model.errors import CorruptBatchError, DiskError
from twinlog.storage.disk import OpenFile
from twinlog.storage.open_files import OpenFiles
from twinlog.storage.scan import scan_headers
from twinlog.storage.sparse_index import OFFSET_ENTRY, TIME_ENTRY, SparseIndex
from twinlog.storage.txn_index import AbortedTxn, append_aborted, drop_aborted_from, read_aborted
from twinlog.wire.primitives import Buffer
from twinlog.wire.records.batch import NO_TIMESTAMP, BatchHeader

SUFFIXES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
RELATIVE_OFFSET_MAX = 0x7FFF_FFFF
SIZE_BYTES_MAX = 0x7FFF_FFFF


class Segment:
    """The batches from ``base`` on, up to the base of the next segment.

    ``size`` is the number of bytes that count: what a failed write left behind it does not. Times
    are read from the files only when somebody asks, so that opening a segment costs nothing.
    """

    __slots__ = (
        "_files",
        "_first_timestamp",
        "_indexed_position",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_path",
        "base",
        "has_aborted",
        "offsets",
        "size",
        "stem",
        "times",
    )

    def __init__(self, files: OpenFiles, folder: str, base: int, size: int = 0) -> None:
        self._files = files
        self.base = base
        self.size = size
        self.stem = f"{folder}/{base:020d}"
        self._path = self.stem + ".log"
        self.has_aborted = False
        self.offsets = SparseIndex(files, self.stem + ".index", OFFSET_ENTRY)
        self.times = SparseIndex(files, self.stem + ".timeindex", TIME_ENTRY)
        self._indexed_position: int | None = None
        self._max_timestamp: int | None = None
        self._max_timestamp_offset = base
        self._first_timestamp = NO_TIMESTAMP

    @property
    def file(self) -> OpenFile:
        """The open file of batches."""
        return self._files.get(self._path)

    def create(self) -> None:
        """Make the files of a new segment; whatever had their names is emptied."""
        for suffix in (".log", ".index", ".timeindex"):
            self._files.disk.truncate(self._files.get(self.stem + suffix), 0)

    # -- times ---------------------------------------------------------------------------------

    @property
    def max_timestamp(self) -> int:
        """The highest timestamp; -1 when no batch has one."""
        return self._times_known()[0]

    @property
    def max_timestamp_offset(self) -> int:
        """Last offset of the first batch that holds the highest timestamp."""
        return self._times_known()[1]

    @property
    def first_timestamp(self) -> int:
        """The highest timestamp of the first batch, from which the age of a segment counts."""
        if self._first_timestamp == NO_TIMESTAMP and self.size:
            for _, header in scan_headers(self._files.disk, self.file, 0, self.size):
                self._first_timestamp = header.max_timestamp
                break
        return self._first_timestamp

    def _times_known(self) -> tuple[int, int]:
        if self._max_timestamp is None:
            timestamp, relative = self.times.last() or (NO_TIMESTAMP, 0)
            self._max_timestamp, self._max_timestamp_offset = timestamp, self.base + relative
        return self._max_timestamp, self._max_timestamp_offset

    # -- writing -------------------------------------------------------------------------------

    def can_hold(self, last_offset: int) -> bool:
        """Whether the offset can be written in the four bytes that an index has for it."""
        return last_offset - self.base <= RELATIVE_OFFSET_MAX

    def is_older_than(self, segment_ms: int, timestamp: int) -> bool:
        """Whether a batch with that timestamp comes too long after the first one."""
        first = self.first_timestamp
        return first >= 0 and timestamp - first > segment_ms

    def has_full_index(self, limit_bytes: int) -> bool:
        """Whether an index has no room; the last time entry is kept for ``finish``."""
        return (len(self.offsets) + 1) * OFFSET_ENTRY.size > limit_bytes or (
            len(self.times) + 2
        ) * TIME_ENTRY.size > limit_bytes

    def append(
        self, content: Buffer, batches: list[tuple[int, BatchHeader]], interval_bytes: int
    ) -> None:
        """Write whole batches; ``batches`` are their positions in ``content`` and headers.

        Raises DiskError, with the segment as it was before.
        """
        start, counts = self.size, (len(self.offsets), len(self.times))
        times = self._times_known()
        try:
            self._files.disk.write(self.file, content, start)
            self.size = start + len(content)
            self.index(batches, start, interval_bytes)
        except DiskError:
            with suppress(DiskError):  # the first failure is the one to tell
                self._undo_append(start, counts, times)
            raise

    def _undo_append(self, start: int, counts: tuple[int, int], times: tuple[int, int]) -> None:
        self.size = start
        self._indexed_position = None
        self._max_timestamp, self._max_timestamp_offset = times
        self._files.disk.truncate(self.file, start)
        self.offsets.keep_first(counts[0])
        self.times.keep_first(counts[1])

    def index(
        self, batches: list[tuple[int, BatchHeader]], start: int, interval_bytes: int
    ) -> None:
        """Enter batches that were written from ``start`` on into the indexes."""
        indexed = self._last_indexed_position()
        timestamp, timestamp_offset = self._times_known()
        base, entered = self.base, None
        for at, header in batches:
            if header.max_timestamp > timestamp:
                timestamp, timestamp_offset = header.max_timestamp, header.last_offset
            position = start + at
            if position - indexed > interval_bytes:
                self.offsets.append(header.base_offset + header.last_offset_delta - base, position)
                if entered is None:  # it may have to be read from the file
                    entered = self._last_entered_time()
                if timestamp > entered:
                    self.times.append(timestamp, timestamp_offset - base)
                    entered = timestamp
                indexed = position
        if start == 0 and batches:
            self._first_timestamp = batches[0][1].max_timestamp
        self._indexed_position = indexed
        self._max_timestamp, self._max_timestamp_offset = timestamp, timestamp_offset

    def _last_indexed_position(self) -> int:
        if self._indexed_position is None:
            last = self.offsets.last()
            self._indexed_position = last[1] if last else 0
        return self._indexed_position

    def _last_entered_time(self) -> int:
        last = self.times.last()
        return last[0] if last else NO_TIMESTAMP

    def finish(self) -> None:
        """Complete the index files: the segment is closed, or another follows it."""
        timestamp, offset = self._times_known()
        if timestamp > self._last_entered_time():
            self.times.append(timestamp, offset - self.base)
        self.offsets.write()
        self.times.write()

    def begin_sync(self) -> list[OpenFile]:
        """Write what waits in memory; give the files that have yet to reach the disk."""
        self.offsets.write()
        self.times.write()
        suffixes = [".log", ".index", ".timeindex"] + [".txnindex"] * self.has_aborted
        return [self._files.get(self.stem + suffix) for suffix in suffixes]

    def add_aborted(self, txn: AbortedTxn) -> None:
        """Note an aborted transaction whose marker lies in this segment."""
        append_aborted(self._files, self.stem + ".txnindex", txn)
        self.has_aborted = True

    def aborted(self) -> list[AbortedTxn]:
        """Give the aborted transactions whose markers lie in this segment."""
        return read_aborted(self._files, self.stem + ".txnindex") if self.has_aborted else []

    # -- finding -------------------------------------------------------------------------------

    def locate(self, offset: int) -> tuple[int, BatchHeader] | None:
        """Find the first batch that ends at or after ``offset``: its position and header."""
        nearest = self.offsets.find(offset - self.base)
        start = nearest[1] if nearest else 0
        for position, header in scan_headers(self._files.disk, self.file, start, self.size):
            if header.last_offset >= offset:
                return position, header
        return None

    def tail(self) -> tuple[int, int]:
        """Give the offset after the last whole batch, and the position where that batch ends.

        Anything that is no batch ends the walk: then the position is not the segment's size.
        """
        last = self.offsets.last()
        next_offset, position = self.base, -1 if last else 0
        start = last[1] if last else 0
        with suppress(CorruptBatchError):
            for at, header in scan_headers(self._files.disk, self.file, start, self.size):
                next_offset, position = header.next_offset, at + header.length
        return next_offset, position

    def bound_after(self, position: int) -> int | None:
        """Give an indexed offset at or after ``position``; None when none is that far."""
        if position >= self.size:
            return None
        index = self.offsets.count_up_to(position - 1, column=1)
        if index == len(self.offsets):
            return None
        return self.base + self.offsets.entry(index)[0]

    # -- cutting -------------------------------------------------------------------------------

    def cut_at(self, position: int, end: int) -> None:
        """Drop everything from ``position`` on, where the batch with offset ``end`` begins."""
        self._files.disk.truncate(self.file, position)
        self.size = position
        self.offsets.keep_first(self.offsets.count_up_to(end - 1 - self.base))
        self.times.keep_first(self.times.count_up_to(end - 1 - self.base, column=1))
        if self.has_aborted:
            drop_aborted_from(self._files, self.stem + ".txnindex", end)
        self._indexed_position = self._max_timestamp = None
        self._first_timestamp = NO_TIMESTAMP
        self._find_times_after_index()

    def _find_times_after_index(self) -> None:
        """Look for the highest timestamp in what lies behind the last time entry."""
        timestamp, offset = self._times_known()
        nearest = self.offsets.find(offset - self.base)
        start = nearest[1] if nearest else 0
        for _, header in scan_headers(self._files.disk, self.file, start, self.size):
            if header.max_timestamp > timestamp:
                timestamp, offset = header.max_timestamp, header.last_offset
        self._max_timestamp, self._max_timestamp_offset = timestamp, offset

    def empty_indexes(self) -> None:
        """Drop all that the indexes say, before they are made again from the log."""
        self.offsets.keep_first(0)
        self.times.keep_first(0)
        if self.has_aborted:
            drop_aborted_from(self._files, self.stem + ".txnindex", 0)
        self._indexed_position, self._max_timestamp = 0, NO_TIMESTAMP
        self._max_timestamp_offset, self._first_timestamp = self.base, NO_TIMESTAMP

    def shrink_to(self, size: int) -> None:
        """Cut off a torn tail that no index knows of."""
        self._files.disk.truncate(self.file, size)
        self.size = size

    def paths(self) -> list[str]:
        """Give the paths of all files that a segment may have."""
        return [self.stem + suffix for suffix in SUFFIXES]
