"""A metadata store in memory: for tests, and for a process that need not remember."""

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from itertools import takewhile

from twinlog.metastore.local import InlineExecutor, LocalStore, Written
from twinlog.metastore.store import (
    ABSENT,
    ChangeBatch,
    Committed,
    Conflict,
    Entry,
    KeyChange,
    Listing,
    Put,
    Revision,
    Unchanged,
    Write,
)


def open_memory_store(now_ms: Callable[[], int]) -> LocalStore:
    """Give an empty store; it belongs to the running event loop."""
    return LocalStore(MemoryTable(), InlineExecutor(), revision=Revision(0), now_ms=now_ms)


class MemoryTable:
    """Entries in a dict, their keys sorted beside it."""

    def __init__(self) -> None:
        """Begin empty."""
        self._entries: dict[bytes, Entry] = {}
        self._keys: list[bytes] = []
        self._revision = Revision(0)

    def get(self, key: bytes) -> Entry | None:
        """Give the entry of ``key``."""
        return self._entries.get(key)

    def list(self, prefix: bytes) -> Listing:
        """Give all entries under ``prefix`` in key order."""
        first = bisect_left(self._keys, prefix)
        keys = takewhile(lambda key: key.startswith(prefix), self._keys[first:])
        return Listing(tuple(self._entries[key] for key in keys), self._revision)

    def transact(
        self, conditions: Sequence[Unchanged], writes: Sequence[Write], *, is_leased: bool
    ) -> Written:
        """Write all or nothing; in memory nothing survives the process anyway."""
        failed = tuple(c.key for c in conditions if self._revision_of(c.key) != c.revision)
        if failed:
            return Written(Conflict(failed))
        changes = [change for write in writes if (change := self._take(write))]
        if not changes:
            return Written(Committed(self._revision))
        self._revision = Revision(self._revision + 1)
        return Written(Committed(self._revision), ChangeBatch(self._revision, tuple(changes)))

    def close(self) -> None:
        """Forget nothing: there is nothing to let go of."""

    def _revision_of(self, key: bytes) -> Revision:
        entry = self._entries.get(key)
        return entry.revision if entry else ABSENT

    def _take(self, write: Write) -> KeyChange | None:
        """Carry out one write under the next revision; None when it changes nothing."""
        key = write.key
        if isinstance(write, Put):
            if key not in self._entries:
                insort(self._keys, key)
            self._entries[key] = Entry(key, write.value, Revision(self._revision + 1))
            return KeyChange(key, write.value)
        if self._entries.pop(key, None) is None:
            return None
        del self._keys[bisect_left(self._keys, key)]
        return KeyChange(key, None)
