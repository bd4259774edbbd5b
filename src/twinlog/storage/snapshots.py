"""The ``.snapshot`` files of a log: its producers as they were at one offset, in Kafka's format.

Version (2), CRC-32C of what follows (4), number of producers (4), and 46 bytes for each.
"""

from collections.abc import Iterable
from struct import Struct
from typing import Final

from crc32c import crc32c

from twinlog.storage.disk import Disk
from twinlog.storage.producers import BatchSpan, Producer

_HEAD: Final = Struct(">hI")
_COUNT: Final = Struct(">i")
_ENTRY: Final = Struct(">qhiqiqiq")
_VERSION: Final = 1
SUFFIX: Final = ".snapshot"


def encode_snapshot(producers: Iterable[Producer]) -> bytes:
    """Give the content of a snapshot file."""
    entries = [
        _ENTRY.pack(
            one.producer_id,
            one.epoch,
            one.last_sequence,
            one.last_offset,
            one.spans[-1].offset_delta if one.spans else 0,
            one.last_timestamp,
            one.coordinator_epoch,
            one.txn_first_offset,
        )
        for one in producers
    ]
    body = _COUNT.pack(len(entries)) + b"".join(entries)
    return _HEAD.pack(_VERSION, crc32c(body)) + body


def decode_snapshot(content: bytes) -> list[Producer] | None:
    """Read the content of a snapshot file; None when it is torn, wrong or of another version."""
    if len(content) < _HEAD.size + _COUNT.size:
        return None
    version, crc = _HEAD.unpack_from(content)
    (count,) = _COUNT.unpack_from(content, _HEAD.size)
    entries = content[_HEAD.size + _COUNT.size :]
    if version != _VERSION or len(entries) != count * _ENTRY.size:
        return None
    if crc32c(content[_HEAD.size :]) != crc:
        return None
    return [_producer(*fields) for fields in _ENTRY.iter_unpack(entries)]


def _producer(  # noqa: PLR0913 - the fields of an entry, in their order
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    txn_first_offset: int,
) -> Producer:
    producer = Producer(producer_id, epoch)
    producer.last_timestamp = timestamp
    producer.coordinator_epoch = coordinator_epoch
    producer.txn_first_offset = txn_first_offset
    if last_offset >= 0:
        producer.spans.append(BatchSpan(last_sequence, last_offset, offset_delta, timestamp))
    return producer


class Snapshots:
    """The snapshot files in the folder of one log, by the offset they were taken at."""

    __slots__ = ("_disk", "_folder", "offsets")

    def __init__(self, disk: Disk, folder: str, offsets: Iterable[int] = ()) -> None:
        self._disk = disk
        self._folder = folder
        self.offsets = sorted(offsets)

    def take(self, offset: int, producers: Iterable[Producer]) -> None:
        """Write what is known when the log ends at ``offset``."""
        self._disk.replace(self._path(offset), encode_snapshot(producers), is_synced=False)
        if offset not in self.offsets:
            self.offsets = sorted([*self.offsets, offset])

    def latest(self, *, at_most: int) -> tuple[int, list[Producer]] | None:
        """Read the newest good snapshot up to that offset; bad ones are removed."""
        for offset in [one for one in reversed(self.offsets) if one <= at_most]:
            producers = decode_snapshot(self._disk.read_whole(self._path(offset)) or b"")
            if producers is not None:
                return offset, producers
            self._remove(offset)
        return None

    def drop_above(self, offset: int) -> None:
        """Remove the snapshots that know of more than the log has."""
        for one in [one for one in self.offsets if one > offset]:
            self._remove(one)

    def drop_below(self, offset: int) -> None:
        """Remove the snapshots of segments that are gone."""
        for one in [one for one in self.offsets if one < offset]:
            self._remove(one)

    def keep_only(self, bases: Iterable[int]) -> None:
        """Remove the snapshots that belong to no segment, except one above all of them."""
        bases = set(bases)
        newest = self.offsets[-1:]
        for one in [one for one in self.offsets if one not in bases and one not in newest]:
            self._remove(one)

    def _remove(self, offset: int) -> None:
        self._disk.remove(self._path(offset))
        self.offsets.remove(offset)

    def _path(self, offset: int) -> str:
        return f"{self._folder}/{offset:020d}{SUFFIX}"
