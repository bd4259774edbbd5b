"""Flushes of one log: one at a time, and none after one that failed."""

from threading import Lock
from typing import NamedTuple

from twinlog.model.errors import DiskError
from twinlog.model.ids import Offset
from twinlog.storage.disk import Disk, OpenFile


class Flush(NamedTuple):
    """A flush under way: the files to wait for, and up to where the log is safe afterwards."""

    files: list[OpenFile]
    end: Offset
    cut_count: int


class FlushGate:
    """Lets the flushes of a log through, on any thread, until one fails.

    After that the system may have dropped what it could not write, and calls it written: another
    flush would succeed without it. Only a start, which reads the log and writes it once more, can
    tell what is still there.
    """

    __slots__ = ("_lock", "failure")

    def __init__(self) -> None:
        self._lock = Lock()
        self.failure: str | None = None
        """Why the first flush that failed did, and what that means."""

    def check(self) -> None:
        """Raise DiskError if a flush has failed."""
        if self.failure is not None:
            raise DiskError(self.failure)

    def run(self, disk: Disk, flush: Flush) -> None:
        """Wait until the files have reached the disk. Raises DiskError."""
        with self._lock:  # of two that meet, the system tells only one of a failure
            self.check()
            try:
                for file in flush.files:
                    disk.sync(file)
            except DiskError as error:
                self.failure = (
                    f"{error}; this log takes no more records until the broker, its disk mended, "
                    "is started again"
                )
                raise DiskError(self.failure) from error
