"""Batch headers are read in place, checked, and stamped without touching records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.batches import batch
from twinlog.model.errors import CorruptBatchError
from twinlog.wire.records.batch import (
    HEADER_BYTES,
    check_crc,
    iter_headers,
    read_header,
    stamp,
    stamp_log_append_time,
)


def test_every_field_of_a_header_is_read() -> None:
    data = batch(
        3,
        base_offset=7,
        leader_epoch=4,
        timestamps=[10, 30, 20],
        producer=(99, 2, 5),
        is_transactional=True,
    )
    header = read_header(data, 0)
    assert HEADER_BYTES == 61
    assert header.length == len(data)
    assert (header.base_offset, header.last_offset, header.next_offset) == (7, 9, 10)
    assert (header.leader_epoch, header.magic, header.record_count) == (4, 2, 3)
    assert (header.base_timestamp, header.max_timestamp) == (10, 30)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (99, 2, 5)
    assert header.last_sequence == 7
    assert header.is_transactional
    assert not header.is_control
    assert not header.is_log_append_time
    assert not header.has_delete_horizon
    assert header.compression == 0
    assert header.has_producer_id


def test_sequences_go_on_at_zero_after_the_largest() -> None:
    header = read_header(batch(3, producer=(1, 0, 0x7FFF_FFFF - 1)), 0)
    assert header.last_sequence == 0
    assert read_header(batch(3), 0).last_sequence == -1


@given(st.lists(st.integers(1, 5), max_size=6), st.data())
def test_iteration_stops_before_an_incomplete_batch(counts: list[int], data: st.DataObject) -> None:
    batches = [batch(count) for count in counts]
    joined = b"".join(batches)
    cut = data.draw(st.integers(0, len(joined)))
    whole = [header.record_count for _, header in iter_headers(memoryview(joined)[:cut])]
    fitting, taken = [], 0
    for count, one in zip(counts, batches, strict=True):
        taken += len(one)
        if taken > cut:
            break
        fitting.append(count)
    assert whole == fitting


def test_a_good_crc_passes_and_any_flipped_bit_under_it_fails() -> None:
    data = batch(2, base_offset=5)
    check_crc(data, 0, read_header(data, 0))
    for at in range(43, len(data)):  # after the fields that read_header itself may refuse
        wrong = bytearray(data)
        wrong[at] ^= 1
        with pytest.raises(CorruptBatchError, match="batch at offset 5: CRC-32C"):
            check_crc(wrong, 0, read_header(wrong[:57] + data[57:], 0))


def test_a_batch_cut_short_has_no_crc_to_check() -> None:
    data = batch(2)
    with pytest.raises(CorruptBatchError, match="bytes of"):
        check_crc(data[:-1], 0, read_header(data, 0))


@pytest.mark.parametrize(
    ("at", "byte", "why"),
    [
        (0, 0xFF, "base offset -"),
        (8, 0xFF, "less than a header"),
        (16, 1, "message format v1"),
        (23, 0xFF, "last offset delta"),
        (57, 0xFF, "record count"),
    ],
)
def test_a_header_that_cannot_be_is_refused_with_the_reason(at: int, byte: int, why: str) -> None:
    data = bytearray(batch(1))
    data[at] = byte
    with pytest.raises(CorruptBatchError, match=why):
        read_header(data, 0)


def test_a_header_needs_all_its_bytes() -> None:
    with pytest.raises(CorruptBatchError, match="61 bytes"):
        read_header(batch(1)[:60], 0)


def test_stamping_moves_a_batch_without_changing_its_crc() -> None:
    data = bytearray(b"--" + batch(2))
    stamp(data, 2, base_offset=1 << 40, leader_epoch=9)
    header = read_header(data, 2)
    assert (header.base_offset, header.leader_epoch, header.length) == (1 << 40, 9, len(data) - 2)
    check_crc(data, 2, header)


def test_log_append_time_replaces_the_timestamp_and_the_crc() -> None:
    data = bytearray(batch(2, is_transactional=True))
    stamp_log_append_time(data, 0, timestamp_ms=77_777)
    header = read_header(data, 0)
    assert header.is_log_append_time
    assert header.is_transactional
    assert header.max_timestamp == 77_777
    check_crc(data, 0, header)
