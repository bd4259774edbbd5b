"""Keeps a mirror's topics, settings, group offsets and ACLs in step with its source.

Each of these is a job on its own clock: one that fails or hangs keeps no other from its work.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from twinlog.broker.context import Broker
from twinlog.broker.mirror_board import ACLS, CONFIGS, GROUPS, TOPICS
from twinlog.broker.mirrors.acl_following import AclFollowing
from twinlog.broker.mirrors.asked_topics import Results, ask_topics, stop_topics
from twinlog.broker.mirrors.audit import tell_by_itself
from twinlog.broker.mirrors.group_following import GroupFollowing
from twinlog.broker.mirrors.jobs import Job, repeat
from twinlog.broker.mirrors.own_topics import (
    config_changes,
    filter_rule,
    newer_topics,
    own_topics,
    start_rule,
)
from twinlog.broker.mirrors.source import checked_settings, topic_excluder, topic_matcher
from twinlog.broker.mirrors.source_reads import seen_topics, tell_hidden_from_gone, told_overrides
from twinlog.broker.mirrors.work import MirrorWork
from twinlog.cluster.changes import Change
from twinlog.cluster.facts import DesiredState, TopicFact
from twinlog.cluster.image import ClusterImage
from twinlog.cluster.mirrors import filters_of, with_look
from twinlog.cluster.topics import grow_topic
from twinlog.config import mirror as keys
from twinlog.config import mirror_broker as broker_keys
from twinlog.mirroring import events as on
from twinlog.mirroring.topic_sync import SeenTopic, Suspicions, plan_topics
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import TopicName
from twinlog.network.exchange import PeerUnavailable
from twinlog.network.peer_metadata import PeerTopic

log = logging.getLogger(__name__)

SOON_S: Final = 1.0
LEADERS_AGAIN_S: Final = 0.5
ERRORS_TOLD_MAX: Final = 10
NEVER_S: Final = 3_600.0


class MirrorSync:
    """The metadata manager of one mirror."""

    def __init__(self, work: MirrorWork, broker: Broker) -> None:
        self._work: Final = work
        self._broker: Final = broker
        self._suspicions: Final = Suspicions()
        self._groups: Final = GroupFollowing(work, broker)
        self._topics: Final = Job(TOPICS, self.sync_topics, self._topics_interval_s)
        self._acls: Final = Job(ACLS, AclFollowing(work).sync, self._refresh_s)
        self._group_offsets: Final = Job(GROUPS, self._groups.sync, self._groups_interval_s)

    def _topics_interval_s(self) -> float:
        return SOON_S if self._suspicions.are_open else self._refresh_s()

    def _groups_interval_s(self) -> float:
        groups_ms: int = self._work.settings[keys.GROUPS_SYNC_INTERVAL_MS]
        return groups_ms / 1000

    def _refresh_s(self) -> float:
        settings = self._broker.effective_settings
        refresh_ms: int = settings[broker_keys.MIRROR_METADATA_REFRESH_INTERVAL_MS]
        return refresh_ms / 1000 or NEVER_S

    async def run(self) -> None:
        """Do every job in its time, for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow_leaders())
            for job in (self._topics, self._acls, self._group_offsets):
                tasks.create_task(repeat(job, self._work))
            wanted = self._work.status.refresh_wanted
            while True:
                await wanted.wait()
                wanted.clear()
                self._topics.wake.set()
                self._acls.wake.set()

    async def _follow_leaders(self) -> None:
        """Look for the source's leaders whenever a fetcher lost its broker."""
        wanted = self._work.status.leaders_wanted
        while True:
            await wanted.wait()
            wanted.clear()  # first: who loses its broker meanwhile is looked for once more
            with suppress(PeerUnavailable, ApiError):
                topics = {of.topic for of in self._work.receivers}
                await self._work.source.peers.refresh(topics)
                self._tell_leaders()
            await asyncio.sleep(LEADERS_AGAIN_S)

    # Topics

    async def sync_topics(self) -> None:
        """Start what the patterns want, grow what grew, fail what is lost."""
        work, image = self._work, self._broker.facts.image
        mirror = image.mirrors.get(work.name)
        # Of the same moment: what was looked for is noted, and what it finds later is newer.
        settings = work.settings if mirror is None else checked_settings(mirror.config)
        told = await self._all_topics()
        seen = seen_topics(told)
        plan = plan_topics(
            seen,
            own_topics(image, work.name),
            topic_matcher(settings),
            topic_excluder(settings),
        )
        suspects, hidden = await tell_hidden_from_gone(work.source, plan.suspects, seen)
        lost = self._suspicions.confirm(suspects)
        for of, receiver in tuple(work.receivers.items()):
            if of.topic in lost:
                receiver.deliver(on.SourceLost(lost[of.topic]))
        self._tell_leaders()
        errors = [*hidden.values(), *await self._start(plan.start, newer_topics(mirror))]
        if mirror is not None:
            looked_for = filters_of(mirror)
            await self._broker.facts.change(lambda image: with_look(image, work.name, looked_for))
        errors += await self._grow(plan.grow)
        if plan.stop:
            stopped = await stop_topics(self._broker, work.name, plan.stop)
            self._tell("stop", stopped, "topics.exclude matches")
        same = {name: topic for name, topic in seen.items() if name not in plan.suspects}
        await self.sync_configs(same)  # another topic's settings are not those of our copy
        if errors:
            raise ApiError(ErrorCode.INVALID_REQUEST, "; ".join(errors[:ERRORS_TOLD_MAX]))

    async def _all_topics(self) -> list[PeerTopic]:
        """Ask for all topics of the source; where another cluster answers, all is lost."""
        try:
            return await self._work.source.peers.refresh(None)
        except ApiError as error:
            if error.code == ErrorCode.INCONSISTENT_CLUSTER_ID:
                for receiver in tuple(self._work.receivers.values()):
                    receiver.deliver(on.SourceLost(error.why))
            raise

    def _tell_leaders(self) -> None:
        for of, receiver in tuple(self._work.receivers.items()):
            leader = self._work.source.peers.leader_of(of)
            if leader is not None:
                receiver.deliver(on.SourceLeaderMoved(*leader))

    async def _start(
        self, topics: tuple[SeenTopic, ...], is_newer: Callable[[str], bool]
    ) -> list[str]:
        if not topics:
            return []
        overrides, refused = await told_overrides(
            self._work.source, [topic.name for topic in topics]
        )
        mirror = self._work.name
        start = start_rule(self._broker, mirror, topics, overrides, self._excluded, is_newer)
        results = await ask_topics(
            self._broker,
            [topic.name for topic in topics if topic.name not in refused],
            filter_rule(start, mirror, is_newer),
        )
        self._tell("start", results, "topics.include matches")
        failed = {**results, **refused}
        return [f"{name}: {error.why}" for name, error in failed.items() if error is not None]

    async def _grow(self, topics: tuple[SeenTopic, ...]) -> list[str]:
        """Give topics the partitions they have at the source; give why some could not be."""
        errors: list[str] = []
        for topic in topics:
            try:
                await self._broker.facts.change(_grown(topic))
            except ApiError as error:
                errors.append(f"{topic.name}: {error.why}")
        return errors

    def _tell(self, verb: str, results: Results, why: str) -> None:
        """Tell what was asked of topics by the mirror itself, for whom it came true."""
        done = [name for name, error in results.items() if error is None]
        if done:
            tell_by_itself(verb, self._work.name, done, why)

    @property
    def _excluded(self) -> frozenset[str]:
        excluded: tuple[str, ...] = self._work.settings[keys.TOPIC_PROPERTIES_EXCLUDE]
        return frozenset(excluded)

    async def sync_configs(self, seen: dict[TopicName, SeenTopic]) -> None:
        """Take over the settings of topics that are not stopped."""
        names = [
            topic.name
            for topic in self._broker.facts.image.topics_of_mirror(self._work.name)
            if _is_live(topic) and topic.name in seen
        ]
        if not names:
            return
        try:
            overrides, refused = await told_overrides(self._work.source, names)
            check = self._broker.new_topics.check_config
            await self._broker.facts.change(
                config_changes(self._work.name, overrides, self._excluded, check, refused)
            )
            if refused:
                errors = tuple(refused.values())[:ERRORS_TOLD_MAX]
                raise ApiError(errors[0].code, "; ".join(error.why for error in errors))
        except (PeerUnavailable, ApiError) as error:
            self._work.board.task_failed(self._work.status, CONFIGS, str(error))
            return
        self._work.status.task_errors[CONFIGS] = None


def _is_live(topic: TopicFact) -> bool:
    return topic.mirror is not None and topic.mirror.desired_state is not DesiredState.STOPPED


def _grown(topic: SeenTopic) -> Callable[[ClusterImage], tuple[Change, ...]]:
    def decide(image: ClusterImage) -> tuple[Change, ...]:
        here = image.topics.get(topic.name)
        if here is None or len(here.partitions) >= topic.partition_count:
            return ()
        return (grow_topic(image, topic.name, topic.partition_count, None, by_its_mirror=True),)

    return decide
