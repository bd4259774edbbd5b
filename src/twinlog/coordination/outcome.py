"""What a command comes to: records to write, and replies to give once they are committed."""

from dataclasses import dataclass
from typing import Any, Final, Generic, NewType, TypeVar

Reply_co = TypeVar("Reply_co", covariant=True)

Ticket = NewType("Ticket", int)
"""By which a caller that waits is known; the runtime gives one out with every command."""


@dataclass(frozen=True, slots=True)
class StateRecord:
    """One record of an internal topic; a value of None deletes the key."""

    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Answer:
    """The reply for a command parked earlier (or just now) under ``ticket``."""

    ticket: Ticket
    reply: Any


@dataclass(frozen=True, slots=True)
class Parked:
    """The command is not answered yet: its ticket will come in a later outcome, or in this one."""


PARKED: Final = Parked()


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Reply_co]):
    """``records`` are written as one batch and replayed at once; replies wait for the commit."""

    records: tuple[StateRecord, ...] = ()
    reply: Reply_co | Parked = PARKED
    answers: tuple[Answer, ...] = ()
