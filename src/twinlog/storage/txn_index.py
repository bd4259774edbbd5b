"""The aborted transactions of one segment, as its ``.txnindex`` file holds them."""

from struct import Struct
from typing import Final, NamedTuple

from twinlog.storage.open_files import OpenFiles

ENTRY: Final = Struct(">hqqqq")
_VERSION: Final = 0


class OpenTxn(NamedTuple):
    """A transaction that has begun and not ended; ``coordinator_epoch`` wrote its last marker."""

    producer_id: int
    producer_epoch: int
    first_offset: int
    coordinator_epoch: int


class AbortedTxn(NamedTuple):
    """A transaction whose records a read_committed consumer must skip."""

    producer_id: int
    first_offset: int
    last_offset: int
    """Offset of the abort marker."""
    last_stable_offset: int
    """Last stable offset when the marker was written."""


def append_aborted(files: OpenFiles, path: str, txn: AbortedTxn) -> None:
    """Add one aborted transaction at the end of the file."""
    position = files.disk.size_bytes(path) // ENTRY.size * ENTRY.size
    files.disk.write(files.get(path), ENTRY.pack(_VERSION, *txn), position)


def read_aborted(files: OpenFiles, path: str) -> list[AbortedTxn]:
    """Read all entries, in the order of their markers; none when there is no file."""
    content = files.disk.read_whole(path) or b""
    whole = len(content) // ENTRY.size * ENTRY.size
    return [AbortedTxn(*fields[1:]) for fields in ENTRY.iter_unpack(content[:whole])]


def drop_aborted_from(files: OpenFiles, path: str, end: int) -> None:
    """Drop the entries whose marker lies at or after ``end``."""
    kept = sum(1 for txn in read_aborted(files, path) if txn.last_offset < end)
    files.disk.truncate(files.get(path), kept * ENTRY.size)
