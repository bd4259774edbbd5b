"""Bounds the bytes of requests that a listener holds at once."""

from collections import deque
from collections.abc import Callable


class FrameBudget:
    """Counts the announced sizes of big frames, from their first byte to their answer.

    Whoever finds no room stops reading and is called when there may be some. One frame is always
    let in, however large, so a bound below the largest frame cannot stop the listener for ever.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.taken_bytes = 0
        self._waiting: deque[Callable[[], None]] = deque()

    def take(self, size: int, when_room: Callable[[], None]) -> bool:
        """Take ``size`` bytes and tell True, or call ``when_room`` later and tell False."""
        is_bounded = self._bytes_max >= 0
        if is_bounded and self.taken_bytes and self.taken_bytes + size > self._bytes_max:
            self._waiting.append(when_room)
            return False
        self.taken_bytes += size
        return True

    def give_back(self, size: int) -> None:
        """Return ``size`` bytes, and let those who wait try again, first come first served."""
        self.taken_bytes -= size
        assert self.taken_bytes >= 0, f"{self.taken_bytes} bytes taken after {size} came back"
        waiting, self._waiting = self._waiting, deque()
        for when_room in waiting:
            when_room()
