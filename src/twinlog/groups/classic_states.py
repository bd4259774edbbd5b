"""The states of a classic group, and the table of legal steps."""

from enum import Enum
from typing import Final


class ClassicState(Enum):
    """Where a group stands; the values are the names Kafka shows to operators."""

    EMPTY = "Empty"
    """No members; perhaps offsets."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Waiting for everybody to join."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """Everybody has joined; waiting for the leader's assignment."""
    STABLE = "Stable"
    """Everybody's assignment is known."""


NEXT_STATES: Final = {
    ClassicState.EMPTY: {ClassicState.PREPARING_REBALANCE, ClassicState.EMPTY},
    ClassicState.PREPARING_REBALANCE: {ClassicState.COMPLETING_REBALANCE, ClassicState.EMPTY},
    ClassicState.COMPLETING_REBALANCE: {
        ClassicState.STABLE,
        ClassicState.PREPARING_REBALANCE,
    },
    ClassicState.STABLE: {ClassicState.PREPARING_REBALANCE, ClassicState.STABLE},
}

DEAD: Final = "Dead"
"""What describes a group that is not there."""


def assert_step(old: ClassicState, new: ClassicState) -> None:
    """Stop at a step that the table does not have."""
    assert new in NEXT_STATES[old], f"{old.name} -> {new.name}"
