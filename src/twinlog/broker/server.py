"""The composition root: builds a broker from its settings, starts it, drains it, stops it."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from inspect import isawaitable
from pathlib import Path
from typing import Any, Final

from twinlog.broker.api_table import ROWS, spoken
from twinlog.broker.clock import Clock
from twinlog.broker.context import Broker
from twinlog.broker.dispatch import Dispatch
from twinlog.broker.facts import Facts
from twinlog.broker.log_settings import log_settings
from twinlog.broker.loops.cluster_watch import ClusterWatch
from twinlog.broker.loops.coordinators import CoordinatorLoop, Kind
from twinlog.broker.loops.housekeeping import Housekeeping
from twinlog.broker.loops.mirror_fetch import MirrorFetch
from twinlog.broker.loops.mirror_states import MirrorStates
from twinlog.broker.loops.mirror_sync import MirrorSync
from twinlog.broker.metrics_door import open_metrics
from twinlog.broker.new_topics import NewTopics
from twinlog.broker.partition_keeper import PartitionKeeper
from twinlog.broker.partition_news import PartitionNews
from twinlog.broker.partitions import Partitions
from twinlog.broker.readings import Running
from twinlog.broker.state_logs import PartitionStateLog
from twinlog.broker.waiting import Waiting
from twinlog.cluster.changes import BrokerSet, Change, ClusterNamed
from twinlog.cluster.elections import broker_started
from twinlog.cluster.facts import CONSUMER_OFFSETS, MIRROR_STATE, BrokerFact
from twinlog.cluster.image import ClusterImage
from twinlog.config import coordinators
from twinlog.config.broker import (
    BROKER_RACK,
    CLUSTER_ID,
    CONTROLLED_SHUTDOWN_DRAIN_MS,
    METADATA_STORE,
    NODE_ID,
)
from twinlog.config.declare import Settings
from twinlog.config.logs import LOG_DIRS
from twinlog.config.mirror_broker import MIRROR_COORDINATOR_APPEND_LINGER_MS
from twinlog.config.network import (
    CONNECTIONS_MAX_IDLE_MS,
    MAX_CONNECTIONS,
    SOCKET_REQUEST_MAX_BYTES,
    Endpoint,
    advertised,
    endpoints,
)
from twinlog.groups.settings import group_settings
from twinlog.groups.shard import GroupShard
from twinlog.metastore.local import LocalStore
from twinlog.metastore.memory import open_memory_store
from twinlog.metastore.sqlite import open_sqlite_store
from twinlog.metastore.store import StoreError
from twinlog.mirroring.shard import MirrorShard
from twinlog.model.errors import ApiError, DiskError, SettingsError
from twinlog.model.ids import BrokerId, TopicName, TopicPartition
from twinlog.network.connection import Answer, Limits
from twinlog.network.listener import Listener
from twinlog.network.metrics_http import MetricsListener
from twinlog.network.peer import Peer
from twinlog.replication.fetch_sessions import FetchSessions
from twinlog.storage.folders import encode_uuid
from twinlog.storage.logs import Logs
from twinlog.storage.settings import LogSettings
from twinlog.wire.codec import Parts
from twinlog.wire.primitives import Buffer

log = logging.getLogger(__name__)

METADATA_FILE: Final = "metadata.db"
SESSION_ID_MAX: Final = 0x7FFF_FFFE

EXIT_STOPPED: Final = 0
EXIT_FAILED: Final = 1


def _do_nothing() -> None:
    """Nobody is to be told."""


@dataclass(frozen=True, slots=True)
class Door:
    """A listener, and the address that clients are told for it."""

    listener: Listener
    address: Endpoint


class Server:
    """One broker in one process."""

    def __init__(self, settings: Settings, *, on_open: Callable[[], None] = _do_nothing) -> None:
        """Lock and read the log dirs; ``on_open`` is called once all that a start makes is there.

        Raises SettingsError when a dir is in use or not ours.
        """
        self._on_open: Final = on_open
        self._settings: Final = settings
        self._broker_id: Final = BrokerId(settings[NODE_ID])
        self._clock: Final = Clock()
        self._waiting: Final = Waiting()
        self._partitions: Final = Partitions()
        self._stop: Final = asyncio.Event()
        self._is_open: Final = asyncio.Event()
        self._doors: Final[list[Door]] = []
        self.metrics_listener: MetricsListener | None = None
        folders: tuple[str, ...] = settings[LOG_DIRS]
        self._logs: Final = Logs(folders)

    def stop(self) -> None:
        """Begin the orderly way down; ``serve`` returns when it is done."""
        self._stop.set()

    async def wait_until_open(self) -> tuple[Endpoint, ...]:
        """Wait until requests are answered; give the addresses that clients are told."""
        await self._is_open.wait()
        return tuple(door.address for door in self._doors)

    async def serve(self) -> int:
        """Start, serve until told to stop, drain, stop."""
        store = self._open_store()
        facts = Facts(store, self._waiting)
        try:
            await facts.load()
            cluster_id = self._claim(facts.image)
            self._load_logs(facts.image)
            await self._run(store, facts, cluster_id)
        except BaseExceptionGroup as group:
            # What an operator has to mend is told by itself, not as one of several failures.
            if (found := group.subgroup(SettingsError)) is not None:
                raise found.exceptions[0] from None
            raise
        finally:
            await store.close()
        return EXIT_STOPPED

    def _open_store(self) -> LocalStore:
        if self._settings[METADATA_STORE] == "memory":
            return open_memory_store(self._clock.now_ms)
        path = Path(self._settings[LOG_DIRS][0]) / METADATA_FILE
        try:
            return open_sqlite_store(path, self._clock.now_ms)
        except StoreError as error:
            raise SettingsError(str(error)) from error

    def _claim(self, image: ClusterImage) -> str:
        """Make the log dirs ours, or raise SettingsError when they are another cluster's."""
        wanted = self._settings[CLUSTER_ID]
        for known in (image.cluster_id, self._logs.cluster_id):
            if wanted and known and known != wanted:
                raise SettingsError(
                    f"cluster.id={wanted}, but {self._settings[LOG_DIRS][0]} belongs to cluster "
                    f"{known}: use other log.dirs, or remove cluster.id"
                )
        if image.cluster_id and self._logs.cluster_id not in (None, image.cluster_id):
            raise SettingsError(
                f"log.dirs belong to cluster {self._logs.cluster_id}, the metadata store to "
                f"{image.cluster_id}: they were not made for each other"
            )
        found = image.cluster_id or self._logs.cluster_id or wanted
        cluster_id = found or encode_uuid(self._clock.uuid())
        self._logs.claim(cluster_id, self._broker_id, self._clock.uuid)
        return cluster_id

    def _load_logs(self, image: ClusterImage) -> None:
        def settings_of(of: TopicPartition) -> LogSettings:
            topic = image.topics.get(of.topic)
            return log_settings({} if topic is None else topic.config, self._settings)

        self._logs.load(settings_of, self._clock.wall_ms())
        for one in self._logs:
            topic = image.topics.get(one.of.topic)
            if one.cut_bytes:
                fields = {"partition": str(one.of), "bytes": one.cut_bytes, "log_end": one.end}
                log.warning("a torn end was cut off", extra=fields)
            if topic is None or topic.id != self._logs.topic_id_of(one.of):
                log.warning("log of no known topic, kept aside", extra={"folder": one.folder})

    async def _run(self, store: LocalStore, facts: Facts, cluster_id: str) -> None:
        sessions = FetchSessions(
            self._settings[coordinators.MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS],
            lambda: 1 + int(self._clock.fraction() * SESSION_ID_MAX),
        )
        keeper = PartitionKeeper(
            self._broker_id,
            self._settings,
            self._logs,
            self._partitions,
            PartitionNews(self._waiting, sessions),
            self._clock,
        )
        watch = ClusterWatch(store, facts, keeper)
        groups = CoordinatorLoop(self._group_kind(facts), self._waiting, self._clock)
        mirrors = CoordinatorLoop(self._mirror_kind(facts), self._waiting, self._clock)
        broker = Broker(
            broker_id=self._broker_id,
            settings=self._settings,
            clock=self._clock,
            facts=facts,
            partitions=self._partitions,
            waiting=self._waiting,
            fetch_sessions=sessions,
            groups=groups,
            mirror_states=mirrors,
            spoken=spoken(),
            new_topics=NewTopics(facts, self._settings, self._clock),
        )
        for topic, coordinator in ((CONSUMER_OFFSETS, groups), (MIRROR_STATE, mirrors)):
            watch.subscribe(self._leader_of(topic, coordinator))
        watch.subscribe(_offset_sweeper(groups))
        housekeeping = Housekeeping(self._settings, self._logs, self._partitions, self._clock)
        mirroring = MirrorStates(
            broker,
            broker.mirrors,
            start_fetcher=lambda *of: MirrorFetch(*of).run(),
            start_sync=lambda *of: MirrorSync(*of).run(),
        )
        watch.subscribe(mirroring.on_image)
        is_clean = False
        try:
            async with asyncio.TaskGroup() as tasks:
                loops = [
                    tasks.create_task(one)
                    for one in (
                        watch.run(),
                        groups.drive(),
                        mirrors.drive(),
                        housekeeping.run(),
                        mirroring.run(),
                    )
                ]
                self.metrics_listener = await open_metrics(
                    broker, self._running(groups, mirrors), self._is_serving
                )
                await self._open_doors(tasks, Dispatch(ROWS, broker))
                await self._register(facts, cluster_id)
                watch.begin()
                self._on_open()
                self._is_open.set()
                log.info("started", extra={"broker": self._broker_id, "cluster": cluster_id})
                await self._stop.wait()
                log.info("stopping", extra={"broker": self._broker_id})
                groups.send_away("this broker is stopping")
                drain_s = self._settings[CONTROLLED_SHUTDOWN_DRAIN_MS] / 1000
                for door in self._doors:
                    await door.listener.stop(drain_s)
                for task in loops:
                    task.cancel()
            is_clean = True
        finally:
            for door in self._doors:  # still open where something failed
                await door.listener.stop(0)
            if self.metrics_listener is not None:
                await self.metrics_listener.stop()
            self._close(is_clean=is_clean)

    def _is_serving(self) -> bool:
        return self._is_open.is_set() and not self._stop.is_set()

    def _running(self, groups: CoordinatorLoop[Any], mirrors: CoordinatorLoop[Any]) -> Running:
        return Running(
            logs=self._logs,
            listeners=lambda: {door.address.name: door.listener for door in self._doors},
            is_serving=self._is_serving,
            is_stopping=self._stop.is_set,
            group_progress=lambda: groups.progress,
            mirror_progress=lambda: mirrors.progress,
        )

    async def _open_doors(self, tasks: asyncio.TaskGroup, dispatch: Dispatch) -> None:
        """Listen everywhere; requests wait until the partitions are there."""

        async def answer_when_open(frame: Buffer, peer: Peer) -> Parts | None:
            await self._is_open.wait()
            answer = dispatch(frame, peer)
            return await answer if isawaitable(answer) else answer

        def answer(frame: Buffer, peer: Peer) -> Answer:
            is_open = self._is_open.is_set()
            return dispatch(frame, peer) if is_open else answer_when_open(frame, peer)

        limits = Limits(
            frame_bytes_max=self._settings[SOCKET_REQUEST_MAX_BYTES],
            connections_max=self._settings[MAX_CONNECTIONS],
            idle_ms_max=self._settings[CONNECTIONS_MAX_IDLE_MS],
        )
        told = {endpoint.name: endpoint for endpoint in advertised(self._settings)}
        for endpoint in endpoints(self._settings):
            listener = Listener(tasks, answer, limits=limits, name=endpoint.name)
            try:
                await listener.start(endpoint.host, endpoint.port)
            except OSError as error:
                raise SettingsError(
                    f"listeners: cannot listen on {endpoint}: {error.strerror or error}; "
                    "is another broker running there?"
                ) from error
            address = told.get(endpoint.name, endpoint)
            address = replace(address, port=address.port or listener.port)
            self._doors.append(Door(listener, address))
            log.info("listening", extra={"listener": str(replace(endpoint, port=listener.port))})

    async def _register(self, facts: Facts, cluster_id: str) -> None:
        """Tell the cluster that this broker serves; it leads again, in new leader epochs."""
        address = self._doors[0].address
        log_epochs = {one.of: one.epochs.latest for one in self._logs}

        def decide(image: ClusterImage) -> list[Change]:
            known = image.brokers.get(self._broker_id)
            fact = BrokerFact(
                self._broker_id,
                address.host,
                address.port,
                self._settings[BROKER_RACK],
                0 if known is None else known.epoch + 1,
            )
            named: list[Change] = [] if image.cluster_id else [ClusterNamed(cluster_id)]
            return [*named, BrokerSet(fact), *broker_started(image, self._broker_id, log_epochs)]

        try:
            await facts.change(decide)
        except ApiError as error:
            raise SettingsError(f"the broker cannot say that it serves: {error.why}") from error

    def _close(self, *, is_clean: bool) -> None:
        try:
            self._logs.write_high_watermarks({p.of: p.high_watermark for p in self._partitions})
        except DiskError as error:
            log.error("high watermarks cannot be written", extra={"why": str(error)})
        self._logs.close(is_clean=is_clean)
        failed = self._logs.offline
        for folder, why in failed.items():
            # The others are: this one has its logs recovered at the next start.
            log.error("logs were not closed cleanly", extra={"dir": folder, "why": why})
        is_clean = is_clean and not failed
        log.info("stopped", extra={"broker": self._broker_id, "clean": is_clean})

    def _group_kind(self, facts: Facts) -> Kind[GroupShard]:
        settings = group_settings(self._settings)
        return Kind(
            CONSUMER_OFFSETS,
            partial(_partition_count, facts, CONSUMER_OFFSETS),
            partial(_led_count, facts, CONSUMER_OFFSETS, self._broker_id),
            lambda: GroupShard(settings),
        )

    def _mirror_kind(self, facts: Facts) -> Kind[MirrorShard]:
        linger_ms = self._settings[MIRROR_COORDINATOR_APPEND_LINGER_MS]
        count = partial(_partition_count, facts, MIRROR_STATE)
        led_count = partial(_led_count, facts, MIRROR_STATE, self._broker_id)
        return Kind(MIRROR_STATE, count, led_count, MirrorShard, linger_ms)

    def _leader_of(
        self, topic: TopicName, coordinator: CoordinatorLoop[Any]
    ) -> Callable[[ClusterImage, ClusterImage], None]:
        """Let ``coordinator`` lead the partitions of ``topic`` that are here now."""

        def follow(_: ClusterImage, after: ClusterImage) -> None:
            fact = after.topics.get(topic)
            count = 0 if fact is None else len(fact.partitions)
            found = [self._partitions.find(TopicPartition(topic, n)) for n in range(count)]
            coordinator.keep(PartitionStateLog(one) for one in found if one is not None)

        return follow


def _offset_sweeper(
    groups: CoordinatorLoop[GroupShard],
) -> Callable[[ClusterImage, ClusterImage], None]:
    """Let groups forget their offsets in topics that are deleted."""

    def follow(before: ClusterImage, after: ClusterImage) -> None:
        gone_ids = before.topics_by_id.keys() - after.topics_by_id.keys()
        if gone_ids:
            gone = frozenset(before.topics_by_id[topic_id].name for topic_id in gone_ids)
            groups.tell_all(lambda shard, _: shard.forget_topics(gone))

    return follow


def _partition_count(facts: Facts, topic: TopicName) -> int | None:
    fact = facts.image.topics.get(topic)
    return None if fact is None else len(fact.partitions)


def _led_count(facts: Facts, topic: TopicName, broker_id: BrokerId) -> int:
    fact = facts.image.topics.get(topic)
    partitions = () if fact is None else fact.partitions
    return sum(partition.leader == broker_id for partition in partitions)
