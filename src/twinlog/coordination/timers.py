"""Named deadlines of a shard, nearest first."""

import heapq
from collections.abc import Hashable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Timers:
    """Deadlines by name; setting a name again moves its deadline.

    A deadline moved later leaves its old place in the queue until that comes up (most heartbeats
    move a deadline that is never reached), so setting one is usually a single dict entry.
    """

    _deadlines: dict[Hashable, int] = field(default_factory=dict)
    _queued: dict[Hashable, int] = field(default_factory=dict)
    _queue: list[tuple[int, int, Hashable]] = field(default_factory=list)
    _count: int = 0

    def set(self, name: Hashable, at_ms: int) -> None:
        """Let ``name`` come due at ``at_ms``, instead of whenever it was to come due before."""
        self._deadlines[name] = at_ms
        queued = self._queued.get(name)
        if queued is None or at_ms < queued:
            self._push(name, at_ms)

    def cancel(self, name: Hashable) -> None:
        """Forget ``name``; nothing happens when it is not set."""
        self._deadlines.pop(name, None)

    def deadline_of(self, name: Hashable) -> int | None:
        """Give when ``name`` comes due; None when it is not set."""
        return self._deadlines.get(name)

    @property
    def next_ms(self) -> int | None:
        """The nearest deadline; None when nothing is set."""
        self._settle()
        return self._queue[0][0] if self._queue else None

    def due(self, now_ms: int) -> list[Hashable]:
        """Take out the names that have come due, the earliest first."""
        found: list[Hashable] = []
        while (nearest := self.next_ms) is not None and nearest <= now_ms:
            _, _, name = heapq.heappop(self._queue)
            del self._queued[name], self._deadlines[name]
            found.append(name)
        return found

    def shift(self, by_ms: int) -> None:
        """Move every deadline: the clock was set, and what is left of each wait stays the same."""
        moved = {name: at_ms + by_ms for name, at_ms in self._deadlines.items()}
        self._deadlines, self._queued, self._queue = {}, {}, []
        for name, at_ms in moved.items():
            self.set(name, at_ms)

    def _settle(self) -> None:
        """Drop or move what stands first in the queue until it is a deadline that holds."""
        while self._queue:
            at_ms, _, name = self._queue[0]
            wanted = self._deadlines.get(name)
            if wanted == at_ms and self._queued.get(name) == at_ms:
                return
            heapq.heappop(self._queue)
            if self._queued.get(name) != at_ms:
                continue  # an earlier place took over from this one
            del self._queued[name]
            if wanted is not None:
                self._push(name, wanted)

    def _push(self, name: Hashable, at_ms: int) -> None:
        self._count += 1  # equal deadlines come due in the order they were set
        self._queued[name] = at_ms
        heapq.heappush(self._queue, (at_ms, self._count, name))
