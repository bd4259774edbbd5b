"""Failures and their retries."""

from twinlog.mirroring.policy import RetryPolicy
from twinlog.mirroring.records import NON_RETRYABLE, PartitionState
from twinlog.mirroring.standing import Standing
from twinlog.mirroring.states import DesiredState, MirrorState

RETRY = RetryPolicy(backoff_ms_min=100, backoff_ms_max=100, attempts_max=2)


def test_a_failure_counts_attempts_until_an_operator_must_act() -> None:
    standing = Standing(state=MirrorState.MIRRORING)
    delays = []
    for _ in range(3):
        standing.fail("why", is_retryable=True)
        delays.append(standing.retry_delay_ms(RETRY, 0.5))
    assert delays == [50, 50, None]
    assert standing.retry_target == MirrorState.MIRRORING


def test_no_attempts_at_all_are_made_when_none_are_allowed() -> None:
    standing = Standing(state=MirrorState.MIRRORING)
    standing.fail("why", is_retryable=True)
    assert standing.retry_delay_ms(RetryPolicy(attempts_max=0), 0.5) is None


def test_a_stop_is_retried_for_ever_and_waits_in_between() -> None:
    standing = Standing(state=MirrorState.STOPPING, retry_attempt=99)
    standing.fail("why", is_retryable=True)
    standing.state = MirrorState.FAILED
    assert standing.retry_delay_ms(RETRY, 0.5) == 50
    assert standing.target(DesiredState.STOPPED) == MirrorState.FAILED
    assert standing.retry_target == MirrorState.STOPPING


def test_a_failure_of_the_retry_keeps_what_was_done_before_the_first() -> None:
    standing = Standing(state=MirrorState.FAILED, previous=MirrorState.LOG_ALIGNMENT)
    standing.fail("gone", is_retryable=False)
    assert standing.previous == MirrorState.LOG_ALIGNMENT
    assert standing.has_failed_for_good
    assert standing.retry_attempt == NON_RETRYABLE


def test_stopping_remembers_where_it_came_from_also_over_a_failure() -> None:
    standing = Standing(state=MirrorState.LOG_ALIGNMENT)
    assert standing.leave_for(MirrorState.STOPPING).previous == MirrorState.LOG_ALIGNMENT
    assert not standing.had_begun
    failed = Standing(state=MirrorState.FAILED, previous=MirrorState.MIRRORING)
    failed.leave_for(MirrorState.STOPPING)
    assert failed.had_begun


def test_a_stop_that_failed_does_not_take_what_was_written_here_for_the_source_s() -> None:
    """A seed of two clusters found it: the next start kept those records among the source's."""
    standing = Standing(state=MirrorState.LOG_ALIGNMENT)
    standing.leave_for(MirrorState.STOPPING)
    standing.state = MirrorState.STOPPING
    standing.fail("the disk is bad", is_retryable=True)
    standing.leave_for(MirrorState.FAILED)
    standing.state = MirrorState.FAILED
    assert standing.target(DesiredState.STOPPED) == MirrorState.FAILED
    assert standing.retry_target == MirrorState.STOPPING
    standing.leave_for(MirrorState.STOPPING)
    assert not standing.had_begun


def test_what_was_durable_is_taken_over() -> None:
    standing = Standing()
    standing.restore(
        PartitionState(state=8, state_epoch=4, error="e", retry_attempt=1, previous_state=3)
    )
    assert standing == Standing(
        MirrorState.FAILED, 4, MirrorState.MIRRORING, error="e", retry_attempt=1
    )


def test_a_state_that_means_success_forgives() -> None:
    standing = Standing(state=MirrorState.STOPPING, error="e", retry_attempt=3)
    record = standing.leave_for(MirrorState.STOPPED)
    assert (record.error, record.retry_attempt) == (None, 0)


def test_a_log_is_the_source_s_once_it_was_compared_until_it_is_stopped() -> None:
    assert Standing(state=MirrorState.MIRRORING).is_aligned
    assert Standing(state=MirrorState.FAILED, previous=MirrorState.MIRRORING).is_aligned
    for_good = Standing(MirrorState.FAILED, previous=MirrorState.MIRRORING, retry_attempt=-1)
    assert not for_good.is_aligned
    assert not Standing(state=MirrorState.LOG_ALIGNMENT).is_aligned
    assert not Standing(state=MirrorState.FAILED, previous=MirrorState.LOG_ALIGNMENT).is_aligned
    assert not Standing(state=MirrorState.ULE_RECOVERY).is_aligned
    assert not Standing(state=MirrorState.STOPPING, previous=MirrorState.MIRRORING).is_aligned
