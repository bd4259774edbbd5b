import gc

import pytest

from twinlog.metastore import watches
from twinlog.metastore.store import ChangeBatch, Compacted, KeyChange, Revision
from twinlog.metastore.watches import WatchHub


def batch(revision: int, key: bytes = b"a") -> ChangeBatch:
    return ChangeBatch(Revision(revision), (KeyChange(key, b"v"),))


async def test_a_watch_from_before_the_history_is_told_to_list_again() -> None:
    hub = WatchHub(Revision(7))
    assert [b async for b in hub.watch(b"", Revision(6))] == [Compacted()]


async def test_history_that_was_dropped_cannot_be_watched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watches, "HISTORY_BATCHES_MAX", 2)
    hub = WatchHub(Revision(0))
    for revision in (1, 2, 3):
        hub.publish(batch(revision))
    assert await anext(hub.watch(b"", Revision(1))) == batch(2)
    assert await anext(hub.watch(b"", Revision(0))) == Compacted()


async def test_after_compaction_nothing_more_is_given() -> None:
    hub = WatchHub(Revision(7))
    watcher = hub.watch(b"", Revision(0))
    hub.publish(batch(8))
    assert [b async for b in watcher] == [Compacted()]


async def test_a_watcher_nobody_holds_is_forgotten() -> None:
    hub = WatchHub(Revision(0))
    hub.watch(b"", Revision(0))
    gc.collect()
    assert len(hub._watchers) == 0
