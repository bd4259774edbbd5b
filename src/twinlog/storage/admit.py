"""Checks copies of another log's batches before the first byte of them is written."""

from dataclasses import dataclass, field
from typing import Final

from crc32c import crc32c

from twinlog.model.errors import CorruptBatchError
from twinlog.storage.markers import Marker, marker_of
from twinlog.wire.records.batch import (
    ATTRIBUTES_POSITION,
    CONTROL_BIT,
    HEADER,
    HEADER_BYTES,
    MAGIC,
    PREFIX_BYTES,
    BatchHeader,
    check_crc,
    read_header,
)

NO_EPOCH_BOUND: Final = 0x7FFF_FFFF


@dataclass(slots=True)
class Admitted:
    """Batches that may be written as they are, and what was learnt while checking them."""

    content: memoryview
    batches: list[tuple[int, BatchHeader]] = field(default_factory=list)
    """Position in ``content`` and header of each batch."""
    epoch_starts: list[tuple[int, int]] = field(default_factory=list)
    """(leader epoch, offset of the first batch that has it), whenever it changes."""
    markers: dict[int, Marker | None] = field(default_factory=dict)
    """What each control batch says, by its base offset."""


def admit_copies(
    content: memoryview, *, end: int, is_empty: bool, leader_epoch_max: int = NO_EPOCH_BOUND
) -> Admitted:
    """Check batches that another log gave us, to go on at offset ``end`` exactly as they are.

    What is checked: format, length, CRC, and that offsets rise from the log's end on; gaps are
    allowed, since compaction makes them. The first batch of an empty log may begin below ``end``:
    a log's start can lie inside a batch. An incomplete batch at the end is left out. Raises
    CorruptBatchError.
    """
    unpack, make, control = HEADER.unpack_from, tuple.__new__, CONTROL_BIT
    admitted = Admitted(content)
    batches = admitted.batches
    position, total, epoch, due = 0, len(content), -1, end
    while position + HEADER_BYTES <= total:
        fields = unpack(content, position)
        base, body_length, batch_epoch, magic, crc, attributes, delta, *_ = fields
        after = position + body_length + PREFIX_BYTES
        if magic != MAGIC or after > total or base < due or delta < 0:
            header = read_header(content, position)
            if after > total:
                break
            if not (is_empty and not batches and header.last_offset >= end):
                raise _out_of_order(header, due)
        if body_length < HEADER_BYTES - PREFIX_BYTES or (
            crc32c(content[position + ATTRIBUTES_POSITION : after]) != crc
        ):
            check_crc(content, position, read_header(content, position))
        if batch_epoch != epoch:
            if batch_epoch > leader_epoch_max:
                raise CorruptBatchError(
                    base, f"leader epoch {batch_epoch} is above {leader_epoch_max}"
                )
            epoch = batch_epoch
            admitted.epoch_starts.append((batch_epoch, base))
        if attributes & control:
            admitted.markers[base] = marker_of(content, position, read_header(content, position))
        # BatchHeader._make does the same in twice the time, and this runs for every batch.
        batches.append((position, make(BatchHeader, fields)))
        due = base + delta + 1
        position = after
    admitted.content = content[:position]
    return admitted


def _out_of_order(header: BatchHeader, due: int) -> CorruptBatchError:
    return CorruptBatchError(
        header.base_offset,
        f"offsets {header.base_offset} to {header.last_offset} where {due} or above is due",
    )
