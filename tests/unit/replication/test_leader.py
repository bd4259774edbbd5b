import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.model.ids import BrokerId, LeaderEpoch, Offset
from twinlog.replication.leader import LeaderReplica

ME, SECOND, THIRD = BrokerId(1), BrokerId(2), BrokerId(3)


def leader(
    *brokers: BrokerId, log_end: int = 0, high_watermark: int = 0, isr: set[BrokerId] | None = None
) -> LeaderReplica:
    return LeaderReplica(
        ME,
        leader_epoch=LeaderEpoch(5),
        replicas=(ME, *brokers),
        isr=isr or {ME, *brokers},
        log_start=Offset(0),
        log_end=Offset(log_end),
        high_watermark=Offset(high_watermark),
        now_ms=0,
    )


def test_a_leader_alone_commits_what_it_appends() -> None:
    replica = leader(log_end=7, high_watermark=3)
    assert replica.high_watermark == 7
    assert replica.log_changed(Offset(0), Offset(9))
    assert replica.is_committed(Offset(9))
    assert not replica.is_committed(Offset(10))


def test_a_record_is_committed_when_every_in_sync_copy_has_it() -> None:
    replica = leader(SECOND, THIRD)
    assert not replica.log_changed(Offset(0), Offset(10))
    assert not replica.follower_fetched(SECOND, Offset(10), Offset(0), 1)
    assert replica.follower_fetched(THIRD, Offset(4), Offset(0), 1)
    assert replica.high_watermark == 4
    assert replica.isr_changed({ME, SECOND})
    assert replica.high_watermark == 10


def test_a_follower_that_is_not_assigned_counts_for_nothing() -> None:
    replica = leader(log_end=3)
    assert not replica.follower_fetched(THIRD, Offset(0), Offset(0), 1)
    assert replica.proposed_isr(1, 100) is None


def test_a_high_watermark_from_before_the_log_was_cut_is_cut_too() -> None:
    assert leader(log_end=5, high_watermark=9).high_watermark == 5
    replica = leader(log_end=10)
    assert replica.log_changed(Offset(0), Offset(6))
    assert replica.high_watermark == 6


def test_a_log_that_begins_anew_takes_the_high_watermark_along() -> None:
    replica = leader(SECOND, log_end=10, isr={ME, SECOND})
    replica.log_changed(Offset(50), Offset(50))
    assert replica.high_watermark == 50


def test_a_follower_that_falls_behind_leaves_the_isr_and_comes_back() -> None:
    replica = leader(SECOND)
    replica.follower_fetched(SECOND, Offset(0), Offset(0), 0)
    replica.log_changed(Offset(0), Offset(10))
    assert replica.proposed_isr(100, 100) is None
    proposal = replica.proposed_isr(101, 100)
    assert proposal == frozenset({ME})
    replica.isr_changed(proposal)
    assert replica.high_watermark == 10
    replica.follower_fetched(SECOND, Offset(9), Offset(0), 200)
    assert replica.proposed_isr(200, 100) is None, "it lacks a committed record"
    replica.follower_fetched(SECOND, Offset(10), Offset(0), 210)
    assert replica.proposed_isr(210, 100) == frozenset({ME, SECOND})


def test_a_follower_that_is_always_one_fetch_behind_stays_in_sync() -> None:
    replica = leader(SECOND)
    end = 0
    for now_ms in range(0, 1_000, 50):
        replica.follower_fetched(SECOND, Offset(end), Offset(0), now_ms)
        end += 10
        replica.log_changed(Offset(0), Offset(end + 10))
        assert replica.proposed_isr(now_ms, 100) is None


def test_acks_all_needs_enough_copies() -> None:
    replica = leader(SECOND, isr={ME})
    assert replica.has_enough_copies(1)
    assert not replica.has_enough_copies(2)


def test_the_low_watermark_is_that_of_the_slowest_copy() -> None:
    replica = leader(SECOND, log_end=10)
    replica.follower_fetched(SECOND, Offset(10), Offset(2), 0)
    replica.log_changed(Offset(5), Offset(10))
    assert replica.low_watermark() == 2
    replica.isr_changed({ME})
    assert replica.low_watermark() == 5


def test_a_leader_outside_its_isr_is_our_mistake() -> None:
    with pytest.raises(AssertionError, match="not in the ISR"):
        leader(SECOND, isr={SECOND})


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.integers(1, 5), st.just(0)),
            st.tuples(st.just("fetch"), st.sampled_from([2, 3]), st.integers(0, 30)),
            st.tuples(st.just("isr"), st.sampled_from([1, 2, 3, 6]), st.just(0)),
        ),
        max_size=40,
    )
)
def test_the_high_watermark_never_falls_and_is_on_every_in_sync_copy(
    steps: list[tuple[str, int, int]],
) -> None:
    replica = leader(SECOND, THIRD)
    ends = {SECOND: 0, THIRD: 0}
    for now_ms, (step, first, second) in enumerate(steps):
        before = replica.high_watermark
        if step == "append":
            replica.log_changed(Offset(0), Offset(replica.log_end + first))
        elif step == "fetch":
            broker = BrokerId(first)
            ends[broker] = max(ends[broker], min(second, replica.log_end))
            replica.follower_fetched(broker, Offset(ends[broker]), Offset(0), now_ms)
        else:
            # Only who has everything committed may be in the ISR, as proposed_isr sees to.
            isr = {b for b in (SECOND, THIRD) if first % b == 0 and ends[b] >= before}
            replica.isr_changed({ME, *isr})
        assert before <= replica.high_watermark <= replica.log_end
        for broker in replica.isr - {ME}:
            assert replica.high_watermark <= max(ends[broker], 0) or (
                replica.high_watermark == before
            )
