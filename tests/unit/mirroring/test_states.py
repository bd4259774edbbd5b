"""The table of legal steps, and what a desired state makes of an actual one."""

import pytest

from twinlog.mirroring.states import (
    NEXT_STATES,
    DesiredState,
    MirrorState,
    may_step,
    next_target,
    state_after_failure,
)

every_state = pytest.mark.parametrize("state", MirrorState, ids=lambda state: state.name)


def test_the_numbers_are_those_of_the_proposal() -> None:
    assert [(state.name, int(state)) for state in MirrorState] == [
        ("UNKNOWN", -1),
        ("LOG_ALIGNMENT", 0),
        ("EPOCH_FENCING", 1),
        ("ULE_RECOVERY", 2),
        ("MIRRORING", 3),
        ("PAUSING", 4),
        ("PAUSED", 5),
        ("STOPPING", 6),
        ("STOPPED", 7),
        ("FAILED", 8),
    ]


@every_state
def test_a_stop_leads_to_stopped_from_every_state(state: MirrorState) -> None:
    seen = [state]
    while seen[-1] != MirrorState.STOPPED:
        target = next_target(seen[-1], DesiredState.STOPPED)
        seen.append(MirrorState.STOPPED if target == MirrorState.STOPPING == seen[-1] else target)
        assert may_step(seen[-2], seen[-1])
    assert len(seen) <= 3


@every_state
def test_a_state_may_be_written_again_and_may_fail(state: MirrorState) -> None:
    assert may_step(state, state)
    assert may_step(state, MirrorState.FAILED)


@every_state
@pytest.mark.parametrize("desired", DesiredState)
def test_the_next_target_is_always_a_legal_step(state: MirrorState, desired: DesiredState) -> None:
    assert may_step(state, next_target(state, desired))


@every_state
def test_a_failed_partition_may_step_to_where_it_tries_again(state: MirrorState) -> None:
    if state != MirrorState.FAILED:
        assert may_step(MirrorState.FAILED, state_after_failure(state))


def test_only_a_partition_that_never_got_past_it_aligns_its_log_again() -> None:
    assert state_after_failure(MirrorState.LOG_ALIGNMENT) == MirrorState.LOG_ALIGNMENT
    assert state_after_failure(MirrorState.ULE_RECOVERY) == MirrorState.MIRRORING


@pytest.mark.parametrize(
    ("from_state", "to_state"),
    [
        ("MIRRORING", "STOPPED"),
        ("STOPPED", "MIRRORING"),
        ("PAUSED", "LOG_ALIGNMENT"),
        ("STOPPING", "MIRRORING"),
        ("FAILED", "STOPPED"),
        ("MIRRORING", "LOG_ALIGNMENT"),
    ],
)
def test_these_steps_are_illegal(from_state: str, to_state: str) -> None:
    assert not may_step(MirrorState[from_state], MirrorState[to_state])


def test_every_state_has_its_row() -> None:
    assert set(NEXT_STATES) == set(MirrorState)
