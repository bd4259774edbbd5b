"""How much two logs have in common, asked epoch by epoch."""

from twinlog.mirroring.alignment import (
    AskEnd,
    LogFacts,
    NothingInCommon,
    SameUpTo,
    SourceFacts,
    first_question,
    next_question,
)
from twinlog.model.epochs import EpochStart
from twinlog.model.ids import LeaderEpoch, Offset


def log(start: int, end: int, *epochs: tuple[int, int]) -> LogFacts:
    starts = tuple(EpochStart(LeaderEpoch(epoch), Offset(at)) for epoch, at in epochs)
    return LogFacts(Offset(start), Offset(end), starts)


def source(epoch: int, start: int, end: int) -> SourceFacts:
    return SourceFacts(LeaderEpoch(epoch), Offset(start), Offset(end))


LOCAL = log(0, 100, (2, 0), (5, 40), (7, 80))


def answer(asked: int, epoch: int, end: int, *, leader_epoch: int = 9) -> object:
    told = (LeaderEpoch(epoch), Offset(end))
    return next_question(LOCAL, source(leader_epoch, 0, 500), LeaderEpoch(asked), told)


def test_the_latest_epoch_is_asked_for_first() -> None:
    assert first_question(LOCAL, source(9, 0, 500)) == AskEnd(LeaderEpoch(7))


def test_an_empty_log_is_the_same_as_any_that_reaches_its_end() -> None:
    assert first_question(log(50, 50), source(9, 0, 50)) == SameUpTo(Offset(50))
    assert first_question(log(50, 50), source(9, 0, 20)) == AskEnd(LeaderEpoch(9))


def test_an_empty_log_beyond_the_sources_end_is_cut_back_to_it() -> None:
    told = (LeaderEpoch(9), Offset(20))
    empty = log(50, 50)
    assert next_question(empty, source(9, 0, 20), LeaderEpoch(9), told) == SameUpTo(Offset(20))


def test_in_a_common_epoch_the_lower_end_counts() -> None:
    assert answer(7, 7, 500) == SameUpTo(Offset(100))
    assert answer(7, 7, 90) == SameUpTo(Offset(90))
    assert answer(7, 5, 300) == SameUpTo(Offset(80))


def test_an_epoch_that_only_the_source_has_leads_to_the_next_lower_of_ours() -> None:
    assert answer(7, 6, 90) == AskEnd(LeaderEpoch(5))
    assert answer(5, 1, 30) == NothingInCommon()


def test_a_source_that_has_fallen_behind_our_epoch_is_asked_for_lower_ones() -> None:
    assert answer(7, -1, -1, leader_epoch=6) == AskEnd(LeaderEpoch(5))
    assert answer(2, -1, -1, leader_epoch=1) == NothingInCommon()


def test_a_source_without_epochs_is_compared_by_offsets() -> None:
    assert answer(7, -1, -1, leader_epoch=7) == SameUpTo(Offset(100))
    assert answer(7, -1, -1, leader_epoch=-1) == SameUpTo(Offset(100))


def test_what_a_cut_leaves_has_the_epochs_below_it() -> None:
    assert LOCAL.cut_to(Offset(60)) == log(0, 60, (2, 0), (5, 40))
    assert LOCAL.cut_to(Offset(200)) is LOCAL
    assert log(30, 100, (5, 30)).cut_to(Offset(10)).is_empty


def test_the_end_of_an_epoch_is_where_the_next_begins() -> None:
    assert LOCAL.end_of(LeaderEpoch(6)) == (5, 80)
    assert LOCAL.end_of(LeaderEpoch(99)) == (7, 100)
    assert LOCAL.end_of(LeaderEpoch(1)) == (-1, 0)
    assert LOCAL.latest_epoch == 7
    assert log(0, 0).latest_epoch == -1
