"""Runs every mirror of the cluster image that has work here: its partitions, loops, connections.

A mirror whose connection settings change is stopped and begun again; filters, and what decides for
its partitions, are read anew.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final

from twinlog.broker.context import Broker
from twinlog.broker.internal_topics import mirror_state_topic
from twinlog.broker.mirror_board import MirrorBoard, MirrorStatus
from twinlog.broker.mirrors.descriptions import (
    forget_partitions,
    forget_topics,
    known_partitions,
)
from twinlog.broker.mirrors.driven import DrivenPartition
from twinlog.broker.mirrors.own_topics import desired_state
from twinlog.broker.mirrors.policies import policy_of, throttled_partitions
from twinlog.broker.mirrors.pulling_back import PullingBack
from twinlog.broker.mirrors.questions import Questions
from twinlog.broker.mirrors.source import SourceCluster, checked_settings
from twinlog.broker.mirrors.work import Fetcher, MirrorWork
from twinlog.broker.partitions import Partition
from twinlog.cluster.facts import MirrorFact, TopicFact
from twinlog.cluster.image import ClusterImage
from twinlog.config import mirror as keys
from twinlog.config import mirror_broker as broker_keys
from twinlog.config.declare import Settings
from twinlog.config.mirror_start import MIRROR_START_OFFSET_SPEC
from twinlog.mirroring import events as on
from twinlog.mirroring.policy import MirrorPolicy
from twinlog.mirroring.topic_sync import is_same_topic
from twinlog.model.errors import ApiError, DiskError, SettingsError, WireError
from twinlog.model.ids import BrokerId, TopicId, TopicName, TopicPartition

log = logging.getLogger(__name__)

BEGIN_AGAIN_S: Final = 5.0
LOOK_AGAIN_S: Final = 0.5
_READ_ANEW: Final = frozenset(
    setting.name
    for setting in (
        keys.TOPICS_INCLUDE,
        keys.TOPICS_EXCLUDE,
        keys.GROUPS_INCLUDE,
        keys.GROUPS_EXCLUDE,
        keys.ACLS_INCLUDE,
        keys.TOPIC_PROPERTIES_EXCLUDE,
        keys.MIRROR_GAP_POLICY,
        MIRROR_START_OFFSET_SPEC,
    )
)
_FAILURES: Final = (ApiError, WireError, DiskError, SettingsError, AssertionError, OSError)

StartFetcher = Callable[[MirrorWork, BrokerId, int, Fetcher], Coroutine[Any, Any, None]]
StartSync = Callable[[MirrorWork, Broker], Coroutine[Any, Any, None]]


class _Running:
    """A mirror at work: its task, and what it was begun with."""

    def __init__(self, fact: MirrorFact) -> None:
        self.config: Final = dict(fact.config)
        self.status: Final = MirrorStatus()
        self.work: MirrorWork | None = None
        self.task: asyncio.Task[None] | None = None
        self.driven: Final[dict[TopicPartition, DrivenPartition]] = {}
        self.seen: dict[TopicName, TopicFact] = {}
        """Its topics as its partitions were last brought in step with them."""
        self.settings: Settings | None = None
        """The broker's, by then."""

    def needs_new_connections(self, fact: MirrorFact) -> bool:
        """Tell whether more has changed than what is read anew."""
        mine, its = (
            {key: value for key, value in config.items() if key not in _READ_ANEW}
            for config in (self.config, fact.config)
        )
        return mine != its

    def has_other_fetchers(self, count: int) -> bool:
        """Tell whether its partitions are spread over another number of fetchers."""
        return self.work is not None and self.work.fetcher_count != count


class MirrorStates:
    """One task for the broker, and one for each mirror beneath it."""

    def __init__(
        self,
        broker: Broker,
        board: MirrorBoard,
        *,
        start_fetcher: StartFetcher,
        start_sync: StartSync,
    ) -> None:
        self._broker: Final = broker
        self._board: Final = board
        self._start_fetcher: Final = start_fetcher
        self._start_sync: Final = start_sync
        self._running: Final[dict[str, _Running]] = {}
        self._forgotten: Final[set[str]] = set()
        """Mirrors that were deleted, whose states are not yet."""
        self._has_forgotten_topics = False
        self._settings = broker.effective_settings
        self._has_new_settings = True
        self._image = broker.facts.image
        """The newest one that the partitions here are in step with: what is told of a topic whose
        partitions are still being opened would pass for done with it."""

    def on_image(self, before: ClusterImage, after: ClusterImage) -> None:
        """Wake the task when mirrors, topics or settings of brokers have changed."""
        self._image = after
        if before.broker_configs is not after.broker_configs:
            self._has_new_settings = True
        elif before.mirrors is after.mirrors and before.topics is after.topics and self._running:
            return
        self._forgotten.update(before.mirrors.keys() - after.mirrors.keys())
        self._board.wake.set()

    async def run(self) -> None:
        """Keep what runs in step with the image, for ever."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._look_for_forgotten())
                while True:
                    self._board.wake.clear()
                    await self.step(tasks)
                    await self._board.wake.wait()
        finally:
            for running in self._running.values():
                for driven in running.driven.values():
                    driven.close()

    async def step(self, tasks: asyncio.TaskGroup) -> None:
        """Begin, end and update mirrors as the image says."""
        image = self._image
        self._take_settings()
        for name, running in tuple(self._running.items()):
            fact = image.mirrors.get(name)
            is_other = fact is None or running.needs_new_connections(fact)
            if is_other or running.has_other_fetchers(self._fetcher_count):
                await self._end(name, running)
        self._forget_all(tasks)
        for name, fact in image.mirrors.items():
            running_now = self._running.get(name)
            if running_now is None:
                running_now = self._running[name] = _Running(fact)
                self._board.begin(name, running_now.status, self._broker.clock.now_ms())
                running_now.task = tasks.create_task(self._run_mirror(fact, running_now))
            elif running_now.work is not None:
                self._update(fact, running_now)
        wanted = tuple(self._board.recover_wanted)
        self._board.recover_wanted.clear()
        for running in self._running.values():
            for of in wanted:
                if of in running.driven:
                    running.driven[of].deliver(on.RecoverAsked())

    def _take_settings(self) -> None:
        """Take over what was set for this broker at run time since."""
        if not self._has_new_settings:
            return
        self._has_new_settings = False
        self._settings = self._broker.effective_settings
        rate: int = self._settings[broker_keys.MIRROR_REPLICATION_THROTTLED_RATE]
        if self._board.throttle.set_rate(rate, self._broker.clock.now_ms()):
            for running in self._running.values():
                if running.work is not None:
                    running.work.wake_fetchers()
        for running in self._running.values():
            running.status.refresh_wanted.set()

    @property
    def _fetcher_count(self) -> int:
        count: int = self._settings[broker_keys.MIRROR_NUM_REPLICA_FETCHERS]
        return count

    async def _end(self, name: str, running: _Running) -> None:
        del self._running[name]
        is_deleted = name not in self._image.mirrors
        self._board.end(name, is_deleted=is_deleted)
        for driven in running.driven.values():
            driven.close()  # first, so that no answer is taken in while all else is ended
        if running.task is not None:
            running.task.cancel()
            # Not awaited itself: its cancellation could not be told from our own.
            await asyncio.wait({running.task})

    async def _look_for_forgotten(self) -> None:
        """Find mirrors and topics that were deleted while their states could not be."""
        topic = mirror_state_topic(self._broker.settings).name
        while topic in self._broker.facts.image.topics:
            try:
                known = await known_partitions(self._broker)
            except ApiError:
                await asyncio.sleep(LOOK_AGAIN_S)
                continue
            image = self._broker.facts.image
            self._forgotten.update({of.mirror for of in known} - image.mirrors.keys())
            self._has_forgotten_topics = any(of.topic_id not in image.topics_by_id for of in known)
            self._board.wake.set()
            return

    def _forget_all(self, tasks: asyncio.TaskGroup) -> None:
        """Write tombstones for everything known of mirrors and topics that were deleted."""
        for name in self._forgotten:
            tasks.create_task(self._forget(name))
        self._forgotten.clear()
        if self._has_forgotten_topics:
            self._has_forgotten_topics = False
            tasks.create_task(self._forget_topics())

    async def _forget(self, name: str) -> None:
        is_back = name in self._broker.facts.image.mirrors
        if not (is_back or await forget_partitions(self._broker, name)):
            await asyncio.sleep(BEGIN_AGAIN_S)
            self._forgotten.add(name)
            self._board.wake.set()

    async def _forget_topics(self) -> None:
        if not await forget_topics(self._broker):
            await asyncio.sleep(BEGIN_AGAIN_S)
            self._has_forgotten_topics = True
            self._board.wake.set()

    # One mirror

    async def _run_mirror(self, fact: MirrorFact, running: _Running) -> None:
        """Run one mirror for ever; a failure of ours ends and begins it again, not the broker."""
        while True:
            try:
                await self._run_once(fact, running)
            except* _FAILURES as group:
                fields = {"mirror": fact.name, "why": str(group.exceptions[0])}
                log.error("mirror failed, begun again", extra=fields, exc_info=group)
            finally:
                running.work = None
                for driven in running.driven.values():
                    driven.close()
                running.driven.clear()
                running.seen = {}
                running.status.partitions.clear()
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                # Who cancelled it while it failed waits for its end; the group forgot of that.
                raise asyncio.CancelledError
            await asyncio.sleep(BEGIN_AGAIN_S)

    async def _run_once(self, fact: MirrorFact, running: _Running) -> None:
        broker = self._broker
        topic = mirror_state_topic(broker.settings)
        await broker.new_topics.ensure(topic.name, topic.partition_count, topic.config)
        newest = self._image.mirrors.get(fact.name, fact)
        settings = checked_settings(newest.config)
        seed, cluster_id = broker.clock.fraction(), newest.source_cluster_id
        source = SourceCluster(fact.name, settings, broker.broker_id, seed, cluster_id)
        try:
            async with asyncio.TaskGroup() as tasks:
                work = self._work(fact.name, settings, source, running, tasks)
                running.work = work
                tasks.create_task(work.questions.run())
                tasks.create_task(self._start_sync(work, broker))
                self._update(newest, running)
        finally:
            await source.close()

    def _work(
        self,
        name: str,
        settings: Settings,
        source: SourceCluster,
        running: _Running,
        tasks: asyncio.TaskGroup,
    ) -> MirrorWork:
        broker = self._broker
        return MirrorWork(
            name=name,
            settings=settings,
            source=source,
            questions=Questions(source, lambda: broker.facts.image.cluster_id, self._is_same_topic),
            tasks=tasks,
            clock=broker.clock,
            facts=broker.facts,
            waiting=broker.waiting,
            run_state=broker.mirror_states.run,
            board=self._board,
            status=running.status,
            offsets=PullingBack(broker.groups.run_everywhere),
            start_fetcher=self._start_fetcher,
            fetcher_count=self._fetcher_count,
            write_timeout_s=broker_keys.write_timeout_s(broker.settings),
        )

    def _is_same_topic(self, name: TopicName, source_id: TopicId) -> bool:
        """Compare ids; a source that gives none leaves nothing to compare."""
        topic = self._broker.facts.image.topics.get(name)
        return topic is None or is_same_topic(topic.id, source_id)

    def _update(self, fact: MirrorFact, running: _Running) -> None:
        """Begin and end partitions; tell them what is asked of them and which epoch is seen.

        Of thousands of partitions those are looked at whose topic has changed, or all when what
        decides for them has.
        """
        work = running.work
        assert work is not None, f"mirror {fact.name} is not at work"
        is_anew = running.settings is not self._settings
        running.settings = self._settings
        if dict(fact.config) != running.config:
            is_anew = True
            running.config.clear()
            running.config.update(fact.config)
            work.settings = checked_settings(fact.config)
            running.status.refresh_wanted.set()
        seen, image = running.seen, self._image
        running.seen = {topic.name: topic for topic in image.topics_of_mirror(fact.name)}
        for name, topic in running.seen.items():
            if is_anew or seen.get(name) is not topic:
                self._update_topic(topic, running, work)
        for name, topic in seen.items():
            if running.seen.get(name) is not topic:
                self._let_go(topic, running, work)
        work.throttle(
            frozenset(
                of
                for topic in running.seen.values()
                for of in throttled_partitions(topic, self._settings, self._broker.broker_id)
            )
        )

    def _update_topic(self, topic: TopicFact, running: _Running, work: MirrorWork) -> None:
        assert topic.mirror is not None
        desired = desired_state(topic.mirror.desired_state)
        policies: dict[bool, MirrorPolicy] = {}
        for partition in self._partitions_of(topic):
            is_first = partition.of.partition < topic.mirror.first_partitions
            if is_first not in policies:
                policy = policy_of(topic, work.settings, self._settings, is_first=is_first)
                policies[is_first] = policy
            driven = running.driven.get(partition.of)
            if driven is not None and driven.partition is partition:
                driven.follow(policies[is_first])
                driven.leader_epoch_seen()
                driven.want(desired)
                continue
            if driven is not None:
                driven.close()
            driven = DrivenPartition(partition, work, desired, policies[is_first])
            running.driven[partition.of] = driven
            work.receivers[partition.of] = running.status.partitions[partition.of] = driven
            driven.begin()

    def _let_go(self, before: TopicFact, running: _Running, work: MirrorWork) -> None:
        """Close what a topic had before it changed and has not, or not here, any more."""
        if before.id not in self._image.topics_by_id:
            self._has_forgotten_topics = True
            self._board.wake.set()
        kept = running.seen.get(before.name)
        here = set() if kept is None else {partition.of for partition in self._partitions_of(kept)}
        for index in range(len(before.partitions)):
            of = TopicPartition(before.name, index)
            if of not in here and of in running.driven:
                running.driven.pop(of).close()
                work.receivers.pop(of, None)
                running.status.partitions.pop(of, None)

    def _partitions_of(self, topic: TopicFact) -> Iterator[Partition]:
        for index in range(len(topic.partitions)):
            partition = self._broker.partitions.find(TopicPartition(topic.name, index))
            if partition is not None:
                yield partition
