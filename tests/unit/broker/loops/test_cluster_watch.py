import asyncio
from dataclasses import replace
from pathlib import Path

from twinlog.broker.clock import Clock
from twinlog.broker.facts import Facts
from twinlog.broker.loops.cluster_watch import ClusterWatch
from twinlog.broker.partition_keeper import PartitionKeeper
from twinlog.broker.partition_news import PartitionNews
from twinlog.broker.partitions import Partitions
from twinlog.broker.waiting import Waiting
from twinlog.cluster.changes import Change, ClusterNamed, TopicSet
from twinlog.cluster.facts import PartitionFact, TopicFact
from twinlog.cluster.image import ClusterImage
from twinlog.cluster.records import stored_facts
from twinlog.config.broker import BROKER
from twinlog.config.declare import Settings
from twinlog.metastore.memory import open_memory_store
from twinlog.metastore.store import Put
from twinlog.metastore.watches import WATCH_QUEUE_BATCHES_MAX
from twinlog.model.ids import BrokerId, LeaderEpoch, TopicId, TopicName, TopicPartition
from twinlog.replication.fetch_sessions import FetchSessions
from twinlog.storage.logs import Logs

ME = BrokerId(1)
ONE = (PartitionFact(ME, LeaderEpoch(0), (ME,), (ME,)),)
TOPIC = TopicFact(TopicName("t"), TopicId(Clock().uuid()), ONE)


class World:
    def __init__(self, folder: Path) -> None:
        self.store = open_memory_store(lambda: 0)
        self.waiting = Waiting()
        self.facts = Facts(self.store, self.waiting)
        self.partitions = Partitions()
        news = PartitionNews(self.waiting, FetchSessions(1, lambda: 1))
        settings = Settings.of(BROKER, {})
        logs = Logs([str(folder)])
        keeper = PartitionKeeper(ME, settings, logs, self.partitions, news, Clock())
        self.watch = ClusterWatch(self.store, self.facts, keeper)


async def test_a_change_returns_only_when_its_partition_can_be_used(tmp_path: Path) -> None:
    world = World(tmp_path)
    told: list[tuple[ClusterImage, ClusterImage]] = []
    world.watch.subscribe(lambda before, after: told.append((before, after)))
    watching = asyncio.ensure_future(world.watch.run())
    await world.facts.change(lambda _: [TopicSet(TOPIC)])
    assert world.partitions.find(TopicPartition(TOPIC.name, 0)) is not None
    assert [len(after.topics) - len(before.topics) for before, after in told] == [1]
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


async def test_others_get_their_turn_while_many_partitions_are_opened(tmp_path: Path) -> None:
    world = World(tmp_path)
    seen: list[int] = []

    async def look() -> None:
        while len(world.partitions) < 20:
            seen.append(len(world.partitions))
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(world.watch.run())
        tasks.create_task(look())
        await world.facts.change(lambda _: [TopicSet(replace(TOPIC, partitions=20 * ONE))])
        assert len(world.partitions) == 20
        watching.cancel()
    assert set(seen) == set(range(20))


async def test_a_watch_that_missed_changes_reads_them_all(tmp_path: Path) -> None:
    world = World(tmp_path)
    other = Facts(world.store, Waiting())
    for index in range(WATCH_QUEUE_BATCHES_MAX + 10):
        await world.store.transact((), _writes(index))
    watching = asyncio.ensure_future(world.watch.run())
    await world.facts.wait_until(lambda: bool(world.facts.image.cluster_id), timeout_s=60)
    assert world.partitions.find(TopicPartition(TOPIC.name, 0)) is not None
    await other.load()
    assert other.image == world.facts.image
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


def _writes(index: int) -> list[Put]:
    changes: list[Change] = [ClusterNamed(f"c{index}"), TopicSet(TOPIC)]
    written = stored_facts(changes, ClusterImage().with_changes(changes))
    return [Put(fact.key, fact.value or b"") for fact in written]
