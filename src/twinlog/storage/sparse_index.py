"""An index file of pairs that rise in both columns: offset -> position, timestamp -> offset.

The newest entries wait in memory and are written a page at a time: a crash loses them, and recovery
makes them again from the log, as it must do anyway. There is no mapping and no descriptor of its
own: a broker has two indexes for each of very many segments, and nearly all of them sleep.
"""

from bisect import bisect_right
from struct import Struct
from typing import Final

from twinlog.storage.open_files import OpenFiles

OFFSET_ENTRY: Final = Struct(">ii")  # offset from the segment's base, file position
TIME_ENTRY: Final = Struct(">qi")  # timestamp, offset from the segment's base
WAITING_BYTES_MAX: Final = 4_080  # a multiple of both entry sizes, below a page
PAGE_ENTRIES: Final = 256
_UNKNOWN: Final = -1


class SparseIndex:
    """The entries of one index file, those still waiting in memory included."""

    __slots__ = ("_count", "_entry", "_files", "_path", "_waiting")

    def __init__(self, files: OpenFiles, path: str, entry: Struct) -> None:
        self._files = files
        self._path = path
        self._entry = entry
        self._count = _UNKNOWN
        self._waiting: bytearray | None = None

    def __len__(self) -> int:
        """Give the number of entries."""
        if self._count == _UNKNOWN:  # nothing waits before the file has been looked at
            self._count = self._files.disk.size_bytes(self._path) // self._entry.size
        return self._count

    def entry(self, index: int) -> tuple[int, int]:
        """Give the entry at ``index``, which must be below the length."""
        stored = self._stored()
        size = self._entry.size
        if index >= stored:
            assert self._waiting is not None, f"entry {index} of {stored} in {self._path}"
            first, second = self._entry.unpack_from(self._waiting, (index - stored) * size)
        else:
            content = self._files.disk.read(self._files.get(self._path), size, index * size)
            first, second = self._entry.unpack(content)
        return first, second

    def last(self) -> tuple[int, int] | None:
        """Give the newest entry; None when there is none."""
        count = len(self)
        return self.entry(count - 1) if count else None

    def find(self, value: int, *, column: int = 0) -> tuple[int, int] | None:
        """Give the last entry whose ``column`` is at most ``value``; None when all are above."""
        index = self.count_up_to(value, column=column)
        return self.entry(index - 1) if index else None

    def count_up_to(self, value: int, *, column: int = 0) -> int:
        """Count the entries whose ``column`` is at most ``value``."""

        def column_of(index: int) -> int:
            return self.entry(index)[column]

        stored, count = self._stored(), len(self)
        if stored < count and column_of(stored) <= value:
            return bisect_right(range(count), value, lo=stored, key=column_of)
        # Of the file, only the first entry of some pages is read, and then the one page it is in.
        pages = bisect_right(range(0, stored, PAGE_ENTRIES), value, key=column_of)
        return self._count_in_page(pages - 1, value, column) if pages else 0

    def _count_in_page(self, number: int, value: int, column: int) -> int:
        """Count as ``count_up_to`` does where the last such entry is in that page of the file."""
        start, size, unpack = number * PAGE_ENTRIES, self._entry.size, self._entry.unpack_from
        length = min(PAGE_ENTRIES, self._stored() - start) * size
        page = self._files.disk.read(self._files.get(self._path), length, start * size)
        found = range(len(page) // size)
        return start + bisect_right(found, value, key=lambda at: unpack(page, at * size)[column])

    def append(self, first: int, second: int) -> None:
        """Add an entry that is above the last one in both columns."""
        count = len(self)
        if self._waiting is None:
            self._waiting = bytearray()
        elif len(self._waiting) >= WAITING_BYTES_MAX:
            self.write()
            self._waiting = bytearray()
        self._waiting += self._entry.pack(first, second)
        self._count = count + 1

    def write(self) -> None:
        """Write the entries that wait in memory to the file."""
        if self._waiting:
            position = self._stored() * self._entry.size
            self._files.disk.write(self._files.get(self._path), self._waiting, position)
        self._waiting = None

    def keep_first(self, count: int) -> None:
        """Drop all entries after the first ``count``."""
        stored = self._stored()
        if count > stored and self._waiting is not None:
            del self._waiting[(count - stored) * self._entry.size :]
            self._count = min(count, len(self))
            return
        self._waiting = None
        kept = min(count, stored)
        self._files.disk.truncate(self._files.get(self._path), kept * self._entry.size)
        self._count = kept

    def _stored(self) -> int:
        """Give the number of entries that are in the file."""
        return len(self) - (len(self._waiting) // self._entry.size if self._waiting else 0)
