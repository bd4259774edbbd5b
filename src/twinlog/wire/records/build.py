"""Record batches (magic 2) out of records."""

import struct
from collections.abc import Iterable, Sequence
from typing import Final

import crc32c

from twinlog.model.ids import NO_EPOCH, NO_PRODUCER_ID, LeaderEpoch, Offset, ProducerId
from twinlog.wire.primitives import encode_varint
from twinlog.wire.records.batch import (
    CONTROL_BIT,
    MAGIC,
    NO_SEQUENCE,
    PREFIX_BYTES,
    TRANSACTIONAL_BIT,
)
from twinlog.wire.records.compression import Compression, compress
from twinlog.wire.records.records import Record

# base offset, length, leader epoch, magic, CRC; then what the CRC covers: attributes, last
# offset delta, base and maximal timestamp, producer id, its epoch, base sequence, record count.
_BEFORE_CRC: Final = struct.Struct(">qiibI")
_AFTER_CRC: Final = struct.Struct(">hiqqqhii")
_ATTRIBUTES: Final = b"\x00"
_NULL: Final = encode_varint(-1)


def build_batch(  # noqa: PLR0913 - each is a field of the header
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    compression: Compression = Compression.NONE,
    leader_epoch: LeaderEpoch = NO_EPOCH,
    producer_id: ProducerId = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
) -> bytes:
    """Give one batch that holds ``records``; their offsets rise and begin at ``base_offset``.

    Offsets may have gaps, as in a compacted log. At least one record is needed.
    """
    listed = list(records)
    assert listed, "a batch has at least one record"
    base_timestamp = listed[0].timestamp
    body = b"".join(_encode_all(listed, base_offset, base_timestamp))
    payload = compress(compression, body)
    attributes = int(compression)
    attributes |= TRANSACTIONAL_BIT if is_transactional else 0
    attributes |= CONTROL_BIT if is_control else 0
    head = _AFTER_CRC.pack(
        attributes,
        listed[-1].offset - base_offset,
        base_timestamp,
        max(record.timestamp for record in listed),
        producer_id,
        producer_epoch,
        base_sequence,
        len(listed),
    )
    crc = crc32c.crc32c(payload, crc32c.crc32c(head))
    length = _BEFORE_CRC.size + len(head) + len(payload) - PREFIX_BYTES
    return b"".join(
        (_BEFORE_CRC.pack(base_offset, length, leader_epoch, MAGIC, crc), head, payload)
    )


def records_of_pairs(
    pairs: Sequence[tuple[bytes | None, bytes | None]],
    *,
    timestamp_ms: int,
    base_offset: int = 0,
) -> list[Record]:
    """Give a record for each (key, value), numbered from ``base_offset``, all of one time."""
    return [
        Record(offset=Offset(base_offset + index), timestamp=timestamp_ms, key=key, value=value)
        for index, (key, value) in enumerate(pairs)
    ]


def _encode_all(records: list[Record], base_offset: int, base_timestamp: int) -> list[bytes]:
    parts: list[bytes] = []
    last = base_offset - 1
    for record in records:
        assert record.offset > last, f"offset {record.offset} after {last}"
        last = record.offset
        body = _encode(record, base_offset, base_timestamp)
        parts += (encode_varint(len(body)), body)
    return parts


def _encode(record: Record, base_offset: int, base_timestamp: int) -> bytes:
    parts = [
        _ATTRIBUTES,
        encode_varint(record.timestamp - base_timestamp),
        encode_varint(record.offset - base_offset),
    ]
    _add(parts, record.key)
    _add(parts, record.value)
    parts.append(encode_varint(len(record.headers)))
    for key, value in record.headers:
        _add(parts, key.encode())
        _add(parts, value)
    return b"".join(parts)


def _add(parts: list[bytes], field: bytes | None) -> None:
    """Add a field after its length; null is the length -1."""
    if field is None:
        parts.append(_NULL)
    else:
        parts += (encode_varint(len(field)), field)
