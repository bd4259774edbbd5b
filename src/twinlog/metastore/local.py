"""A metadata store inside one process: a table, its watchers, its leases."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import ParamSpec, Protocol, TypeVar

from twinlog.metastore.leases import LeaseTable
from twinlog.metastore.store import (
    ABSENT,
    ChangeBatch,
    Committed,
    Compacted,
    Conflict,
    Delete,
    Entry,
    LeaseGoneError,
    LeaseId,
    Listing,
    Put,
    Revision,
    Unchanged,
    Write,
)
from twinlog.metastore.watches import WatchHub

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Written:
    """What a table's transaction came to, and what it changed, if anything."""

    outcome: Committed | Conflict
    batch: ChangeBatch | None = None


class Table(Protocol):
    """Where the entries are; used by one thread at a time."""

    def get(self, key: bytes) -> Entry | None:
        """Give the entry of ``key``."""
        ...

    def list(self, prefix: bytes) -> Listing:
        """Give all entries under ``prefix`` in key order."""
        ...

    def transact(
        self, conditions: Sequence[Unchanged], writes: Sequence[Write], *, is_leased: bool
    ) -> Written:
        """Write all or nothing; leased keys do not survive the process."""
        ...

    def close(self) -> None:
        """Let go of files."""
        ...


class InlineExecutor(Executor):
    """Runs work at once, where it is asked for: for tables that never wait for a disk."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run ``fn`` and give a future that is done."""
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - handed to whoever awaits the future
            future.set_exception(error)
        return future


class LocalStore:
    """Implements MetadataStore for one process.

    All work on the table goes through one executor with one thread, in the order it was asked for.
    A committed batch is published from there, before its caller hears of it: so also when the
    caller was cancelled meanwhile, and always in the order of revisions.
    """

    def __init__(
        self, table: Table, executor: Executor, *, revision: Revision, now_ms: Callable[[], int]
    ) -> None:
        """Serve ``table``, which stands at ``revision``; ``now_ms`` is the clock of leases."""
        self._table = table
        self._executor = executor
        self._loop = asyncio.get_running_loop()
        self._hub = WatchHub(revision)
        self._leases = LeaseTable(now_ms)
        self._now_ms = now_ms
        self._expiry: asyncio.TimerHandle | None = None

    async def get(self, key: bytes) -> Entry | None:
        """Give the entry of ``key``, None when there is none."""
        self._drop_expired()
        return await self._run(self._table.get, key)

    async def list(self, prefix: bytes) -> Listing:
        """Give all entries whose key begins with ``prefix``, as of one revision."""
        self._drop_expired()
        return await self._run(self._table.list, prefix)

    async def transact(
        self, conditions: Sequence[Unchanged], writes: Sequence[Write]
    ) -> Committed | Conflict:
        """Write all or, if a condition fails, nothing."""
        self._drop_expired()
        outcome = await self._run(self._write, tuple(conditions), tuple(writes), is_leased=False)
        if isinstance(outcome, Committed):
            for write in writes:
                self._leases.forget_key(write.key)
        return outcome

    def watch(self, prefix: bytes, after: Revision) -> AsyncIterator[ChangeBatch | Compacted]:
        """Give every later change under ``prefix``, in order, each transaction as one batch."""
        self._drop_expired()
        return self._hub.watch(prefix, after)

    async def grant_lease(self, ttl_ms: int) -> LeaseId:
        """Give a lease that ends ``ttl_ms`` after its last sign of life."""
        self._drop_expired()
        lease = self._leases.grant(ttl_ms)
        self._set_expiry_timer()
        return lease

    async def keep_alive(self, lease: LeaseId) -> None:
        """Begin the lease's time anew, or raise LeaseGoneError."""
        self._drop_expired()
        self._leases.keep_alive(lease)

    async def revoke_lease(self, lease: LeaseId) -> None:
        """End the lease now and remove its keys."""
        keys = self._leases.revoke(lease)
        if keys:
            await self._run(self._write, (), _deletes(keys), is_leased=False)

    async def hold(self, lease: LeaseId, key: bytes, value: bytes) -> Committed | Conflict:
        """Create ``key`` for as long as the lease lives; Conflict if somebody has it already."""
        self._drop_expired()
        self._leases.live(lease)
        outcome = await self._run(
            self._write, (Unchanged(key, ABSENT),), (Put(key, value),), is_leased=True
        )
        if isinstance(outcome, Committed):
            try:
                self._leases.live(lease).keys.add(key)
            except LeaseGoneError:  # it ended while the disk was slow
                await self._run(self._write, (), (Delete(key),), is_leased=False)
                raise
        return outcome

    async def close(self) -> None:
        """Finish the work that was asked for and let go of the table."""
        if self._expiry is not None:
            self._expiry.cancel()
        await self._run(self._table.close)
        self._executor.shutdown(wait=False)

    async def _run(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.wrap_future(self._executor.submit(fn, *args, **kwargs))

    def _write(
        self, conditions: Sequence[Unchanged], writes: Sequence[Write], *, is_leased: bool
    ) -> Committed | Conflict:
        """Run on the executor: write, and publish from here."""
        written = self._table.transact(conditions, writes, is_leased=is_leased)
        if written.batch is not None:
            self._loop.call_soon_threadsafe(self._hub.publish, written.batch)
        return written.outcome

    def _drop_expired(self) -> None:
        """Have the keys of ended leases removed before anything that is asked for from now on."""
        keys = self._leases.take_expired()
        if keys:
            self._executor.submit(self._write, (), _deletes(keys), is_leased=False)
        self._set_expiry_timer()

    def _set_expiry_timer(self) -> None:
        """See to it that watchers hear of an ended lease also when nobody asks for anything."""
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        ends_at_ms = self._leases.next_end_ms()
        if ends_at_ms is not None:
            delay_s = max(0, ends_at_ms - self._now_ms()) / 1_000
            self._expiry = self._loop.call_later(delay_s, self._drop_expired)


def _deletes(keys: set[bytes]) -> tuple[Write, ...]:
    return tuple(Delete(key) for key in sorted(keys))
