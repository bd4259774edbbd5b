"""Offsets of many partitions in one small file of a log dir, replaced whole."""

from collections.abc import Mapping
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


def write_checkpoint(disk: Disk, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace a checkpoint file, and wait until it has reached the disk."""
    disk.replace(path, encode_offsets(offsets), is_synced=True)
