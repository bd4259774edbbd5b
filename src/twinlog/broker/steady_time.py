"""A time of day that does not jump, for deadlines that are kept beside records."""

from typing import Final, Protocol

JUMP_MS_MIN: Final = 60_000
"""A smaller difference is drift, or a clock that is being steered; nobody's deadline minds it."""


class TwoClocks(Protocol):
    """The time of day, and a time that never goes back; both in ms."""

    def wall_ms(self) -> int:
        """Give the time of day."""
        ...

    def now_ms(self) -> int:
        """Give a time of which only differences mean anything."""
        ...


class SteadyTime:
    """Goes at the steady clock's pace and shows the time of day.

    When somebody sets the clock, it follows, and says by how much, so that deadlines can be moved
    along: no session may end, and no offset expire, because a clock was set.
    """

    def __init__(self, clock: TwoClocks) -> None:
        self._clock: Final = clock
        self._ahead_ms = clock.wall_ms() - clock.now_ms()

    def now_ms(self) -> int:
        """Give the time of day, as it was set when ``jump_ms`` was last called."""
        return self._clock.now_ms() + self._ahead_ms

    def jump_ms(self) -> int:
        """Follow the clock if it was set; give by how much, 0 if it was not."""
        ahead_ms = self._clock.wall_ms() - self._clock.now_ms()
        jump_ms = ahead_ms - self._ahead_ms
        if abs(jump_ms) < JUMP_MS_MIN:
            return 0
        self._ahead_ms = ahead_ms
        return jump_ms
