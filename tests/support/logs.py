"""Logs for tests: opened in a folder, opened again as after a stop or a crash, on a bad disk."""

import os
from pathlib import Path

from twinlog.model.errors import DiskError
from twinlog.model.ids import TopicName, TopicPartition
from twinlog.storage.disk import Disk, OpenFile
from twinlog.storage.home import LogHome
from twinlog.storage.log import LogSlice, PartitionLog
from twinlog.storage.open_files import OpenFiles
from twinlog.storage.settings import LogSettings
from twinlog.storage.trash import Trash
from twinlog.wire.primitives import Buffer
from twinlog.wire.records.batch import iter_headers

OF = TopicPartition(TopicName("orders"), 3)


class HastyDisk(Disk):
    """A disk that waits for nothing: a kill loses nothing that the system has been given."""

    __slots__ = ()

    def sync(self, file: OpenFile) -> None:
        """Do not wait."""


class FailingDisk(HastyDisk):
    """A disk that fails once its budget of bytes is used up; what fits is still written."""

    __slots__ = ("bytes_left", "failing_suffix")

    def __init__(self) -> None:
        self.bytes_left = 1 << 60
        self.failing_suffix = ".log"

    def write(self, file: OpenFile, content: Buffer, position: int) -> None:
        """Write as long as there is room for files with the failing suffix."""
        if not file.path.endswith(self.failing_suffix):
            super().write(file, content, position)
            return
        fitting = min(len(content), self.bytes_left)
        self.bytes_left -= fitting
        super().write(file, memoryview(content)[:fitting], position)
        if fitting < len(content):
            raise DiskError(f"cannot write {file.path}: No space left on device")


def home(disk: Disk | None = None, files_max: int = 100) -> LogHome:
    """Give what logs share."""
    files = OpenFiles(disk or HastyDisk(), files_max)
    return LogHome(files, Trash(files))


def open_log(
    folder: Path,
    settings: LogSettings | None = None,
    *,
    disk: Disk | None = None,
    log_start: int = 0,
    recovery_point: int = 0,
    is_clean: bool = True,
) -> PartitionLog:
    """Open a log as if its checkpoints said what the arguments say."""
    folder.mkdir(exist_ok=True)
    return PartitionLog.open(
        str(folder),
        OF,
        settings or LogSettings(),
        home=home(disk),
        log_start=log_start,
        recovery_point=recovery_point,
        is_clean=is_clean,
    )


def bytes_of(found: LogSlice | None) -> bytes:
    """Read what a slice points at; nothing for no slice."""
    if found is None:
        return b""
    region = found.region
    return os.pread(region.file.fileno(), region.length, region.position)


def read_all(log: PartitionLog) -> bytes:
    """Read every batch from the log's start to its end, as a consumer would ask for them."""
    parts: list[bytes] = []
    offset = int(log.start)
    while offset < log.end:
        content = bytes_of(log.read(offset, max_bytes=1 << 30, up_to=log.end, at_least_one=True))
        if not content:
            break
        parts.append(content)
        offset = next_offset_after(content)
    return b"".join(parts)


def next_offset_after(content: bytes) -> int:
    """Give the offset after the last batch of a buffer of whole batches."""
    return list(iter_headers(content))[-1][1].next_offset
