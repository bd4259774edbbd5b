"""Two logs are compared the same, however their batches were cut into pieces on the way."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from support.batches import batch
from twinlog.cli.batch_comparison import (
    DIFFERENCES_KEPT_MAX,
    Comparison,
    Mark,
    Side,
    difference_of,
    piece_of,
)
from twinlog.wire.records.batch import read_header, stamp

LOG_BATCHES_MAX = 12


def log_of(*counts: int, leader_epoch: int = 0) -> list[bytes]:
    """Give batches of so many records each, one behind the other."""
    made, offset = [], 0
    for count in counts:
        made.append(batch(count, base_offset=offset, leader_epoch=leader_epoch))
        offset += count
    return made


def compared(
    source: Sequence[Sequence[bytes]],
    destination: Sequence[Sequence[bytes]],
    end: int,
    start: int = 0,
) -> Comparison:
    """Compare two logs that arrive in those pieces."""
    found = Comparison(start, end)
    waiting = {Side.SOURCE: list(source), Side.DESTINATION: list(destination)}
    positions = dict.fromkeys(Side, start)
    while not found.is_over:
        for side in Side:
            if not found.wants(side):
                continue
            if positions[side] >= end or not waiting[side]:
                found.finish(side)
                continue
            piece = piece_of(b"".join(waiting[side].pop(0)), positions[side], end)
            positions[side] = piece.next_offset
            found.take(side, piece.marks)
            if piece.fault:
                found.give_up(side, piece.next_offset, piece.fault)
    return found


@st.composite
def pieces(draw: st.DrawFn, log: list[bytes]) -> list[list[bytes]]:
    """Cut a log between any of its batches."""
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(log) - 1)), max_size=len(log))))
    edges = [0, *(cut for cut in cuts if cut < len(log)), len(log)]
    return [log[a:b] for a, b in pairwise(edges) if b > a]


COUNTS = st.lists(st.integers(1, 5), min_size=1, max_size=LOG_BATCHES_MAX)


@given(st.data(), COUNTS)
def test_equal_logs_are_equal_however_they_are_cut(data: st.DataObject, counts: list[int]) -> None:
    log = log_of(*counts)
    source, destination = data.draw(pieces(log)), data.draw(pieces(log))
    found = compared(source, destination, sum(counts))
    assert found.differences == []
    assert found.equal_up_to == sum(counts)
    assert (found.batch_count, found.byte_count) == (len(log), sum(map(len, log)))


@given(st.data(), COUNTS)
def test_a_flipped_bit_is_found_in_its_batch_on_either_side(
    data: st.DataObject, counts: list[int]
) -> None:
    log = log_of(*counts)
    index = data.draw(st.integers(0, len(log) - 1))
    # What stands before the epoch is the offset and the length: those are tested by themselves.
    at = data.draw(st.integers(12, len(log[index]) - 1))
    spoilt = bytearray(log[index])
    spoilt[at] ^= 1
    twin = [*log[:index], bytes(spoilt), *log[index + 1 :]]
    sides = data.draw(st.permutations([log, twin]))
    found = compared(data.draw(pieces(sides[0])), data.draw(pieces(sides[1])), sum(counts))
    base_offset = read_header(log[index], 0).base_offset
    assert found.differences
    assert found.equal_up_to == found.differences[0].offset == base_offset


@given(st.data(), COUNTS.filter(lambda counts: len(counts) > 1))
def test_a_batch_that_one_side_lacks_is_missing_or_extra(
    data: st.DataObject, counts: list[int]
) -> None:
    log = log_of(*counts)
    index = data.draw(st.integers(0, len(log) - 1))
    without = log[:index] + log[index + 1 :]
    offset = read_header(log[index], 0).base_offset
    for source, destination, what in ((log, without, "missing"), (without, log, "extra")):
        found = compared(data.draw(pieces(source)), data.draw(pieces(destination)), sum(counts))
        (difference,) = found.differences
        assert (difference.offset, difference.what) == (offset, (what,))
        assert found.equal_up_to == offset
        assert found.batch_count == len(log) - 1


def test_only_one_piece_of_each_side_waits() -> None:
    log = log_of(1, 1, 1, 1)
    found = Comparison(0, 4)
    found.take(Side.SOURCE, piece_of(b"".join(log[:3]), 0, 4).marks)
    assert not found.wants(Side.SOURCE)
    assert found.wants(Side.DESTINATION)
    found.take(Side.DESTINATION, piece_of(log[0], 0, 4).marks)
    assert not found.wants(Side.SOURCE)
    assert found.equal_up_to == 1


def test_an_epoch_outside_the_crc_is_compared() -> None:
    source, destination = log_of(2, 2), log_of(2, 2)
    other = bytearray(destination[1])
    stamp(other, 0, base_offset=2, leader_epoch=7)
    (difference,) = compared([source], [[destination[0], bytes(other)]], 4).differences
    assert (difference.offset, difference.what) == (2, ("epoch",))
    assert str(difference).startswith("at offset 2: epoch (source has 2-3 epoch 0 CRC 0x")
    told = difference.as_json()
    assert (told["source"]["leaderEpoch"], told["destination"]["leaderEpoch"]) == (0, 7)


def test_batches_cut_otherwise_differ_where_they_begin_and_end() -> None:
    found = compared([log_of(2, 3, 1)], [log_of(3, 2, 1)], 6)
    assert [(d.offset, d.what[:2]) for d in found.differences] == [
        (0, ("last offset", "CRC")),
        (0, ("base offset", "last offset")),
        (2, ("base offset", "CRC")),
    ]
    assert found.batch_count == 1


def test_what_begins_before_and_ends_after_the_compared_offsets_is_left_out() -> None:
    log = log_of(2, 2, 2)
    found = compared([log], [log], 4, start=3)
    assert (found.batch_count, found.equal_up_to) == (1, 4)


def test_bytes_that_are_no_batch_end_the_comparison_there() -> None:
    log = log_of(2, 2, 2)
    spoilt = bytearray(log[1])
    spoilt[16] = 9  # the magic
    found = compared([log], [[log[0], bytes(spoilt), log[2]]], 6)
    assert found.is_over
    assert found.equal_up_to == 2
    (difference,) = found.differences
    assert difference.what == ("unreadable at the destination",)
    assert "message format v9" in str(difference)


def test_a_length_beyond_what_came_is_no_batch() -> None:
    spoilt = bytearray(log_of(2)[0])
    spoilt[8] = 1
    piece = piece_of(bytes(spoilt), 0, 2)
    assert piece.fault == f"{len(spoilt)} bytes are there, but no whole batch"


def test_an_incomplete_batch_behind_whole_ones_is_read_again_later() -> None:
    log = log_of(2, 2)
    piece = piece_of(log[0] + log[1][:70], 0, 4)
    assert (piece.next_offset, piece.fault, len(piece.marks)) == (2, None, 1)


def test_what_was_deleted_meanwhile_is_skipped_on_both_sides() -> None:
    log = log_of(1, 1, 1, 1)
    found = Comparison(0, 4)
    found.take(Side.SOURCE, piece_of(b"".join(log[:2]), 0, 4).marks)
    found.take(Side.DESTINATION, piece_of(log[0], 0, 4).marks)
    found.skip_to(3)
    assert found.skipped == [(1, 3)]
    for side in Side:
        assert found.wants(side)
        found.take(side, piece_of(log[3], 3, 4).marks)
        found.finish(side)
    assert (found.is_over, found.equal_up_to, found.differences) == (True, 4, [])


def test_differences_beyond_a_bound_are_counted_only() -> None:
    count = DIFFERENCES_KEPT_MAX + 3
    found = compared([log_of(*[1] * count)], [log_of(*[1] * count, leader_epoch=1)], count)
    assert found.difference_count == count
    assert len(found.differences) == DIFFERENCES_KEPT_MAX


def test_a_batch_whose_bytes_do_not_have_its_crc_is_corrupt_where_it_stands() -> None:
    header = read_header(log_of(1)[0], 0)
    sound, unsound = Mark(header, is_sound=True), Mark(header, is_sound=False)
    assert difference_of(sound, sound) == ()
    assert difference_of(unsound, sound) == ("corrupt at the source",)
    assert difference_of(sound, unsound) == ("corrupt at the destination",)
