import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from twinlog.metastore.local import InlineExecutor, LocalStore, Written
from twinlog.metastore.memory import MemoryTable
from twinlog.metastore.store import LeaseGoneError, Put, Revision, Unchanged, Write


def clock() -> int:
    return 0


async def test_a_cancelled_writer_still_publishes_what_was_committed() -> None:
    store = LocalStore(
        MemoryTable(), ThreadPoolExecutor(max_workers=1), revision=Revision(0), now_ms=clock
    )
    batches = store.watch(b"", Revision(0))
    async with asyncio.TaskGroup() as tasks:
        writer = tasks.create_task(store.transact([], [Put(b"a", b"1")]))
        await asyncio.sleep(0)  # let it hand the work to the thread
        writer.cancel()
    # The thread may have been quicker or slower than the cancel; what the table has, was published.
    if await store.get(b"a") is not None:
        async with asyncio.timeout(60):
            await anext(batches)
    await store.close()


class SlowTable(MemoryTable):
    """A table whose every write takes a second of the test's clock."""

    now_ms = 0

    def transact(
        self, conditions: Sequence[Unchanged], writes: Sequence[Write], *, is_leased: bool
    ) -> Written:
        self.now_ms += 1_000
        return super().transact(conditions, writes, is_leased=is_leased)


async def test_a_lease_that_ends_while_the_key_is_written_leaves_no_key() -> None:
    table = SlowTable()
    store = LocalStore(table, InlineExecutor(), revision=Revision(0), now_ms=lambda: table.now_ms)
    lease = await store.grant_lease(100)
    with pytest.raises(LeaseGoneError):
        await store.hold(lease, b"k", b"v")
    assert await store.get(b"k") is None
    await store.close()


def test_the_inline_executor_hands_errors_to_the_future() -> None:
    def fail() -> None:
        raise ValueError("no")

    assert isinstance(InlineExecutor().submit(fail).exception(), ValueError)
    assert InlineExecutor().submit(lambda: 3).result() == 3
