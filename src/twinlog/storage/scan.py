"""Walking over the batches of a log file without reading more of it than is asked for."""

from collections.abc import Iterator
from typing import Final

from twinlog.model.errors import CorruptBatchError
from twinlog.storage.disk import Disk, OpenFile
from twinlog.wire.records.batch import (
    HEADER_BYTES,
    PREFIX_BYTES,
    BatchHeader,
    check_crc,
    read_header,
)

HEADER_CHUNK_BYTES: Final = 8_192  # an index interval, and what the page cache gives at one go
BATCH_CHUNK_BYTES: Final = 1 << 20


def scan_headers(
    disk: Disk, file: OpenFile, position: int, end: int
) -> Iterator[tuple[int, BatchHeader]]:
    """Give position and header of each batch that lies wholly between the two positions.

    Raises CorruptBatchError where something else than a batch begins.
    """
    while position + HEADER_BYTES <= end:
        chunk = disk.read(file, min(HEADER_CHUNK_BYTES, end - position), position)
        if len(chunk) < HEADER_BYTES:
            return  # somebody cut the file
        at = 0
        while at + HEADER_BYTES <= len(chunk):
            header = read_header(chunk, at)
            after = at + header.body_length + PREFIX_BYTES
            if position + after > end:
                return
            yield position + at, header
            at = after
        position += at


def scan_checked(
    disk: Disk, file: OpenFile, position: int, end: int
) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Give position, header and bytes of each batch whose CRC is right; stop before a torn one.

    Raises CorruptBatchError at a batch that is whole but wrong.
    """
    while position + HEADER_BYTES <= end:
        chunk = disk.read(file, min(BATCH_CHUNK_BYTES, end - position), position)
        if len(chunk) < HEADER_BYTES:
            return
        length = read_header(chunk, 0).length
        if position + length > end:
            return
        if length > len(chunk):
            chunk = disk.read(file, length, position)
            if len(chunk) < length:
                return
        view = memoryview(chunk)
        at = 0
        while at + HEADER_BYTES <= len(chunk):
            header = read_header(view, at)
            after = at + header.body_length + PREFIX_BYTES
            if after > len(chunk):
                break
            check_crc(view, at, header)
            yield position + at, header, view[at:after]
            at = after
        position += at


def read_batch(disk: Disk, file: OpenFile, position: int, header: BatchHeader) -> bytes:
    """Read one whole batch."""
    content = disk.read(file, header.length, position)
    if len(content) < header.length:
        raise CorruptBatchError(header.base_offset, f"{file.path} ends inside the batch")
    return content
