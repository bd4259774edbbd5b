"""One mirror at work without its broker: real logs, a real shard, a scripted source."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from twinlog.broker.clock import Clock
from twinlog.broker.facts import Facts
from twinlog.broker.mirror_board import MirrorBoard, MirrorStatus
from twinlog.broker.mirrors.pulling_back import PullingBack
from twinlog.broker.mirrors.questions import Questions
from twinlog.broker.mirrors.source import SourceCluster
from twinlog.broker.mirrors.work import Fetcher, MirrorWork
from twinlog.broker.partition_news import PartitionNews
from twinlog.broker.partitions import Partition
from twinlog.broker.waiting import Waiting
from twinlog.cluster.changes import Change, TopicSet
from twinlog.cluster.facts import PartitionFact, TopicFact
from twinlog.cluster.image import ClusterImage
from twinlog.config.mirror import mirror_settings
from twinlog.coordination.outcome import Outcome, Parked
from twinlog.groups.commands import CommittedOffset
from twinlog.groups.settings import GroupSettings
from twinlog.groups.shard import GroupShard
from twinlog.mirroring import events as on
from twinlog.mirroring.shard import MirrorShard, WriteState
from twinlog.model.errors import ApiError
from twinlog.model.ids import BrokerId, LeaderEpoch, Offset, TopicId, TopicName, TopicPartition
from twinlog.network.addresses import Address
from twinlog.replication.fetch_sessions import FetchSessions
from twinlog.replication.leader import LeaderReplica
from twinlog.storage.logs import Logs
from twinlog.storage.settings import LogSettings

ME = BrokerId(1)
NOBODY = Address("127.0.0.1", 1)
SOURCE_ID = "source-cluster"
"""What the scripted source calls itself."""


class States:
    """The mirror coordinator, without a log: what is committed is replayed at once."""

    def __init__(self) -> None:
        self.shard = MirrorShard()
        self.failures: list[ApiError] = []
        self.timeout_s = 0.0
        """What the last command was given."""

    async def run(
        self, key: str, command: Callable[[MirrorShard, int], Outcome[Any]], *, timeout_s: float
    ) -> Any:
        """Run a command, or fail with the next failure that was prepared."""
        self.timeout_s = timeout_s
        if self.failures:
            raise self.failures.pop(0)
        outcome = command(self.shard, 0)
        for record in outcome.records:
            self.shard.replay(record.key, record.value)
        return outcome.reply

    def commit(self, write: WriteState) -> None:
        """Let a state be what was written before."""
        for record in self.shard.write_state(write).records:
            self.shard.replay(record.key, record.value)


class Groups:
    """The groups of one partition, without a log."""

    def __init__(self) -> None:
        self.shard = GroupShard(GroupSettings())
        self.failures: list[ApiError] = []
        self.run_count = 0

    async def run_everywhere(
        self, command: Callable[[GroupShard, int], Outcome[Any]], *, timeout_s: float
    ) -> list[Any]:
        """Run a command, or fail with the next failure that was prepared."""
        self.run_count += 1
        await asyncio.sleep(0)
        if self.failures:
            raise self.failures.pop(0)
        outcome = command(self.shard, 0)
        for record in outcome.records:
            self.shard.replay(record.key, record.value)
        return [outcome.reply]

    def commit(self, group: str, of: TopicPartition, offset: int) -> None:
        """Let a group have committed that."""
        made = self.shard.commit_for_mirror(group, {of: CommittedOffset(Offset(offset))}, "")
        for record in made.records:
            self.shard.replay(record.key, record.value)

    def offset_of(self, group: str, of: TopicPartition) -> int:
        """Give where a group stands."""
        offsets = self.shard.offsets_of(group).reply
        assert not isinstance(offsets, Parked)
        return offsets[of].offset


class BumpedFacts(Facts):
    """Facts of which only leader epochs change; nothing is stored."""

    def __init__(self) -> None:
        self.image = ClusterImage()
        self.failure: ApiError | None = None
        self.on_change: Callable[[], None] = lambda: None

    async def change(self, decide: Callable[[ClusterImage], Any]) -> ClusterImage:
        """Apply what is decided at once."""
        if self.failure is not None:
            raise self.failure
        changes: tuple[Change, ...] = tuple(decide(self.image))
        self.image = self.image.with_changes(changes)
        self.on_change()
        return self.image


class Heard:
    """A partition that only listens."""

    def __init__(self) -> None:
        self.events: list[on.Event] = []

    def deliver(self, event: on.Event) -> None:
        """Note an event."""
        self.events.append(event)


class Bench:
    """A mirror named ``m``, and what it works with."""

    def __init__(self, folder: Path, source: Address, tasks: asyncio.TaskGroup) -> None:
        settings = mirror_settings({"bootstrap.servers": str(source), "fetch.wait.max.ms": "10"})
        self.states = States()
        self.groups = Groups()
        self.facts = BumpedFacts()
        self.waiting = Waiting()
        self.fetchers: list[tuple[BrokerId, int]] = []
        self.source = SourceCluster("m", settings, ME, 0.5, SOURCE_ID)
        self.work = MirrorWork(
            name="m",
            settings=settings,
            source=self.source,
            questions=Questions(self.source, lambda: "own-cluster"),
            tasks=tasks,
            clock=Clock(),
            facts=self.facts,
            waiting=self.waiting,
            run_state=self.states.run,
            board=MirrorBoard(),
            offsets=PullingBack(self.groups.run_everywhere),
            status=MirrorStatus(),
            start_fetcher=self._started,
        )
        self._logs = Logs([str(folder)])

    def partition(self, topic: str = "t", *, epoch: int = 0, isr_of_two: bool = False) -> Partition:
        """Open a partition that this broker leads; with two in the ISR nothing is committed."""
        of = TopicPartition(TopicName(topic), 0)
        topic_id = TopicId(self.work.clock.uuid())
        log = self._logs.create(of, topic_id, LogSettings())
        isr = [ME, BrokerId(2)] if isr_of_two else [ME]
        news = PartitionNews(self.waiting, FetchSessions(1, lambda: 1))
        partition = Partition(of, topic_id, log, _replica(epoch, isr, log.end), news)
        fact = PartitionFact(ME, LeaderEpoch(epoch), tuple(isr), tuple(isr))
        change = TopicSet(TopicFact(of.topic, topic_id, (fact,)))
        self.facts.image = self.facts.image.with_change(change)

        def follow() -> None:
            now = self.facts.image.partition(of)
            if now is not None and now.leader_epoch > partition.leader_epoch:
                partition.lead(_replica(now.leader_epoch, isr, partition.log.end))

        self.facts.on_change = follow
        return partition

    def listen(self, topic: str, partition: int = 0) -> Heard:
        """Give a partition that hears what its source tells."""
        heard = Heard()
        self.work.receivers[TopicPartition(TopicName(topic), partition)] = heard
        return heard

    def _started(
        self, work: MirrorWork, node: BrokerId, number: int, fetcher: Fetcher
    ) -> Coroutine[Any, Any, None]:
        self.fetchers.append((node, number))
        return asyncio.sleep(0)


def _replica(epoch: int, isr: list[BrokerId], end: int) -> LeaderReplica:
    return LeaderReplica(
        ME,
        leader_epoch=LeaderEpoch(epoch),
        replicas=isr,
        isr=isr,
        log_start=Offset(0),
        log_end=Offset(end),
        high_watermark=Offset(end),
        now_ms=0,
    )


@asynccontextmanager
async def mirror_bench(folder: Path, source: Address | None = None) -> AsyncIterator[Bench]:
    """Run a mirror's tasks until the block ends; without a source nothing is asked of it."""
    async with asyncio.TaskGroup() as tasks:
        bench = Bench(folder, source or NOBODY, tasks)
        asking = tasks.create_task(bench.work.questions.run() if source else asyncio.sleep(0))
        try:
            yield bench
        finally:
            asking.cancel()
            await bench.source.close()


async def settle() -> None:
    """Let everything that needs no outside happen."""
    for _ in range(20):
        await asyncio.sleep(0)
