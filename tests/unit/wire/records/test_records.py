"""Reading records: what a batch promises and does not hold is refused, with its offset."""

import struct
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.batches import batch, varint
from twinlog.model.errors import CorruptBatchError
from twinlog.model.ids import Offset
from twinlog.wire.records.batch import HEADER, read_header, stamp_log_append_time
from twinlog.wire.records.build import build_batch, records_of_pairs
from twinlog.wire.records.compression import Compression
from twinlog.wire.records.records import Record, records_of

PAIR = b"\0" + varint(0) + varint(0) + varint(1) + b"k" + varint(1) + b"v"


def batch_with(body: bytes, *, count: int = 1, last_delta: int = 0, attributes: int = 0) -> bytes:
    """Give a batch at offset 10 whose records are ``body``; its CRC is not right."""
    fields = (10, 49 + len(body), 0, 2, 0, attributes, last_delta, 5, 5, -1, -1, -1, count)
    return HEADER.pack(*fields) + body


def framed(record: bytes) -> bytes:
    return varint(len(record)) + record


def read(whole: bytes) -> list[Record]:
    return records_of(whole, 0, read_header(whole, 0))


def test_a_batch_may_stand_anywhere_in_a_buffer() -> None:
    first, second = batch(3), batch([(b"a", None)], base_offset=3, timestamp=9)
    whole = memoryview(first + second)
    header = read_header(whole, len(first))
    assert records_of(whole, len(first), header) == [Record(Offset(3), 9, b"a", None)]


def test_gaps_stay_gaps() -> None:
    found = read(batch(3, offset_deltas=[0, 4, 9], base_offset=100, last_offset_delta=12))
    assert [record.offset for record in found] == [100, 104, 109]


def test_a_batch_emptied_by_compaction_has_no_records() -> None:
    assert read(batch_with(b"", count=0, last_delta=4)) == []


def test_log_append_time_is_the_time_of_every_record() -> None:
    whole = bytearray(build_batch(records_of_pairs([(None, b"1"), (None, b"2")], timestamp_ms=4)))
    stamp_log_append_time(whole, 0, timestamp_ms=77)
    assert [record.timestamp for record in read(bytes(whole))] == [77, 77]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (framed(PAIR), "record 0: index out of bounds"),
        (framed(PAIR + varint(0) + b"!"), "its fields end at byte 9, its length says 10"),
        (framed(PAIR + varint(0)) + b"rest", "4 bytes after record 0"),
        (varint(90) + PAIR + varint(0), "90 bytes long where 8 are left"),
        (varint(-1) + PAIR + varint(0), "-1 bytes long"),
        (framed(PAIR + varint(-1)), "-1 headers"),
        (framed(PAIR + varint(7) + b"\0\0\0"), "7 headers in 3 bytes"),
        (framed(PAIR + varint(1) + varint(-1) + varint(-1)), "a header without a key"),
        (framed(PAIR + varint(1) + varint(1) + b"\xff" + varint(-1)), "utf-8"),
        (framed(b"\0\0\0" + varint(-2) + b"kkkk"), "a field of -2 bytes"),
        (framed(b"\0\0\0" + varint(40) + b"kkkk"), "a field of 40 bytes where"),
        (b"\xff" * 12, "varint longer than 10 bytes"),
        (framed(b"\0" + varint(0) + varint(1) + PAIR[3:] + varint(0)), "has offset 11 after 9"),
        (framed(b"\0" + varint(0) + varint(-1) + PAIR[3:] + varint(0)), "has offset 9 after 9"),
    ],
    ids=range(14),
)
def test_a_record_that_does_not_fit_is_named_with_its_fault(body: bytes, why: str) -> None:
    with pytest.raises(CorruptBatchError) as caught:
        read(batch_with(body))
    assert caught.value.offset == 10
    assert why in caught.value.why


def test_a_count_that_cannot_be_is_refused_before_anything_is_read() -> None:
    with pytest.raises(CorruptBatchError, match="1000000 records in 9 bytes"):
        read(batch_with(framed(PAIR + varint(0)), count=1_000_000))


def test_a_batch_that_is_not_all_there_is_refused() -> None:
    whole = batch(2)
    with pytest.raises(CorruptBatchError, match="are left"):
        records_of(whole[:-1], 0, read_header(whole, 0))


def test_an_unknown_codec_is_refused() -> None:
    with pytest.raises(CorruptBatchError, match="unknown compression 6"):
        read(batch_with(b"", count=0, attributes=6))


def test_a_bomb_names_the_batch() -> None:
    whole = build_batch([Record(Offset(0), 0, None, bytes(1 << 20))], compression=Compression.LZ4)
    with pytest.raises(CorruptBatchError, match="offset 0: lz4 data: more than 1000 bytes"):
        records_of(whole, 0, read_header(whole, 0), max_bytes=1_000)


@given(at=st.integers(61, 200), value=st.integers(0, 255))
def test_a_damaged_batch_gives_records_or_corrupt_batch(at: int, value: int) -> None:
    whole = bytearray(
        build_batch(
            [
                replace(r, headers=(("h", b"x"),))
                for r in records_of_pairs([(b"key", b"value" * 5)] * 4, timestamp_ms=3)
            ]
        )
    )
    struct.pack_into("B", whole, min(at, len(whole) - 1), value)
    with suppress(CorruptBatchError):
        assert len(read(bytes(whole))) == 4
