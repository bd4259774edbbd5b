"""Keeps the epoch history of a log in its ``leader-epoch-checkpoint`` file.

An epoch that begins is in the file before the log's recovery point passes it: after a crash all
batches from that point on are read anyway, and their epochs found again. So thousands of logs may
begin an epoch at one time without a file to replace for each. What is cut off is written at once.
"""

from itertools import pairwise
from typing import Final

from twinlog.model.epochs import EpochHistory, EpochStart
from twinlog.model.ids import LeaderEpoch, Offset
from twinlog.storage.disk import Disk

FILE_NAME: Final = "leader-epoch-checkpoint"
_VERSION: Final = 0


def encode_epochs(history: EpochHistory) -> bytes:
    """Give the content of the file: version, number of entries, an entry on each line."""
    lines = [str(_VERSION), str(len(history.entries))]
    lines.extend(f"{entry.epoch} {entry.start}" for entry in history.entries)
    return ("\n".join(lines) + "\n").encode()


def decode_epochs(content: bytes) -> EpochHistory | None:
    """Read the content of the file; None when it is torn or no such file at all."""
    try:
        version, count, *lines = content.decode().splitlines()
        pairs = [tuple(map(int, line.split())) for line in lines]
        if int(version) != _VERSION or int(count) != len(pairs):
            return None
        entries = [EpochStart(LeaderEpoch(epoch), Offset(start)) for epoch, start in pairs]
    except ValueError:
        return None
    if any(a.epoch >= b.epoch or a.start >= b.start for a, b in pairwise(entries)):
        return None
    return EpochHistory(entries)


class EpochFile:
    """The epoch history of one log and the file it is kept in."""

    __slots__ = ("_disk", "_is_changed", "_path", "history")

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._path = f"{folder}/{FILE_NAME}"
        self.history = EpochHistory()
        self._is_changed = False

    def read(self) -> bool:
        """Read the file; False when it is missing or torn, so that the epochs must be found."""
        content = self._disk.read_whole(self._path)
        history = decode_epochs(content) if content is not None else None
        if history is None:
            return False
        self.history = history
        return True

    def begin(self, starts: list[tuple[int, int]]) -> None:
        """Note that epochs began, by epoch and offset; ``save`` has to come before a flush."""
        if len(starts) == 1 and starts[0][0] == self.history.latest:
            return  # as nearly always
        for epoch, start in starts:
            self.note(epoch, start)

    def note(self, epoch: int, start: int) -> None:
        """Note that an epoch began; the file is written later."""
        if epoch >= 0 and self.history.assign(LeaderEpoch(epoch), Offset(start)):
            self._is_changed = True

    def cut_at(self, end: int) -> None:
        """Forget epochs that began at or after ``end``."""
        self.forget_from(end)
        self.save()

    def begin_at(self, start: int) -> None:
        """Forget epochs that ended before ``start``."""
        if self.history.truncate_from_start(Offset(start)):
            self.write()

    def put_back(self, entries: list[EpochStart]) -> None:
        """Return to what was known before batches that could not be written."""
        self._is_changed |= self.history.entries != entries
        self.history.entries = entries

    def clear(self) -> None:
        """Forget everything."""
        if self.history.entries:
            self.history.entries = []
            self.write()

    def forget_from(self, end: int) -> None:
        """Forget epochs that began at or after ``end``; the file is written later."""
        self._is_changed |= self.history.truncate_from_end(Offset(end))

    def save(self) -> None:
        """Write the file if anything was noted or forgotten since."""
        if self._is_changed:
            self.write()

    def write(self) -> None:
        """Replace the file."""
        self._is_changed = True  # until it is written
        self._disk.replace(self._path, encode_epochs(self.history), is_synced=False)
        self._is_changed = False
