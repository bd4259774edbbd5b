"""The states of a mirrored partition, and the table of legal steps between them."""

from enum import IntEnum
from typing import Final


class MirrorState(IntEnum):
    """Where a mirrored partition really is; the numbers are those of ``__mirror_state``."""

    UNKNOWN = -1
    LOG_ALIGNMENT = 0
    EPOCH_FENCING = 1
    ULE_RECOVERY = 2
    MIRRORING = 3
    PAUSING = 4
    PAUSED = 5
    STOPPING = 6
    STOPPED = 7
    FAILED = 8


class DesiredState(IntEnum):
    """What an operator asked of a mirror topic; the numbers are those of the state it ends in."""

    MIRRORING = 3
    PAUSED = 5
    STOPPED = 7


_S = MirrorState

NEXT_STATES: Final[dict[MirrorState, frozenset[MirrorState]]] = {
    # UNKNOWN may be stopped: an operator can change his mind before the first state was written.
    _S.UNKNOWN: frozenset({_S.LOG_ALIGNMENT, _S.STOPPING, _S.FAILED}),
    _S.LOG_ALIGNMENT: frozenset({_S.MIRRORING, _S.STOPPING, _S.FAILED}),
    _S.EPOCH_FENCING: frozenset({_S.MIRRORING, _S.STOPPING, _S.FAILED}),
    _S.ULE_RECOVERY: frozenset({_S.MIRRORING, _S.STOPPING, _S.FAILED}),
    _S.MIRRORING: frozenset(
        {_S.EPOCH_FENCING, _S.ULE_RECOVERY, _S.PAUSING, _S.STOPPING, _S.FAILED}
    ),
    _S.PAUSING: frozenset({_S.PAUSED, _S.STOPPING, _S.FAILED}),
    _S.PAUSED: frozenset({_S.MIRRORING, _S.STOPPING, _S.FAILED}),
    _S.STOPPING: frozenset({_S.STOPPED, _S.FAILED}),
    _S.STOPPED: frozenset({_S.LOG_ALIGNMENT, _S.FAILED}),
    _S.FAILED: frozenset({_S.LOG_ALIGNMENT, _S.MIRRORING, _S.STOPPING}),
}
"""From each state, the others it may step to. A state may always be written again."""

ALIGNING: Final = frozenset({_S.LOG_ALIGNMENT, _S.EPOCH_FENCING, _S.ULE_RECOVERY, _S.MIRRORING})
"""The states in which the source is asked for something."""

WRITABLE: Final = frozenset({MirrorState.STOPPED})
"""Where producers may write; everywhere else the partition is read-only."""


def may_step(from_state: MirrorState, to_state: MirrorState) -> bool:
    """Tell whether the step is legal; writing the same state again always is."""
    return from_state == to_state or to_state in NEXT_STATES[from_state]


def state_after_failure(before: MirrorState) -> MirrorState:
    """Give the state in which a FAILED partition tries again what it was doing ``before``.

    LOG_ALIGNMENT cuts the log down to what both clusters agreed on, so it is taken up again only
    by a partition that had not got past it; MIRRORING compares with the source first, anyhow.
    """
    if before in (_S.STOPPING, _S.LOG_ALIGNMENT):
        return before
    if before in (_S.UNKNOWN, _S.STOPPED):
        return _S.LOG_ALIGNMENT
    return _S.MIRRORING


def next_target(actual: MirrorState, desired: DesiredState) -> MirrorState:
    """Give the state to write next, so that the actual state comes nearer to the desired one.

    The same state means: go on with what it stands for. A stop wins over everything, also over
    FAILED; a pause waits until MIRRORING is reached, and over FAILED it changes nothing.
    """
    if desired == DesiredState.STOPPED:
        return actual if actual in (_S.STOPPING, _S.STOPPED) else _S.STOPPING
    if actual in (_S.UNKNOWN, _S.STOPPED):
        return _S.LOG_ALIGNMENT
    if desired == DesiredState.PAUSED:
        return _S.PAUSING if actual == _S.MIRRORING else actual
    return _S.MIRRORING if actual == _S.PAUSED else actual
