"""Waits before retries."""

from twinlog.mirroring.policy import BACKOFF_MS_MIN, RetryPolicy


def test_the_wait_is_drawn_between_nothing_and_a_ceiling_that_doubles_up_to_a_bound() -> None:
    policy = RetryPolicy(backoff_ms_min=100, backoff_ms_max=1_000)
    assert [policy.delay_ms(attempt, 0.5) for attempt in (1, 2, 3, 4, 5, 1_000_000)] == [
        50,
        100,
        200,
        400,
        500,
        500,
    ]


def test_the_wait_is_never_nothing() -> None:
    assert RetryPolicy().delay_ms(1, 0.0) == BACKOFF_MS_MIN
