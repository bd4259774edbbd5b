"""Walking over fetched batches."""

import pytest

from support.batches import batch as whole_batch
from support.mirror_player import batch
from twinlog.mirroring.batches import HEADER_BYTES, BatchIdentity, identity_of, length_before, walk
from twinlog.model.ids import Offset
from twinlog.wire.records.batch import iter_headers


def test_a_walk_tells_where_whole_batches_lead_and_leaves_a_cut_one_out() -> None:
    whole = batch(10, 14, 3) + batch(20, 29, 4)
    walked = walk(memoryview(whole + batch(30, 39, 4)[:-1]), Offset(10))
    assert (walked.first_offset, walked.last_offset_of_first) == (10, 14)
    assert (walked.next_offset, walked.last_epoch) == (30, 4)
    assert (walked.length, walked.count, walked.problem) == (len(whole), 2, None)


def test_gaps_are_the_sources_business() -> None:
    assert walk(batch(50, 59, 0), Offset(10)).problem is None


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (batch(10, 14, 3, magic=1), "message format v1"),
        (batch(10, 14, 3, magic=0), "message format v0"),
        (batch(10, 14, 3, magic=7), "magic 7"),
        (batch(10, 9, 3), "last offset delta -1"),
        (batch(2, 8, 3), "do not continue the log at 10"),
    ],
)
def test_a_bad_first_batch_is_named_by_offset_and_cause(raw: bytes, problem: str) -> None:
    walked = walk(raw, Offset(10))
    assert walked.count == 0
    assert problem in (walked.problem or "")
    assert walked.problem_offset in (10, 2)


def test_batches_before_a_bad_one_can_be_taken() -> None:
    walked = walk(batch(10, 14, 3) + batch(15, 19, 2), Offset(10))
    assert (walked.count, walked.next_offset) == (1, 15)
    assert "leader epoch 2 is below 3" in (walked.problem or "")


def test_an_old_format_is_told_apart_from_other_problems() -> None:
    assert "older than Kafka 0.11" in (walk(batch(10, 14, 3, magic=1), Offset(10)).problem or "")
    assert "magic 9" in (walk(batch(10, 14, 3, magic=9), Offset(10)).problem or "")


def test_a_batch_too_short_to_be_one_is_a_problem_and_no_endless_walk() -> None:
    raw = bytearray(batch(10, 14, 3))
    raw[8:12] = (3).to_bytes(4, "big")
    assert "too short" in (walk(bytes(raw), Offset(10)).problem or "")


def test_what_lies_before_a_batch_is_found_by_its_offset() -> None:
    first, second = batch(10, 14, 3), batch(20, 29, 4)
    assert length_before(first + second, Offset(20)) == len(first)
    assert length_before(first + second, Offset(10)) == 0
    assert length_before(first + second[:-1], Offset(99)) == len(first)


def identity(raw: bytes) -> BatchIdentity:
    found = identity_of(raw)
    assert found is not None
    return found


def changed(raw: bytes, at: int, new: bytes) -> bytes:
    return raw[:at] + new + raw[at + len(new) :]


def test_an_identity_is_what_the_batch_s_header_says() -> None:
    raw = whole_batch(3, base_offset=7, leader_epoch=4, producer=(9, 2, 30))
    ((_, header),) = iter_headers(raw)
    found = identity(raw[:HEADER_BYTES])
    assert (found.base, found.last, found.epoch) == (7, 9, 4)
    assert found.producer == (9, 2, 30)
    assert (found.crc, found.length) == (header.crc, len(raw))
    assert not found.is_cleaned


def test_what_is_no_whole_header_of_this_format_has_no_identity() -> None:
    raw = whole_batch(3)
    assert identity_of(b"") is identity_of(raw[: HEADER_BYTES - 1]) is None
    assert identity_of(changed(raw, 16, b"\x01")) is None, "message format v1"
    assert identity_of(changed(raw, 8, bytes(4))) is None, "a length of 0"


def test_batches_of_the_same_offsets_are_told_apart_by_what_is_in_them() -> None:
    one = whole_batch(3, base_offset=7, producer=(9, 0, 0))
    assert identity(one).is_same_as(identity(one))
    for other in (
        whole_batch(3, base_offset=7, producer=(8, 0, 0)),
        whole_batch(3, base_offset=7, producer=(9, 0, 0), timestamp=5),
        whole_batch(3, base_offset=7, producer=(9, 0, 0), leader_epoch=1),
        whole_batch(3, base_offset=6, producer=(9, 0, 0)),
        whole_batch(4, base_offset=7, producer=(9, 0, 0)),
    ):
        assert not identity(one).is_same_as(identity(other))


@pytest.mark.parametrize(("at", "new"), [(57, b"\0\0\0\2"), (22, b"\x40")])
def test_a_batch_that_one_side_has_cleaned_is_still_the_same(at: int, new: bytes) -> None:
    whole = whole_batch(3, base_offset=7, producer=(9, 0, 0))
    cleaned = changed(changed(whole, at, new), 17, b"\1\2\3\4")
    assert identity(cleaned).is_cleaned
    assert identity(whole).is_same_as(identity(cleaned))
    assert identity(cleaned).is_same_as(identity(whole))
    another = whole_batch(3, base_offset=7, producer=(8, 0, 0))
    assert not identity(cleaned).is_same_as(identity(another))
