"""Compares two brokers' log files byte for byte, and says where they first differ."""

import mmap
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

# Read here and not with twinlog's own reader: what checks the files must not share its faults.
# Base offset, length after this field, leader epoch, magic, CRC, attributes, last offset delta.
_HEADER = struct.Struct(">qiibIhi")
_LENGTH_FROM = 12
_RECORD_COUNT = struct.Struct(">i")
_RECORD_COUNT_AT = 57


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch as it lies in a log file."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    record_count: int
    attributes: int
    content: bytes

    def __str__(self) -> str:
        return (
            f"offsets {self.base_offset}-{self.last_offset} (epoch {self.leader_epoch}, "
            f"{self.record_count} records, {len(self.content)} bytes, "
            f"attributes {self.attributes:#x})"
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two logs have in common, and the first place where they part."""

    equal_batches: int
    equal_bytes: int
    first_difference: str | None


def compare_logs(source: Path, destination: Path, *, start: int, end: int) -> Comparison:
    """Compare two partition folders from a log start to an end offset (exclusive).

    A log start may lie inside a batch; then the batch is compared whole, as a leader sends it.
    """
    equal_batches = equal_bytes = 0
    pairs = zip_longest(
        batches_of(source, start=start, end=end), batches_of(destination, start=start, end=end)
    )
    for ours, theirs in pairs:
        if ours is None or theirs is None or ours.content != theirs.content:
            difference = _difference(ours, theirs)
            return Comparison(equal_batches, equal_bytes, difference)
        equal_batches += 1
        equal_bytes += len(ours.content)
    return Comparison(equal_batches, equal_bytes, None)


def assert_equal_logs(source: Path, destination: Path, *, start: int, end: int) -> Comparison:
    """Fail unless both hold the same batches between those offsets; give what was compared."""
    found = compare_logs(source, destination, start=start, end=end)
    assert found.first_difference is None, (
        f"{source.name} differs after {found.equal_batches} equal batches "
        f"({found.equal_bytes} bytes): {found.first_difference}"
    )
    return found


def batches_of(folder: Path, *, start: int = 0, end: int | None = None) -> Iterator[Batch]:
    """Yield the batches that hold offsets from start up to end (exclusive), in the log's order.

    A cleaner or retention may take a segment away meanwhile; then the reading goes on in the file
    that replaced it, behind what was already given.
    """
    given = start
    for attempt in range(20):
        # Only up to where the reading begins: a batch repeated further on must be seen.
        is_before = True
        try:
            for path in segments_of(folder, given):
                for batch in batches_in(path):
                    if end is not None and batch.base_offset >= end:
                        return
                    if is_before and batch.last_offset < given:
                        continue
                    is_before = False
                    given = batch.last_offset + 1
                    yield batch
        except FileNotFoundError:
            if attempt == 19:
                raise
            time.sleep(0.1)
        else:
            return


def segments_of(folder: Path, offset: int = 0) -> list[Path]:
    """Give the log files that can hold that offset or a later one, oldest first."""
    paths = sorted(folder.glob("*.log"))
    bases = [int(path.stem) for path in paths]
    first = max((index for index, base in enumerate(bases) if base <= offset), default=0)
    return paths[first:]


def batches_in(path: Path) -> Iterator[Batch]:
    """Yield the whole batches of one file; a torn tail, still being written, ends it."""
    with path.open("rb") as file:
        size = path.stat().st_size
        if size == 0:
            return
        with mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ) as content:
            position = 0
            while position + _HEADER.size <= size:
                base, length, epoch, magic, _, attributes, delta = _HEADER.unpack_from(
                    content, position
                )
                whole = _LENGTH_FROM + length
                if length <= 0 or position + whole > size:
                    return
                assert magic == 2, f"{path.name} at byte {position}: magic {magic}, expected 2"
                (count,) = _RECORD_COUNT.unpack_from(content, position + _RECORD_COUNT_AT)
                yield Batch(
                    base,
                    base + delta,
                    epoch,
                    count,
                    attributes,
                    content[position : position + whole],
                )
                position += whole


def _difference(source: Batch | None, destination: Batch | None) -> str:
    if source is None:
        return f"the source has no further batch, the destination has {destination}"
    if destination is None:
        return f"the destination has no further batch, the source has {source}"
    pairs = enumerate(zip(source.content, destination.content, strict=False))
    shorter = min(len(source.content), len(destination.content))
    at = next((index for index, (a, b) in pairs if a != b), shorter)
    return (
        f"the source has {source}, the destination has {destination}; "
        f"first different byte at {at} of the batch: source {source.content[at : at + 16].hex()}, "
        f"destination {destination.content[at : at + 16].hex()}"
    )
