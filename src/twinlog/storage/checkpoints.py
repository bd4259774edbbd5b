"""Offsets of many partitions in one small file of a log dir, replaced whole."""

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from twinlog.model.ids import Offset, TopicName, TopicPartition
from twinlog.storage.disk import Disk

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
_VERSION: Final = 0


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """Give the content of a checkpoint: version, number of entries, an entry on each line."""
    lines = [str(_VERSION), str(len(offsets))]
    lines.extend(f"{of.topic} {of.partition} {offset}" for of, offset in offsets.items())
    return ("\n".join(lines) + "\n").encode()


def decode_offsets(content: bytes) -> dict[TopicPartition, Offset] | None:
    """Read the content of a checkpoint; None when it is torn or no such file at all."""
    try:
        version, count, *lines = content.decode().splitlines()
        fields = [line.split(" ") for line in lines]
        offsets = {
            TopicPartition(TopicName(topic), int(partition)): Offset(int(offset))
            for topic, partition, offset in fields
        }
        return offsets if int(version) == _VERSION and int(count) == len(lines) else None
    except ValueError:
        return None


def read_checkpoint(disk: Disk, path: str) -> dict[TopicPartition, Offset]:
    """Read a checkpoint file; nothing when it is missing or torn."""
    content = disk.read_whole(path)
    return (decode_offsets(content) if content is not None else None) or {}


class CheckpointFile:
    """A checkpoint that may be written on another thread: the offsets taken in last stay.

    A write waits for the disk twice, and on a busy one that takes tens of milliseconds.
    """

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk: Final = disk
        self._path: Final = path
        self._lock: Final = threading.Lock()
        self._taken_count = 0
        self._written_count = 0
        self._names_lock: Final = threading.Lock()
        self._names: set[TopicPartition] = set()

    def read(self) -> dict[TopicPartition, Offset]:
        """Read the file; nothing when it is missing or torn."""
        offsets = read_checkpoint(self._disk, self._path)
        self._names = set(offsets)
        return offsets

    def may_name(self, of: TopicPartition) -> bool:
        """Whether the file names a partition, or may once the writes under way are through."""
        with self._names_lock:
            return of in self._names

    def begin_write(self, offsets: Mapping[TopicPartition, int]) -> Callable[[], None]:
        """Take the offsets as they are now; give what replaces the file and waits for the disk."""
        with self._names_lock:
            self._taken_count += 1
            self._names.update(offsets)
        return partial(self._write, encode_offsets(offsets), set(offsets), self._taken_count)

    def _write(self, content: bytes, names: set[TopicPartition], count: int) -> None:
        with self._lock:
            if count > self._written_count:
                self._disk.replace(self._path, content, is_synced=True)
                self._written_count = count
        with self._names_lock:
            if count == self._taken_count:
                self._names = names
