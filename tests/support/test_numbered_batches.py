import pytest

from support.numbered_batches import NotOnceError, NumberedBatches, count_in_turn
from twinlog.model.ids import Offset
from twinlog.wire.records.batch import check_crc, read_header, stamp

BATCHES = NumberedBatches([b"a" * 40, b"b" * 40, b"c" * 40])


def at(first: int, offset: int) -> bytes:
    made = BATCHES.batch(first)
    stamp(made, 0, base_offset=offset, leader_epoch=0)
    return bytes(made)


def test_a_batch_is_a_good_one() -> None:
    made = BATCHES.batch(7)
    assert len(made) == BATCHES.batch_bytes
    check_crc(made, 0, read_header(made, 0))


def test_records_in_their_turn_are_counted_and_an_incomplete_batch_is_left() -> None:
    answer = at(3, 10) + at(6, 13) + at(9, 16)[:-1]
    assert count_in_turn(answer, first=3, offset=Offset(10)) == (6, 16)
    assert count_in_turn(answer[:20], first=3, offset=Offset(10)) == (0, 10)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (at(6, 10), "records 6, 7, 8 came where 3"),
        (at(0, 10), "records 0, 1, 2 came where 3"),
        (at(3, 10) + at(3, 13), "records 3, 4, 5 to 5 came where 3"),
        (at(3, 10) + at(9, 13), "records 3, 4, 5 to 11 came where 3"),
        (at(3, 11), "offset 11 follows after 9"),
    ],
    ids=["missing", "again", "twice in one", "missing between", "gap"],
)
def test_a_record_that_is_not_the_next_is_told(answer: bytes, why: str) -> None:
    with pytest.raises(NotOnceError, match=why):
        count_in_turn(answer, first=3, offset=Offset(10))
