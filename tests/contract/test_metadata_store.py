"""What every metadata store must do, asked of each implementation."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from twinlog.metastore import watches
from twinlog.metastore.memory import open_memory_store
from twinlog.metastore.sqlite import open_sqlite_store
from twinlog.metastore.store import (
    ABSENT,
    ChangeBatch,
    Committed,
    Compacted,
    Conflict,
    Delete,
    KeyChange,
    LeaseGoneError,
    MetadataStore,
    Put,
    Revision,
    Unchanged,
)


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now_ms = 1_000

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "sqlite"])
async def store(
    request: pytest.FixtureRequest, tmp_path: Path, clock: Clock
) -> AsyncIterator[MetadataStore]:
    opened = (
        open_memory_store(clock)
        if request.param == "memory"
        else open_sqlite_store(tmp_path / "metadata.db", clock)
    )
    yield opened
    await opened.close()


async def put(store: MetadataStore, key: bytes, value: bytes) -> Revision:
    outcome = await store.transact([], [Put(key, value)])
    assert isinstance(outcome, Committed)
    return outcome.revision


@asynccontextmanager
async def in_time() -> AsyncIterator[None]:
    async with asyncio.timeout(60):
        yield


async def test_a_key_that_was_never_written_is_absent(store: MetadataStore) -> None:
    assert await store.get(b"a") is None
    assert (await store.list(b"")).entries == ()


async def test_what_is_put_is_found_with_its_revision(store: MetadataStore) -> None:
    first = await put(store, b"a", b"1")
    second = await put(store, b"b", b"2")
    assert second > first > ABSENT
    entry = await store.get(b"a")
    assert entry is not None
    assert (entry.value, entry.revision) == (b"1", first)


async def test_a_listing_holds_the_prefix_in_key_order(store: MetadataStore) -> None:
    for key in (b"t/b", b"t/a", b"s", b"u", b"t/\xff\xff", b"t"):
        await put(store, key, b"v")
    listing = await store.list(b"t/")
    assert [entry.key for entry in listing.entries] == [b"t/a", b"t/b", b"t/\xff\xff"]
    everything = await store.list(b"")
    assert len(everything.entries) == 6
    assert everything.revision == max(entry.revision for entry in everything.entries)


async def test_a_prefix_of_0xff_bytes_has_no_end(store: MetadataStore) -> None:
    await put(store, b"\xff\xff\x01", b"v")
    assert len((await store.list(b"\xff\xff")).entries) == 1


async def test_a_transaction_writes_all_under_one_revision(store: MetadataStore) -> None:
    await put(store, b"gone", b"x")
    outcome = await store.transact([], [Put(b"a", b"1"), Put(b"b", b"2"), Delete(b"gone")])
    assert isinstance(outcome, Committed)
    listing = await store.list(b"")
    assert [(e.key, e.revision) for e in listing.entries] == [
        (b"a", outcome.revision),
        (b"b", outcome.revision),
    ]


async def test_a_condition_that_fails_writes_nothing_and_is_named(store: MetadataStore) -> None:
    revision = await put(store, b"a", b"1")
    outcome = await store.transact(
        [Unchanged(b"a", revision), Unchanged(b"b", Revision(99))], [Put(b"a", b"2")]
    )
    assert outcome == Conflict((b"b",))
    entry = await store.get(b"a")
    assert entry is not None
    assert entry.value == b"1"


async def test_of_two_writers_from_the_same_revision_one_wins(store: MetadataStore) -> None:
    revision = await put(store, b"a", b"0")
    outcomes = await asyncio.gather(
        *(store.transact([Unchanged(b"a", revision)], [Put(b"a", b"%d" % n)]) for n in range(5))
    )
    assert sum(isinstance(outcome, Committed) for outcome in outcomes) == 1


async def test_a_key_can_be_created_only_while_it_is_absent(store: MetadataStore) -> None:
    create = [Unchanged(b"a", ABSENT)]
    assert isinstance(await store.transact(create, [Put(b"a", b"1")]), Committed)
    assert await store.transact(create, [Put(b"a", b"2")]) == Conflict((b"a",))
    await store.transact([], [Delete(b"a")])
    assert isinstance(await store.transact(create, [Put(b"a", b"3")]), Committed)


async def test_removing_what_is_absent_changes_nothing(store: MetadataStore) -> None:
    before = (await store.list(b"")).revision
    assert await store.transact([], [Delete(b"a")]) == Committed(before)


async def test_a_watch_gives_every_later_change_of_its_prefix_in_order(
    store: MetadataStore,
) -> None:
    old = await put(store, b"t/a", b"old")
    batches = store.watch(b"t/", old)
    await put(store, b"s", b"not of the prefix")
    second = await store.transact([], [Put(b"t/b", b"1"), Put(b"s", b"2"), Delete(b"t/a")])
    third = await put(store, b"t/b", b"3")
    assert isinstance(second, Committed)
    async with in_time():
        assert await anext(batches) == ChangeBatch(
            second.revision, (KeyChange(b"t/b", b"1"), KeyChange(b"t/a", None))
        )
        assert await anext(batches) == ChangeBatch(third, (KeyChange(b"t/b", b"3"),))


async def test_a_watch_from_an_earlier_revision_begins_with_what_was_missed(
    store: MetadataStore,
) -> None:
    before = (await store.list(b"")).revision
    revision = await put(store, b"a", b"1")
    async with in_time():
        assert await anext(store.watch(b"", before)) == ChangeBatch(
            revision, (KeyChange(b"a", b"1"),)
        )


async def test_a_watcher_that_waits_is_woken(store: MetadataStore) -> None:
    batches = store.watch(b"", (await store.list(b"")).revision)

    async def write_later() -> None:
        await put(store, b"a", b"1")

    async with in_time(), asyncio.TaskGroup() as tasks:
        tasks.create_task(write_later())
        batch = await anext(batches)
    assert isinstance(batch, ChangeBatch)


async def test_a_watcher_that_is_too_slow_is_told_to_list_again(
    store: MetadataStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watches, "WATCH_QUEUE_BATCHES_MAX", 3)
    batches = store.watch(b"", (await store.list(b"")).revision)
    for number in range(5):
        await put(store, b"a", b"%d" % number)
    async with in_time():
        assert [batch async for batch in batches] == [Compacted()]


async def test_a_lease_takes_its_keys_with_it_when_its_time_is_over(
    store: MetadataStore, clock: Clock
) -> None:
    lease = await store.grant_lease(500)
    assert isinstance(await store.hold(lease, b"leader", b"me"), Committed)
    await put(store, b"other", b"stays")
    clock.now_ms += 499
    await store.keep_alive(lease)
    clock.now_ms += 499
    assert await store.get(b"leader") is not None
    clock.now_ms += 1
    assert await store.get(b"leader") is None
    assert await store.get(b"other") is not None
    with pytest.raises(LeaseGoneError):
        await store.keep_alive(lease)
    with pytest.raises(LeaseGoneError):
        await store.hold(lease, b"leader", b"me")


async def test_only_one_lease_holds_a_key(store: MetadataStore) -> None:
    first, second = await store.grant_lease(500), await store.grant_lease(500)
    assert isinstance(await store.hold(first, b"leader", b"1"), Committed)
    assert await store.hold(second, b"leader", b"2") == Conflict((b"leader",))
    await store.revoke_lease(first)
    assert isinstance(await store.hold(second, b"leader", b"2"), Committed)
    await store.revoke_lease(first)  # already gone: no error, and nobody else's key is touched
    assert await store.get(b"leader") is not None


async def test_watchers_see_a_lease_end(store: MetadataStore, clock: Clock) -> None:
    lease = await store.grant_lease(500)
    await store.hold(lease, b"leader", b"1")
    batches = store.watch(b"", (await store.list(b"")).revision)
    clock.now_ms += 500
    await store.get(b"anything")
    async with in_time():
        batch = await anext(batches)
    assert isinstance(batch, ChangeBatch)
    assert batch.changes == (KeyChange(b"leader", None),)


async def test_a_key_that_was_written_anew_no_longer_ends_with_the_lease(
    store: MetadataStore,
) -> None:
    lease = await store.grant_lease(500)
    await store.hold(lease, b"a", b"1")
    await put(store, b"a", b"2")
    await store.revoke_lease(lease)
    assert await store.get(b"a") is not None
