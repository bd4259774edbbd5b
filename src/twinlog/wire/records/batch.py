"""Record batches of format v2: the 61-byte header is read in place, records are not touched.

Layout: base offset (8), length of what follows (4), leader epoch (4), magic (1), CRC-32C (4), then
what the CRC covers: attributes (2), last offset delta (4), base and max timestamp (8 + 8), producer
id (8), producer epoch (2), base sequence (4), record count (4), records. Base offset and leader
epoch lie outside the CRC, so a leader can set them without reading the records.
"""

from collections.abc import Callable, Iterator
from functools import partial
from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from twinlog.model.errors import CorruptBatchError
from twinlog.wire.primitives import Buffer

HEADER: Final = Struct(">qiibIhiqqqhii")
HEADER_BYTES: Final = HEADER.size
PREFIX_BYTES: Final = 12  # base offset and length: what stands before the counted bytes
CRC_POSITION: Final = 17
ATTRIBUTES_POSITION: Final = 21  # the first byte under the CRC
BATCH_BYTES_MAX: Final = 0x7FFF_FFFF
MAGIC: Final = 2

COMPRESSION_MASK: Final = 0x07
LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40

NO_SEQUENCE: Final = -1
NO_TIMESTAMP: Final = -1

_INT64: Final = Struct(">q")
_INT32: Final = Struct(">i")
_CRC: Final = Struct(">I")
_ATTRIBUTES: Final = Struct(">h")
_EPOCH_POSITION: Final = 12
_MAX_TIMESTAMP_POSITION: Final = 35


class BatchHeader(NamedTuple):
    """The header of one batch, in the order of its bytes."""

    base_offset: int
    body_length: int
    """Bytes after the first twelve: the length as the wire has it."""
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    """In milliseconds; the delete horizon instead where ``has_delete_horizon``."""
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def length(self) -> int:
        """Bytes of the whole batch."""
        return self.body_length + PREFIX_BYTES

    @property
    def last_offset(self) -> int:
        """Offset of the last record (also of one that compaction took away)."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Offset of the first record after this batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; sequences go on at 0 after 2^31 - 1."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & 0x7FFF_FFFF

    @property
    def compression(self) -> int:
        """Number of the compression of the records; 0 is none."""
        return self.attributes & COMPRESSION_MASK

    @property
    def is_log_append_time(self) -> bool:
        """Whether every record's timestamp is ``max_timestamp``, set by the leader."""
        return self.attributes & LOG_APPEND_TIME_BIT != 0

    @property
    def is_transactional(self) -> bool:
        """Whether the records belong to a transaction (or the marker ends one)."""
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        """Whether this is a marker for brokers, not for consumers."""
        return self.attributes & CONTROL_BIT != 0

    @property
    def has_delete_horizon(self) -> bool:
        """Whether ``base_timestamp`` says when tombstones of this batch may go."""
        return self.attributes & DELETE_HORIZON_BIT != 0

    @property
    def has_producer_id(self) -> bool:
        """Whether an idempotent producer or a coordinator wrote this."""
        return self.producer_id >= 0


# BatchHeader._make does the same in twice the time, and this runs for every batch.
unpacked_header: Final[Callable[[tuple[int, ...]], BatchHeader]] = partial(
    tuple.__new__, BatchHeader
)


def read_header(buffer: Buffer, position: int) -> BatchHeader:
    """Read the header of the batch at ``position``; the batch itself may be longer than buffer.

    Raises CorruptBatchError when no batch of format v2 can begin like this.
    """
    if position + HEADER_BYTES > len(buffer):
        raise CorruptBatchError(-1, f"a header needs {HEADER_BYTES} bytes after byte {position}")
    header = unpacked_header(HEADER.unpack_from(buffer, position))
    if (
        header.magic != MAGIC
        or header.body_length < HEADER_BYTES - PREFIX_BYTES
        or header.last_offset_delta < 0
        or header.base_offset < 0
        or header.record_count < 0
    ):
        raise CorruptBatchError(header.base_offset, f"{_fault(header)} (at byte {position})")
    return header


def _fault(header: BatchHeader) -> str:
    """Say what is wrong with a header, the first fault in the order of its bytes."""
    if header.base_offset < 0:
        return f"base offset {header.base_offset} is negative"
    if header.magic != MAGIC:
        return f"message format v{header.magic} where v{MAGIC} is expected"
    if header.body_length < HEADER_BYTES - PREFIX_BYTES:
        return f"length {header.body_length} is less than a header"
    if header.last_offset_delta < 0:
        return f"last offset delta {header.last_offset_delta} is negative"
    return f"record count {header.record_count} is negative"


def iter_headers(buffer: Buffer, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Give position and header of each whole batch from ``position`` on.

    An incomplete batch at the end is not given; whoever needs to know adds up the lengths. Raises
    CorruptBatchError at the first thing that is no batch.
    """
    end = len(buffer)
    while position + HEADER_BYTES <= end:
        header = read_header(buffer, position)
        after = position + header.body_length + PREFIX_BYTES
        if after > end:
            return
        yield position, header
        position = after


def check_crc(buffer: Buffer, position: int, header: BatchHeader) -> None:
    """Raise CorruptBatchError unless the bytes of the batch have the CRC-32C its header names."""
    end = position + header.length
    if end > len(buffer):
        raise CorruptBatchError(
            header.base_offset, f"{len(buffer) - position} bytes of {header.length} are there"
        )
    found = crc32c(memoryview(buffer)[position + ATTRIBUTES_POSITION : end])
    if found != header.crc:
        raise CorruptBatchError(
            header.base_offset, f"CRC-32C is {found:#010x}, its header says {header.crc:#010x}"
        )


def stamp(
    buffer: bytearray | memoryview, position: int, *, base_offset: int, leader_epoch: int
) -> None:
    """Set in place what lies outside the CRC: where the batch stands, and under which leader."""
    _INT64.pack_into(buffer, position, base_offset)
    _INT32.pack_into(buffer, position + _EPOCH_POSITION, leader_epoch)


def stamp_log_append_time(
    buffer: bytearray | memoryview, position: int, *, timestamp_ms: int
) -> None:
    """Make ``timestamp_ms`` the time of every record of the batch; the CRC follows."""
    body_length, attributes = (
        _INT32.unpack_from(buffer, position + 8)[0],
        _ATTRIBUTES.unpack_from(buffer, position + ATTRIBUTES_POSITION)[0],
    )
    _ATTRIBUTES.pack_into(buffer, position + ATTRIBUTES_POSITION, attributes | LOG_APPEND_TIME_BIT)
    _INT64.pack_into(buffer, position + _MAX_TIMESTAMP_POSITION, timestamp_ms)
    end = position + PREFIX_BYTES + body_length
    covered = memoryview(buffer)[position + ATTRIBUTES_POSITION : end]
    _CRC.pack_into(buffer, position + CRC_POSITION, crc32c(covered))
