"""A rate is kept over time, whatever comes at once."""

from hypothesis import given
from hypothesis import strategies as st

from twinlog.mirroring.throttle import FOREVER_MS, UNLIMITED, Throttle, is_throttled


def test_without_a_rate_nothing_waits() -> None:
    throttle = Throttle()
    throttle.record(1 << 40, 0)
    assert throttle.is_unlimited
    assert throttle.wait_ms(0) == 0


def test_what_was_fetched_beyond_the_rate_is_waited_for() -> None:
    throttle = Throttle(1_000)
    throttle.record(3_000, 0)
    assert throttle.wait_ms(0) == 2_002
    assert throttle.wait_ms(1_000) == 1_002
    assert throttle.wait_ms(2_002) == 0


def test_a_second_that_was_not_used_can_be_caught_up_and_no_more() -> None:
    throttle = Throttle(1_000)
    throttle.record(1_000, 60_000)
    assert throttle.wait_ms(60_000) > 0


def test_another_rate_counts_at_once_and_a_debt_is_paid_at_it() -> None:
    throttle = Throttle(1_000)
    throttle.record(11_000, 0)
    assert throttle.wait_ms(0) > 9_000
    assert throttle.set_rate(10_000, 0)
    assert throttle.wait_ms(0) <= 1_001
    assert not throttle.set_rate(10_000, 0)
    assert throttle.set_rate(UNLIMITED, 0)
    assert throttle.wait_ms(0) == 0


def test_a_limit_after_none_begins_with_a_whole_second() -> None:
    throttle = Throttle()
    throttle.record(1 << 40, 0)
    assert throttle.set_rate(100, 5_000)
    assert throttle.wait_ms(5_000) == 0
    throttle.record(100, 5_000)
    assert throttle.wait_ms(5_000) > 0


def test_a_rate_of_nothing_waits_until_it_is_another() -> None:
    throttle = Throttle(0)
    assert throttle.wait_ms(10_000_000) == FOREVER_MS
    assert throttle.set_rate(1_000, 10_000_000)
    assert throttle.wait_ms(10_001_000) == 0


@given(
    rate=st.integers(10_000, 10_000_000),
    pieces=st.lists(st.tuples(st.integers(0, 3_000), st.integers(1, 4 << 20)), max_size=30),
)
def test_over_any_run_no_more_comes_than_the_rate_gives_and_a_second_and_one_answer(
    rate: int, pieces: list[tuple[int, int]]
) -> None:
    throttle = Throttle(rate)
    now_ms = fetched = largest = 0
    for idle_ms, byte_count in pieces:
        now_ms += idle_ms + throttle.wait_ms(now_ms + idle_ms)
        assert throttle.wait_ms(now_ms) == 0
        throttle.record(byte_count, now_ms)
        fetched, largest = fetched + byte_count, max(largest, byte_count)
    assert fetched <= rate + now_ms * rate / 1_000 + largest + 1


def test_a_partition_is_throttled_on_the_brokers_that_are_named_or_on_all() -> None:
    assert is_throttled(("*",), 3, 1)
    assert is_throttled(("0:1", "3:2"), 3, 2)
    assert not is_throttled(("0:1", "3:2"), 3, 1)
    assert not is_throttled((), 0, 1)
