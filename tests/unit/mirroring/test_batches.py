"""Walking over fetched batches."""

import pytest

from support.mirror_player import batch
from twinlog.mirroring.batches import length_before, walk
from twinlog.model.ids import Offset


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
