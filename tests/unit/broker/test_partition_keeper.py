from pathlib import Path
from uuid import UUID

import pytest

from support.batches import batch
from twinlog.broker.clock import Clock
from twinlog.broker.partition_keeper import PartitionKeeper
from twinlog.broker.partition_news import PartitionNews
from twinlog.broker.partitions import Partitions
from twinlog.broker.waiting import Waiting
from twinlog.cluster.changes import BrokerConfigSet, Change, TopicDeleted, TopicSet
from twinlog.cluster.facts import PartitionFact, TopicFact
from twinlog.cluster.image import ClusterImage
from twinlog.config.broker import BROKER
from twinlog.config.declare import Settings
from twinlog.model.errors import DiskError
from twinlog.model.ids import BrokerId, LeaderEpoch, TopicId, TopicName, TopicPartition
from twinlog.replication.fetch_sessions import FetchSessions
from twinlog.storage.disk import Disk
from twinlog.storage.logs import Logs
from twinlog.storage.settings import LogSettings

ME, OTHER = BrokerId(1), BrokerId(2)
NAME = TopicName("t")


class StuckDisk(Disk):
    """A disk on which nothing can be renamed while ``is_stuck``."""

    __slots__ = ("is_stuck",)

    def __init__(self) -> None:
        self.is_stuck = False

    def rename(self, path: str, to: str) -> None:
        if self.is_stuck:
            raise DiskError(f"cannot rename {path}: Input/output error")
        super().rename(path, to)


class World:
    """A keeper, and the image it follows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.disk = StuckDisk()
        self.logs = Logs([str(folder)], disk=self.disk)
        self.partitions = Partitions()
        self.image = ClusterImage()
        news = PartitionNews(Waiting(), FetchSessions(1, lambda: 1))
        settings = Settings.of(BROKER, {})
        self.keeper = PartitionKeeper(ME, settings, self.logs, self.partitions, news, Clock())

    def change(self, *changes: Change) -> None:
        before, self.image = self.image, self.image.with_changes(changes)
        for _ in self.keeper.follow(before, self.image, changes):
            pass


def topic(
    *, id_: int = 1, epoch: int = 0, leaders: tuple[BrokerId, ...] = (ME,), **config: str
) -> TopicSet:
    partitions = tuple(
        PartitionFact(leader, LeaderEpoch(epoch), (leader,), (leader,)) for leader in leaders
    )
    overrides = {name.replace("_", "."): value for name, value in config.items()}
    return TopicSet(TopicFact(NAME, TopicId(UUID(int=id_)), partitions, overrides))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def of(index: int) -> TopicPartition:
    return TopicPartition(NAME, index)


def test_the_partitions_this_broker_leads_are_opened_and_no_others(world: World) -> None:
    world.change(topic(leaders=(ME, OTHER, ME)))
    assert [world.partitions.find(of(i)) is not None for i in range(3)] == [True, False, True]
    assert (world.folder / "t-2" / "partition.metadata").exists()
    assert not (world.folder / "t-1").exists()


def test_a_new_leader_epoch_and_new_settings_reach_the_partition(world: World) -> None:
    world.change(topic())
    partition = world.partitions.led(of(0))
    partition.append(batch(1), now_ms=1_000)
    world.change(topic(epoch=4, retention_ms="77", min_insync_replicas="2"))
    assert world.partitions.led(of(0)) is partition
    assert partition.leader_epoch == 4
    assert partition.high_watermark == 1
    assert partition.log.settings.retention_ms == 77
    assert partition.is_under_min_isr


def test_a_default_set_at_run_time_reaches_every_partition_that_has_no_own(world: World) -> None:
    world.change(topic(segment_ms="66"))
    world.change(
        BrokerConfigSet(None, {"log.retention.ms": "88", "log.roll.ms": "99"}),
        BrokerConfigSet(OTHER, {"log.retention.ms": "11"}),
    )
    settings = world.partitions.led(of(0)).log.settings
    assert (settings.retention_ms, settings.segment_ms) == (88, 66)
    world.change(BrokerConfigSet(ME, {"log.retention.ms": "55"}))
    assert world.partitions.led(of(0)).log.settings.retention_ms == 55
    before, world.image = world.image, world.image.with_change(BrokerConfigSet(ME, {}))
    world.keeper.catch_up(before, world.image)
    assert world.partitions.led(of(0)).log.settings.retention_ms == 88


def test_a_deleted_topic_is_gone_from_memory_and_its_folder_is_renamed(world: World) -> None:
    world.change(topic())
    world.change(TopicDeleted(NAME))
    assert world.partitions.find(of(0)) is None
    names = [path.name for path in world.folder.iterdir() if path.name.startswith("t-0")]
    assert len(names) == 1
    assert names[0].endswith("-delete")


def test_a_topic_made_again_under_its_name_begins_empty(world: World) -> None:
    world.change(topic(id_=1))
    world.partitions.led(of(0)).append(batch(3), now_ms=1_000)
    world.change(topic(id_=2))
    partition = world.partitions.led(of(0))
    assert (partition.topic_id, partition.log.end) == (UUID(int=2), 0)


def test_files_that_cannot_be_given_up_are_no_new_topics_files(world: World) -> None:
    world.change(topic())
    world.partitions.led(of(0)).append(batch(1), now_ms=1)
    world.disk.is_stuck = True
    world.change(TopicDeleted(NAME))
    assert world.partitions.find(of(0)) is None
    world.change(topic(id_=2))
    assert world.partitions.find(of(0)) is None, "its folder holds another topic's records"
    world.disk.is_stuck = False
    world.keeper.catch_up(world.image, world.image)
    assert world.partitions.led(of(0)).log.end == 0
    assert any("-stray" in path.name for path in world.folder.iterdir())


def test_a_folder_left_by_another_topic_of_the_name_is_set_aside_with_its_records(
    tmp_path: Path,
) -> None:
    """The broker died between the deletion in the store and that of the folder."""
    left = Logs([str(tmp_path)])
    left.create(of(0), TopicId(UUID(int=1)), LogSettings()).append_as_leader(
        batch(3), leader_epoch=0, now_ms=1_000
    )
    left.close(is_clean=True)
    world = World(tmp_path)
    world.logs.load(lambda _: LogSettings(), 0)
    world.change(topic(id_=2))
    assert world.partitions.led(of(0)).log.end == 0
    aside = [path for path in tmp_path.iterdir() if path.name.endswith("-stray")]
    assert len(aside) == 1
    assert sum(path.stat().st_size for path in aside[0].glob("*.log")) > 0


def test_catching_up_over_missed_changes_ends_where_following_would(world: World) -> None:
    world.change(topic(id_=1))
    before = world.image
    world.image = world.image.with_changes([topic(id_=2, leaders=(ME, ME))])
    world.keeper.catch_up(before, world.image)
    assert len(world.partitions) == 2
    assert {p.topic_id for p in world.partitions} == {UUID(int=2)}
