"""Copies of another log's batches are checked whole before anything is written."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.batches import batch, marker, pid_reset
from twinlog.model.errors import CorruptBatchError
from twinlog.storage.admit import Admitted, admit_copies
from twinlog.wire.records.control import ControlType


def admit(content: bytes, end: int = 0, *, starts_empty: bool = False) -> Admitted:
    return admit_copies(memoryview(content), end=end, is_empty=starts_empty)


def test_whole_batches_are_taken_and_an_incomplete_one_is_left() -> None:
    first, second = batch(2, base_offset=5), batch(1, base_offset=9)
    for cut in range(len(second)):
        admitted = admit(first + second[:cut], end=5)
        assert [at for at, _ in admitted.batches] == [0]
        assert admitted.content == first
    assert admit(b"").batches == []


def test_gaps_are_allowed_and_steps_back_are_not() -> None:
    assert len(admit(batch(1) + batch(1, base_offset=100)).batches) == 2
    with pytest.raises(CorruptBatchError, match="offsets 1 to 2 where 2 or above is due"):
        admit(batch(2) + batch(2, base_offset=1))
    with pytest.raises(CorruptBatchError, match="where 7 or above"):
        admit(batch(1, base_offset=6), end=7)


def test_only_an_empty_log_takes_a_batch_that_begins_below_its_end() -> None:
    content = batch(5, base_offset=5)
    assert admit(content, end=7, starts_empty=True).batches[0][1].base_offset == 5
    with pytest.raises(CorruptBatchError):
        admit(content, end=7)
    with pytest.raises(CorruptBatchError):
        admit(content, end=10, starts_empty=True)


@given(at=st.integers(0, 67), bit=st.integers(0, 7))
def test_no_flipped_bit_gets_in(at: int, bit: int) -> None:
    good = batch(1, base_offset=3, leader_epoch=2)
    wrong = bytearray(good)
    wrong[at] ^= 1 << bit
    if 12 <= at < 16 or at < 8:
        return  # epoch and base offset are outside the CRC: the checks below are theirs
    admitted = None
    with suppress(CorruptBatchError):
        admitted = admit(bytes(wrong) + batch(1, base_offset=4), end=3)
    if admitted is not None:
        assert 8 <= at < 12
        assert admitted.batches == [], "a longer length makes it look incomplete"


def test_epochs_are_noted_where_they_change_and_bounded() -> None:
    content = b"".join(
        batch(1, base_offset=at, leader_epoch=epoch) for at, epoch in enumerate([0, 0, 2, 3])
    )
    assert admit(content).epoch_starts == [(0, 0), (2, 2), (3, 3)]
    with pytest.raises(CorruptBatchError, match="leader epoch 3 is above 2"):
        admit_copies(memoryview(content), end=0, is_empty=True, leader_epoch_max=2)


def test_markers_are_read_and_one_without_a_record_is_nothing() -> None:
    content = marker(1, base_offset=0, coordinator_epoch=4) + pid_reset(base_offset=1)
    found = admit(content).markers
    assert found[0] is not None
    assert (found[0].type, found[0].coordinator_epoch) == (ControlType.COMMIT, 4)
    assert found[1] is not None
    assert found[1].type == ControlType.MIRROR_PID_RESET
    cleaned = batch([], last_offset_delta=0, is_control=True, producer=(1, 0, -1))
    assert admit(cleaned).markers == {0: None}
    with pytest.raises(CorruptBatchError):
        admit(batch([(b"", b"")], is_control=True))
