"""Keeps a copy of the batches that a log is about to lose, in a file that nobody else touches.

The file lies in the log dir itself, beside the partition's folder, so that it outlives the topic:
``<first offset, 20 digits>.to-<end>.<topic>-<partition>.lost.log``. A Kafka broker and our own
loader look at folders only, and ``kafka-dump-log.sh`` takes the first part for the start offset.
It holds whole batches with their bytes unchanged. twinlog never removes it.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from twinlog.model.errors import DiskError
from twinlog.model.ids import Offset
from twinlog.storage.disk import Disk, OpenFile
from twinlog.storage.folders import FOLDER_NAME_CHARS_MAX

SCRATCH_SUFFIX: Final = ".tmp"
COMPARED_BYTES: Final = 1 << 20
SAME_OFFSETS_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class Span:
    """Batches in one file."""

    file: OpenFile
    position: int
    length: int


@dataclass(frozen=True, slots=True)
class SavedTail:
    """Where a copy lies, and how much it is."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class LogTail:
    """The batches from ``first`` up to ``end``, the end of the log; ``folder`` is the log's."""

    disk: Disk
    folder: str
    first: Offset
    end: Offset
    spans: tuple[Span, ...]

    @property
    def size_bytes(self) -> int:
        """How many bytes the batches are."""
        return sum(span.length for span in self.spans)

    def save(self) -> SavedTail:
        """Copy the batches and wait until they have reached the disk.

        May be run on another thread. A copy that is there already, since somebody died before he
        cut the log, is taken for what it is. Raises DiskError, with nothing left behind.
        """
        for path in self._paths():
            if self._is_saved_in(path):
                return SavedTail(path, self.size_bytes)
            if not self.disk.exists(path):
                self._copy_to(path)
                return SavedTail(path, self.size_bytes)
        raise DiskError(f"{SAME_OFFSETS_MAX} tails with the offsets of {path} are there already")

    def _paths(self) -> Iterator[str]:
        """Give the names to try: the same offsets may be lost again with other records."""
        log_dir, _, partition = self.folder.rpartition("/")
        start = f"{self.first:020d}.to-{self.end}."
        for number in range(1, SAME_OFFSETS_MAX + 1):
            ending = ".lost.log" if number == 1 else f".lost-{number}.log"
            room = FOLDER_NAME_CHARS_MAX - len(start + ending + SCRATCH_SUFFIX)
            yield f"{log_dir}/{start}{partition[:room]}{ending}"

    def _is_saved_in(self, path: str) -> bool:
        size_bytes = self.disk.size_bytes(path)
        if not size_bytes or size_bytes != self.size_bytes:
            return False
        copy, at = self.disk.open(path), 0
        for span in self.spans:
            for done in range(0, span.length, COMPARED_BYTES):
                length = min(COMPARED_BYTES, span.length - done)
                mine = self.disk.read(span.file, length, span.position + done)
                if mine != self.disk.read(copy, length, at):
                    return False
                at += length
        # Whoever died may have done so before the name had reached the disk.
        self.disk.sync(copy)
        self.disk.sync_folder(path.rpartition("/")[0])
        return True

    def _copy_to(self, path: str) -> None:
        scratch = path + SCRATCH_SUFFIX
        try:
            copy, at = self.disk.open(scratch), 0
            self.disk.truncate(copy, 0)
            for span in self.spans:
                self.disk.copy(span.file, span.position, span.length, copy, at)
                at += span.length
            self.disk.sync(copy)
            self.disk.rename(scratch, path)
        except DiskError:
            with suppress(DiskError):  # the first failure is the one to tell
                self.disk.remove(scratch)
            raise
        self.disk.sync_folder(path.rpartition("/")[0])
