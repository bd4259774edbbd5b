from hypothesis import given
from hypothesis import strategies as st

from twinlog.model.epochs import EpochHistory, EpochStart
from twinlog.model.ids import LeaderEpoch, Offset


def history(*entries: tuple[int, int]) -> EpochHistory:
    return EpochHistory([EpochStart(LeaderEpoch(e), Offset(o)) for e, o in entries])


def test_an_empty_history_knows_no_epoch() -> None:
    assert history().latest == -1
    assert history().epoch_at(Offset(5)) == -1
    assert history().end_of(LeaderEpoch(0), Offset(9)) == (-1, -1)


def test_the_end_of_the_latest_epoch_is_the_log_end() -> None:
    assert history((2, 0), (5, 10)).end_of(LeaderEpoch(5), Offset(17)) == (5, 17)


def test_the_end_of_an_older_epoch_is_where_the_next_began() -> None:
    epochs = history((2, 0), (5, 10), (9, 20))
    assert epochs.end_of(LeaderEpoch(2), Offset(30)) == (2, 10)
    assert epochs.end_of(LeaderEpoch(7), Offset(30)) == (5, 20)


def test_an_epoch_older_than_all_we_know_ended_where_our_first_began() -> None:
    assert history((4, 100)).end_of(LeaderEpoch(1), Offset(120)) == (1, 100)


def test_an_epoch_above_the_latest_has_no_end_yet() -> None:
    assert history((4, 0)).end_of(LeaderEpoch(5), Offset(10)) == (-1, -1)


def test_an_entry_that_contradicts_the_newest_append_is_dropped() -> None:
    epochs = history((1, 0), (3, 10))
    assert epochs.assign(LeaderEpoch(2), Offset(7))
    assert epochs.entries == history((1, 0), (2, 7)).entries


def test_the_start_of_the_log_moves_into_the_epoch_that_holds_it() -> None:
    epochs = history((1, 0), (3, 10), (4, 20))
    assert epochs.truncate_from_start(Offset(15))
    assert epochs.entries == history((3, 15), (4, 20)).entries
    assert not epochs.truncate_from_start(Offset(15))


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 200))), st.integers(0, 200))
def test_a_history_stays_in_order_whatever_is_assigned_and_cut(
    steps: list[tuple[int, int]], cut: int
) -> None:
    epochs = history()
    for epoch, start in steps:
        epochs.assign(LeaderEpoch(epoch), Offset(start))
    epochs.truncate_from_end(Offset(cut))
    epochs.truncate_from_start(Offset(cut // 2))
    pairs = [(e.epoch, e.start) for e in epochs.entries]
    assert pairs == sorted(pairs)
    assert len({e for e, _ in pairs}) == len({s for _, s in pairs}) == len(pairs)
    assert all(start < cut for _, start in pairs)
