from pathlib import Path

import pytest

from support.batches import batch
from twinlog.broker.clock import Clock
from twinlog.broker.loops.housekeeping import Housekeeping
from twinlog.broker.partition_news import PartitionNews
from twinlog.broker.partitions import Partition, Partitions
from twinlog.broker.waiting import Waiting
from twinlog.cluster.facts import DesiredState, MirrorTopicFact
from twinlog.config.broker import BROKER
from twinlog.config.declare import Settings
from twinlog.model.ids import NO_TOPIC_ID, BrokerId, LeaderEpoch, TopicName, TopicPartition
from twinlog.replication.fetch_sessions import FetchSessions
from twinlog.replication.leader import LeaderReplica
from twinlog.storage.logs import Logs
from twinlog.storage.settings import LogSettings

OF = TopicPartition(TopicName("t"), 0)
ME = BrokerId(1)


class World:
    """One partition with three old segments of one batch each, and who keeps it tidy."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.logs = Logs([str(folder)])
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
        settings = Settings.of(BROKER, {})
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


def test_high_watermarks_are_remembered_on_disk(world: World) -> None:
    world.housekeeping.write_high_watermarks()
    text = (world.folder / "replication-offset-checkpoint").read_text()
    assert text.splitlines() == ["0", "1", "t 0 6"]


def test_idle_producers_are_forgotten(world: World) -> None:
    world.partition.append(batch(1, producer=(5, 0, 0), timestamp=1_000), now_ms=1_000)
    assert world.partition.log.producer_count == 1
    world.housekeeping.expire_producers()
    assert world.partition.log.producer_count == 1, "it has written since the last look"
    world.housekeeping.expire_producers()
    assert world.partition.log.producer_count == 0
