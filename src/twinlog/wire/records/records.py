"""Records out of a batch: decompressed within a bound, every length checked."""

from dataclasses import dataclass
from typing import Final

from twinlog.model.bounds import BATCH_HEADER_BYTES, DECOMPRESSED_BATCH_BYTES_MAX
from twinlog.model.errors import CorruptBatchError, WireError
from twinlog.model.ids import Offset
from twinlog.wire.primitives import Buffer, decode_varint
from twinlog.wire.records.batch import BatchHeader
from twinlog.wire.records.compression import Compression, decompress

Header = tuple[str, bytes | None]

RECORD_BYTES_MIN: Final = 7
"""Length, attributes, two deltas, two lengths of -1, no headers: a byte each."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record; ``timestamp`` in milliseconds since 1970, -1 when it has none."""

    offset: Offset = Offset(0)
    timestamp: int = -1
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[Header, ...] = ()


def records_of(
    buffer: Buffer,
    position: int,
    header: BatchHeader,
    *,
    max_bytes: int = DECOMPRESSED_BATCH_BYTES_MAX,
) -> list[Record]:
    """Give the records of the batch at ``position`` of ``buffer``, whose header was read before.

    Control batches give their control records. At most ``max_bytes`` are decompressed. Raises
    CorruptBatchError, naming the offset, when the records are not what the header promises; the
    CRC is not looked at (see ``batch.check_crc``).
    """
    start, end = position + BATCH_HEADER_BYTES, position + header.length
    if end > len(buffer):
        raise _corrupt(header, f"{header.length} bytes where {len(buffer) - position} are left")
    try:
        compression = Compression(header.compression)
    except ValueError:
        raise _corrupt(header, f"unknown compression {header.compression}") from None
    payload = memoryview(buffer)[start:end]
    plain = decompress(compression, payload, max_bytes=max_bytes, offset=header.base_offset)
    if not 0 <= header.record_count <= len(plain) // RECORD_BYTES_MIN:
        raise _corrupt(header, f"{header.record_count} records in {len(plain)} bytes")
    return _Reader(plain, header).all()


def _corrupt(header: BatchHeader, why: str) -> CorruptBatchError:
    return CorruptBatchError(header.base_offset, why)


class _Reader:
    """Walks over the plain records of one batch."""

    def __init__(self, plain: Buffer, header: BatchHeader) -> None:
        self._plain = memoryview(plain)
        self._header = header
        self._at = 0

    def all(self) -> list[Record]:
        header = self._header
        records: list[Record] = []
        last = header.base_offset - 1
        for index in range(header.record_count):
            try:
                record = self._record()
            except (IndexError, ValueError, WireError) as error:
                raise _corrupt(header, f"record {index}: {error}") from error
            if not last < record.offset <= header.base_offset + header.last_offset_delta:
                raise _corrupt(header, f"record {index} has offset {record.offset} after {last}")
            last = record.offset
            records.append(record)
        if self._at != len(self._plain):
            rest = len(self._plain) - self._at
            raise _corrupt(header, f"{rest} bytes after record {header.record_count - 1}")
        return records

    def _record(self) -> Record:
        header = self._header
        size = self._varint()
        end = self._at + size
        if size < RECORD_BYTES_MIN - 1 or end > len(self._plain):
            raise ValueError(f"{size} bytes long where {len(self._plain) - self._at} are left")
        self._at += 1  # attributes, of which records have none yet
        timestamp_delta = self._varint()
        offset_delta = self._varint()
        record = Record(
            offset=Offset(header.base_offset + offset_delta),
            timestamp=(
                header.max_timestamp
                if header.is_log_append_time
                else header.base_timestamp + timestamp_delta
            ),
            key=self._bytes(end),
            value=self._bytes(end),
            headers=self._headers(end),
        )
        if self._at != end:
            raise ValueError(f"its fields end at byte {self._at}, its length says {end}")
        return record

    def _headers(self, end: int) -> tuple[Header, ...]:
        count = self._varint()
        if not 0 <= count <= (end - self._at) // 2:
            raise ValueError(f"{count} headers in {end - self._at} bytes")
        return tuple([(self._header_key(end), self._bytes(end)) for _ in range(count)])

    def _header_key(self, end: int) -> str:
        key = self._bytes(end)
        if key is None:
            raise ValueError("a header without a key")
        return key.decode()

    def _bytes(self, end: int) -> bytes | None:
        size = self._varint()
        if size == -1:
            return None
        start = self._at
        if size < 0 or start + size > end:
            raise ValueError(f"a field of {size} bytes where {end - start} are left")
        self._at = start + size
        return bytes(self._plain[start : self._at])

    def _varint(self) -> int:
        byte = self._plain[self._at]
        if byte < 0x80:  # one byte, as nearly always
            self._at += 1
            return (byte >> 1) ^ -(byte & 1)
        value, self._at = decode_varint(self._plain, self._at)
        return value
