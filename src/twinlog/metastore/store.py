"""The port to where cluster facts are kept: keys, values, revisions, watches and leases.

Nothing of Kafka is known here. Keys and values are bytes. Every committed transaction gets the next
revision; a key's revision is that of the transaction that last wrote it, and 0 when it is absent.
The port is cut so that etcd fits it as well as SQLite: compare-and-set by revision, watches by
prefix from a revision on, leases that take their keys with them.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import NewType, Protocol

Revision = NewType("Revision", int)
LeaseId = NewType("LeaseId", int)

ABSENT = Revision(0)


class StoreError(Exception):
    """The store cannot be opened, read or written; the message names it and says what to do."""


class LeaseGoneError(Exception):
    """The lease has expired or was revoked, and its keys are gone with it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A key, its value, and the revision of the transaction that last wrote it."""

    key: bytes
    value: bytes
    revision: Revision


@dataclass(frozen=True, slots=True)
class Listing:
    """All entries under a prefix in key order, and the store's revision they stand for."""

    entries: tuple[Entry, ...]
    revision: Revision


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Holds when the key's revision is still this; ``ABSENT`` asks that there is no such key."""

    key: bytes
    revision: Revision


@dataclass(frozen=True, slots=True)
class Put:
    """Set a key to a value."""

    key: bytes
    value: bytes


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a key; removing one that is absent is no error and no change."""

    key: bytes


Write = Put | Delete


@dataclass(frozen=True, slots=True)
class Committed:
    """All writes are durable, under this revision."""

    revision: Revision


@dataclass(frozen=True, slots=True)
class Conflict:
    """Nothing was written: these keys are not at the revisions the conditions asked for."""

    keys: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class KeyChange:
    """What one key became; ``value`` None says that it was removed."""

    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """What one transaction changed under the watched prefix."""

    revision: Revision
    changes: tuple[KeyChange, ...]


@dataclass(frozen=True, slots=True)
class Compacted:
    """The watcher missed changes (it was too slow, or asked for too old a revision).

    It is the last thing a watch gives: list again, then watch from the listing's revision.
    """


class MetadataStore(Protocol):
    """Eight methods over bytes; one contract suite (tests/contract) judges every implementation."""

    async def get(self, key: bytes) -> Entry | None:
        """Give the entry of ``key``, None when there is none."""
        ...

    async def list(self, prefix: bytes) -> Listing:
        """Give all entries whose key begins with ``prefix``, as of one revision."""
        ...

    async def transact(
        self, conditions: Sequence[Unchanged], writes: Sequence[Write]
    ) -> Committed | Conflict:
        """Write all or, if a condition fails, nothing; committed means safe from power loss."""
        ...

    def watch(self, prefix: bytes, after: Revision) -> AsyncIterator[ChangeBatch | Compacted]:
        """Give every later change under ``prefix``, in order, each transaction as one batch."""
        ...

    async def grant_lease(self, ttl_ms: int) -> LeaseId:
        """Give a lease that ends ``ttl_ms`` after its last sign of life."""
        ...

    async def keep_alive(self, lease: LeaseId) -> None:
        """Begin the lease's time anew, or raise LeaseGoneError."""
        ...

    async def revoke_lease(self, lease: LeaseId) -> None:
        """End the lease now and remove its keys; one that is gone already is no error."""
        ...

    async def hold(self, lease: LeaseId, key: bytes, value: bytes) -> Committed | Conflict:
        """Create ``key`` for as long as the lease lives; Conflict if somebody has it already.

        Raises LeaseGoneError when the lease has ended.
        """
        ...


def prefix_end(prefix: bytes) -> bytes | None:
    """Give the first key after all those that begin with ``prefix``; None when there is none."""
    stripped = prefix.rstrip(b"\xff")
    if not stripped:
        return None
    return stripped[:-1] + bytes([stripped[-1] + 1])
