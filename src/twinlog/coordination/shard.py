"""What the runtime asks of a coordinator's state, whatever it coordinates."""

from collections.abc import Hashable
from typing import Protocol

from twinlog.coordination.outcome import Outcome
from twinlog.coordination.timers import Timers


class Shard(Protocol):
    """The state of one partition of an internal topic.

    Commands are further methods that give an ``Outcome``; they may raise ``ApiError`` before they
    have changed anything. What is durable changes in ``replay`` only, which runs right before the
    append, and again when the partition is loaded. When an append fails the shard is thrown away
    and loaded again, so nothing is ever undone.
    """

    @property
    def timers(self) -> Timers:
        """The deadlines; each is handed to ``on_timer`` when it comes due."""
        ...

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Take in one record; keys and versions that are not known are skipped."""
        ...

    def on_loaded(self, now_ms: int) -> None:
        """Everything in the log has been replayed: set the deadlines of what is alive."""
        ...

    def on_timer(self, name: Hashable, now_ms: int) -> Outcome[None]:
        """A deadline has passed."""
        ...
