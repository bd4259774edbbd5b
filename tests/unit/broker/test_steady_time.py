from support.memory_state import ManualClock
from twinlog.broker.steady_time import SteadyTime


def test_it_shows_the_time_of_day() -> None:
    clock = ManualClock()
    time = SteadyTime(clock)
    clock.advance(500)
    assert time.now_ms() == 1_000_500
    assert time.jump_ms() == 0


def test_a_clock_that_is_set_does_not_move_it_until_it_follows() -> None:
    clock = ManualClock()
    time = SteadyTime(clock)
    clock.wall += 3_600_000
    assert time.now_ms() == 1_000_000
    assert time.jump_ms() == 3_600_000
    assert time.now_ms() == 4_600_000
    assert time.jump_ms() == 0


def test_a_little_drift_is_nobodys_business() -> None:
    clock = ManualClock()
    time = SteadyTime(clock)
    clock.wall -= 900
    assert time.jump_ms() == 0
    assert time.now_ms() == 1_000_000
