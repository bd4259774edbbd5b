"""What a command comes to: records to write, and replies to give once they are committed."""

from dataclasses import dataclass
from typing import Any, Generic, NewType, TypeVar

Reply_co = TypeVar("Reply_co", covariant=True)

Ticket = NewType("Ticket", int)
"""By which a shard knows a caller that waits; each shard counts its own."""


@dataclass(frozen=True, slots=True)
class StateRecord:
    """One record of an internal topic; a value of None deletes the key."""

    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Parked:
    """The command is not answered yet: its ticket comes in a later outcome, or in this one."""

    ticket: Ticket


@dataclass(frozen=True, slots=True)
class Answer:
    """The reply for a command that was parked under ``ticket``, earlier or just now."""

    ticket: Ticket
    reply: Any


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Reply_co]):
    """``records`` are replayed at once and stay together in one batch; replies await its commit."""

    reply: Reply_co | Parked
    records: tuple[StateRecord, ...] = ()
    answers: tuple[Answer, ...] = ()
