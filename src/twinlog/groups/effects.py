"""What a group asks its shard to do, in order."""

from dataclasses import dataclass
from enum import Enum

from twinlog.coordination.outcome import Ticket
from twinlog.groups.commands import Joined, Synced
from twinlog.groups.records import GroupMetadataValue


class TimerKind(Enum):
    """What a group waits for with a deadline."""

    JOIN = "join"
    """Everybody to join."""
    SYNC = "sync"
    """Everybody to fetch the assignment after a rebalance."""
    SESSION = "session"
    """One member to be heard of."""


@dataclass(frozen=True, slots=True)
class GroupTimer:
    """The name of a deadline; ``member_id`` is set for a session."""

    group_id: str
    kind: TimerKind
    member_id: str = ""


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Let a deadline pass at ``at_ms``."""

    timer: GroupTimer
    at_ms: int


@dataclass(frozen=True, slots=True)
class CancelTimer:
    """Forget a deadline."""

    timer: GroupTimer


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer a request that was parked."""

    ticket: Ticket
    answer: Joined | Synced


@dataclass(frozen=True, slots=True)
class Persist:
    """Write the group down; it changes when the record is replayed. Replies wait for it."""

    value: GroupMetadataValue


Effect = SetTimer | CancelTimer | Reply | Persist
