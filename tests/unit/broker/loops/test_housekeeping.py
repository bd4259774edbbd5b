import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from support.batches import batch
from twinlog.broker.clock import Clock
from twinlog.broker.loops import housekeeping
from twinlog.broker.loops.housekeeping import Housekeeping
from twinlog.broker.partition_news import PartitionNews
from twinlog.broker.partitions import Partition, Partitions
from twinlog.broker.waiting import Waiting
from twinlog.cluster.facts import DesiredState, MirrorTopicFact
from twinlog.config.broker import BROKER
from twinlog.config.declare import Settings
from twinlog.model.errors import DiskError
from twinlog.model.ids import NO_TOPIC_ID, BrokerId, LeaderEpoch, TopicName, TopicPartition
from twinlog.replication.fetch_sessions import FetchSessions
from twinlog.replication.leader import LeaderReplica
from twinlog.storage.disk import Disk, OpenFile
from twinlog.storage.log import PartitionLog
from twinlog.storage.logs import Logs
from twinlog.storage.settings import LogSettings

OF = TopicPartition(TopicName("t"), 0)
ME = BrokerId(1)


class StickyDisk(Disk):
    """A disk that keeps what should be removed, a number of times, and may fail to flush."""

    __slots__ = ("on_sync", "refusals")

    def __init__(self) -> None:
        self.refusals = 0
        self.on_sync: Callable[[str], None] = lambda path: None

    def sync(self, file: OpenFile) -> None:
        self.on_sync(file.path)
        super().sync(file)

    def remove_folder(self, path: str) -> None:
        if self.refusals:
            self.refusals -= 1
            raise DiskError(f"cannot remove {path}: Input/output error")
        super().remove_folder(path)


class World:
    """One partition with three old segments of one batch each, and who keeps it tidy."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.disk = StickyDisk()
        self.logs = Logs([str(folder)], disk=self.disk)
        log = self.logs.create(OF, NO_TOPIC_ID, LogSettings(retention_ms=1_000))
        replica = LeaderReplica(
            ME,
            leader_epoch=LeaderEpoch(0),
            replicas=[ME],
            isr=[ME],
            log_start=log.start,
            log_end=log.end,
            high_watermark=log.end,
            now_ms=0,
        )
        news = PartitionNews(Waiting(), FetchSessions(1, lambda: 1))
        self.partition = Partition(OF, NO_TOPIC_ID, log, replica, news)
        partitions = Partitions()
        partitions.add(self.partition)
        for _ in range(3):
            self.partition.append(batch(2, timestamp=1_000), now_ms=1_000)
            log.roll()
        settings = Settings.of(BROKER, {"log.segment.delete.delay.ms": "0"})
        self.housekeeping = Housekeeping(settings, self.logs, partitions, Clock())


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_what_is_too_old_goes_and_the_log_start_follows(world: World) -> None:
    world.housekeeping.apply_retention()
    assert world.partition.log.start == world.partition.log.end == 6
    assert world.partition.high_watermark == 6


def test_a_mirrors_log_starts_where_its_sources_does_whatever_retention_says(
    world: World,
) -> None:
    world.partition.follow_mirror(MirrorTopicFact("m", DesiredState.MIRRORING))
    world.housekeeping.apply_retention()
    assert world.partition.log.start == 0


async def test_high_watermarks_are_remembered_on_disk(world: World) -> None:
    await world.housekeeping.write_high_watermarks()
    text = (world.folder / "replication-offset-checkpoint").read_text()
    assert text.splitlines() == ["0", "1", "t 0 6"]


async def test_nobody_waits_for_the_disk_while_checkpoints_are_written(world: World) -> None:
    waited_by: set[int] = set()
    world.disk.on_sync = lambda path: waited_by.add(threading.get_ident())
    await world.housekeeping.write_high_watermarks()
    await world.housekeeping.flush_all()
    assert waited_by
    assert threading.get_ident() not in waited_by


def test_idle_producers_are_forgotten(world: World) -> None:
    world.partition.append(batch(1, producer=(5, 0, 0), timestamp=1_000), now_ms=1_000)
    assert world.partition.log.producer_count == 1
    world.housekeeping.expire_producers()
    assert world.partition.log.producer_count == 1, "it has written since the last look"
    world.housekeeping.expire_producers()
    assert world.partition.log.producer_count == 0


async def test_files_that_cannot_be_removed_are_tried_again_and_stop_nobody(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "TRASH_INTERVAL_MS", 1)
    world.disk.refusals = 2
    world.logs.delete(OF, UUID(int=1))
    assert list(world.folder.glob("*-delete"))
    running = asyncio.ensure_future(world.housekeeping.run())
    for _ in range(100_000):
        if not list(world.folder.glob("*-delete")):
            break
        await asyncio.sleep(0)
    assert (world.disk.refusals, list(world.folder.glob("*-delete"))) == (0, [])
    assert not running.done()
    running.cancel()


def two_more_logs(world: World) -> list[PartitionLog]:
    logs = [world.partition.log]
    for index in (1, 2):
        log = world.logs.create(TopicPartition(OF.topic, index), NO_TOPIC_ID, LogSettings())
        log.append_as_leader(batch(1), leader_epoch=0, now_ms=1)
        logs.append(log)
    return logs


async def test_a_log_that_cannot_be_flushed_keeps_no_other_from_it(world: World) -> None:
    first, second, third = two_more_logs(world)

    def fail(path: str) -> None:
        if "/t-1/" in path:
            raise DiskError(f"cannot flush {path}: Input/output error")

    world.disk.on_sync = fail
    await world.housekeeping.flush_all()
    assert [log.recovery_point for log in (first, second, third)] == [6, 0, 1]


async def test_a_flush_that_succeeds_after_one_that_failed_vouches_for_nothing(
    world: World,
) -> None:
    """The system may have dropped what it could not write: what it flushes then is the rest."""
    _, second, third = two_more_logs(world)

    def fail(path: str) -> None:
        if "/t-1/" in path:
            raise DiskError(f"cannot flush {path}: Input/output error")

    world.disk.on_sync = fail
    await world.housekeeping.flush_all()
    world.disk.on_sync = lambda path: None
    third.append_as_leader(batch(1), leader_epoch=0, now_ms=1)
    await world.housekeeping.flush_all()
    assert (second.recovery_point, third.recovery_point) == (0, 2)
    with pytest.raises(DiskError, match=r"t-1/.*Input/output error; this log takes no more"):
        second.append_as_leader(batch(1), leader_epoch=0, now_ms=1)


async def test_a_log_deleted_while_others_are_flushed_leaves_nothing_in_its_old_folder(
    world: World,
) -> None:
    _, second, _ = two_more_logs(world)

    def delete_second(path: str) -> None:
        if world.logs.get(second.of) is second:
            world.logs.delete(second.of, UUID(int=1))
            world.logs.create(second.of, NO_TOPIC_ID, LogSettings())

    world.disk.on_sync = delete_second
    second.roll()
    await world.housekeeping.flush_all()
    names = {path.name for path in (world.folder / "t-1").glob("*.log")}
    assert names == {f"{0:020d}.log"}
