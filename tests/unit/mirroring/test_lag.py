"""Lag in records, bytes and seconds."""

from twinlog.mirroring.lag import LagInputs
from twinlog.model.ids import Offset


def test_before_the_first_answer_nothing_is_known() -> None:
    lag = LagInputs()
    assert (lag.records, lag.bytes, lag.seconds(1_000)) == (-1, -1, -1.0)


def test_lag_is_what_is_still_to_come_judged_by_what_came() -> None:
    lag = LagInputs()
    lag.appended(10, 1_000)
    lag.answered(Offset(50), Offset(10), 0)
    assert (lag.records, lag.bytes) == (40, 4_000)
    assert lag.seconds(3_000) == 3.0


def test_level_is_no_lag_and_never_negative() -> None:
    lag = LagInputs()
    lag.answered(Offset(5), Offset(10), 0)
    assert (lag.records, lag.bytes, lag.seconds(1_000)) == (0, 0, 0.0)


def test_bytes_are_unknown_before_anything_came() -> None:
    lag = LagInputs()
    lag.answered(Offset(50), Offset(10), 0)
    assert lag.bytes == -1


def test_the_seconds_grow_while_the_source_is_dark() -> None:
    lag = LagInputs()
    lag.answered(Offset(10), Offset(10), 1_000)
    assert lag.seconds(2_000) == 0.0
    assert lag.seconds(61_000) == 60.0


def test_what_the_source_leaves_out_is_as_it_was_and_level_if_it_was_level() -> None:
    lag = LagInputs()
    lag.unchanged(50)
    assert lag.answered_at_ms == -1
    lag.answered(Offset(5), Offset(5), 100)
    lag.unchanged(20_000)
    lag.unchanged(10_000)
    assert lag.seconds(21_000) == 0
    assert (lag.answered_at_ms, lag.level_at_ms) == (20_000, 20_000)
    lag.answered(Offset(9), Offset(5), 22_000)
    lag.unchanged(23_000)
    assert lag.seconds(24_000) == 4


def test_what_is_of_before_is_not_made_new_by_what_the_source_leaves_out() -> None:
    lag = LagInputs()
    lag.answered(Offset(12), Offset(10), 1_000)
    lag.doubt_source()
    lag.unchanged(2_000)
    assert (lag.is_of_before, lag.answered_at_ms, lag.records) == (True, 1_000, 2)
    lag.answered(Offset(12), Offset(12), 3_000)
    assert (lag.is_of_before, lag.records) == (False, 0)
