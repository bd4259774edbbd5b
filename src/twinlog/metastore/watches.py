"""Hands committed changes to the watchers of one process, with bounded memory for the slow."""

import asyncio
import weakref
from collections import deque
from typing import Final, Self

from twinlog.metastore.store import ChangeBatch, Compacted, Revision

HISTORY_BATCHES_MAX: Final = 1_024
WATCH_QUEUE_BATCHES_MAX: Final = 1_024


class Watcher:
    """One watcher's queue, iterated; at its bound the queue is dropped for one ``Compacted``."""

    def __init__(self, prefix: bytes) -> None:
        """Watch the keys that begin with ``prefix``."""
        self._prefix = prefix
        self._queue: deque[ChangeBatch] = deque()
        self._is_compacted = False
        self._has_ended = False
        self._woken = asyncio.Event()

    def offer(self, batch: ChangeBatch) -> None:
        """Queue what of the batch lies under the prefix."""
        changes = tuple(c for c in batch.changes if c.key.startswith(self._prefix))
        if not changes or self._is_compacted:
            return
        if len(self._queue) >= WATCH_QUEUE_BATCHES_MAX:
            self.compact()
            return
        self._queue.append(ChangeBatch(batch.revision, changes))
        self._woken.set()

    def compact(self) -> None:
        """Forget what is queued and tell the watcher to list again."""
        self._queue.clear()
        self._is_compacted = True
        self._woken.set()

    def __aiter__(self) -> Self:
        """Give itself: a watch is iterated once."""
        return self

    async def __anext__(self) -> ChangeBatch | Compacted:
        """Wait for the next batch; after ``Compacted`` there is none."""
        while not self._queue:
            if self._has_ended:
                raise StopAsyncIteration
            if self._is_compacted:
                self._has_ended = True
                return Compacted()
            self._woken.clear()
            await self._woken.wait()
        return self._queue.popleft()


class WatchHub:
    """The last batches that were committed, and everybody who waits for the next.

    Watchers are held weakly: one that nobody iterates any more costs nothing.
    """

    def __init__(self, revision: Revision) -> None:
        """Begin with no history: all changes up to ``revision`` must be listed."""
        self._history: deque[ChangeBatch] = deque()
        self._history_after = revision
        self._watchers: weakref.WeakSet[Watcher] = weakref.WeakSet()

    def publish(self, batch: ChangeBatch) -> None:
        """Hand a committed batch to all watchers; batches come in the order of their revisions."""
        self._history.append(batch)
        if len(self._history) > HISTORY_BATCHES_MAX:
            self._history_after = self._history.popleft().revision
        for watcher in self._watchers:
            watcher.offer(batch)

    def watch(self, prefix: bytes, after: Revision) -> Watcher:
        """Register at once, so that nothing committed from now on is missed."""
        watcher = Watcher(prefix)
        if after < self._history_after:
            watcher.compact()
        for batch in self._history:
            if batch.revision > after:
                watcher.offer(batch)
        self._watchers.add(watcher)
        return watcher
