"""Asks the source on behalf of many partitions at once, and brings each its answer."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from twinlog.broker.mirrors.permissions import DESCRIBE, with_lacking
from twinlog.broker.mirrors.source import SourceCluster
from twinlog.broker.mirrors.source_mirrors import began_at, read_mirrors
from twinlog.config.mirror_start import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from twinlog.mirroring import events as on
from twinlog.mirroring.effects import (
    AskEpochEnd,
    AskOffsetAt,
    AskSourceRange,
    FindSourceLeader,
    ReadSourceMirrors,
)
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import BrokerId, LeaderEpoch, Offset, TopicId, TopicName, TopicPartition
from twinlog.network.exchange import PeerUnavailable
from twinlog.network.peers import raise_for
from twinlog.wire.messages.mirrors import (
    DESCRIBE_CLUSTER_MIRRORS,
    DescribeClusterMirrorsRequest,
    DescribedMirror,
    MirrorTopicToDescribe,
)
from twinlog.wire.messages.offsets import (
    LIST_OFFSETS,
    OFFSET_FOR_LEADER_EPOCH,
    EpochPartition,
    EpochTopic,
    ListedPartition,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
)

TOPICS_PER_REFRESH_MAX: Final = 1_000
PARTITIONS_PER_REQUEST_MAX: Final = 1_000
"""Also of how many partitions the answers are taken in without a pause for other work."""
ROUND_INTERVAL_S: Final = 0.05
"""A partition that waits something out asks when its own time comes: thousands of them would ask
one by one. What is asked sooner after a round goes out with the next."""
CONSUMER: Final = -1

Bring = Callable[[on.Event], None]
"""Takes the answer to the partition that asked."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, and where its answer goes."""

    of: TopicPartition
    question: FindSourceLeader | AskSourceRange | AskOffsetAt | AskEpochEnd | ReadSourceMirrors
    bring: Bring


@dataclass(slots=True)
class Questions:
    """Asks at once after a while of silence, else in rounds: what came meanwhile goes together.

    Every question is answered: by the source, or with SourceRefused.
    """

    source: SourceCluster
    own_cluster_id: Callable[[], str]
    is_same_topic: Callable[[TopicName, TopicId], bool] | None = None
    """Whether a topic of the source, by the id it has there, is the one that is mirrored."""
    _waiting: list[Asked] = field(default_factory=list)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    def ask(self, asked: Asked) -> None:
        """Put a question; it goes out with the next round."""
        self._waiting.append(replace(asked, bring=partial(self._bring, asked)))
        self._wake.set()

    def _bring(self, asked: Asked, event: on.Event) -> None:
        """Bring an answer; a refusal says what to grant, if that is the matter."""
        if isinstance(event, on.SourceRefused):
            security, topic = self.source.security, asked.of.topic
            why = with_lacking(event.why, security, event.code, DESCRIBE, topic)
            event = replace(event, why=why)
        asked.bring(event)

    async def run(self) -> None:
        """Ask in rounds, for ever; questions to several brokers go out side by side."""
        async with asyncio.TaskGroup() as tasks:
            loop = asyncio.get_running_loop()
            next_round_s = loop.time()
            while True:
                await self._wake.wait()
                await asyncio.sleep(max(0.0, next_round_s - loop.time()))
                next_round_s = loop.time() + ROUND_INTERVAL_S
                self._wake.clear()
                asked, self._waiting = self._waiting, []
                for round_ in self._rounds(asked):
                    tasks.create_task(round_)

    def _rounds(self, asked: Iterable[Asked]) -> list[Coroutine[Any, Any, None]]:
        leaders: list[Asked] = []
        mirrors: list[Asked] = []
        ranges: dict[BrokerId, list[Asked]] = {}
        times: dict[BrokerId, list[Asked]] = {}
        epochs: dict[BrokerId, list[Asked]] = {}
        for one in asked:
            match one.question:
                case FindSourceLeader():
                    leaders.append(one)
                case ReadSourceMirrors():
                    mirrors.append(one)
                case AskSourceRange(node):
                    ranges.setdefault(node, []).append(one)
                case AskOffsetAt(node):
                    times.setdefault(node, []).append(one)
                case AskEpochEnd(node):
                    epochs.setdefault(node, []).append(one)
        rounds = [self._find_leaders(part) for part in _parts(leaders, TOPICS_PER_REFRESH_MAX)]
        rounds += [self._read_mirrors(part) for part in _parts(mirrors, PARTITIONS_PER_REQUEST_MAX)]
        for asks, found in (
            (self._find_ranges, ranges),
            (self._find_offsets_at, times),
            (self._find_epoch_ends, epochs),
        ):
            for node, ones in found.items():
                rounds += [asks(node, part) for part in _parts(ones, PARTITIONS_PER_REQUEST_MAX)]
        return rounds

    async def _read_mirrors(self, asked: list[Asked]) -> None:
        """Ask for the source's mirrors of our cluster; most sources know of no such thing."""
        peers = self.source.peers
        cluster_id = self.own_cluster_id()
        request = DescribeClusterMirrorsRequest(
            cluster_id=cluster_id,
            include_mirror_offset=False,
            topics=tuple(
                MirrorTopicToDescribe(topic_name=name)
                for name in dict.fromkeys(one.of.topic for one in asked)
            ),
        )
        mirrors: tuple[DescribedMirror, ...] = ()
        try:
            connection = await peers.any_connection()
            if connection.supports(DESCRIBE_CLUSTER_MIRRORS):
                response = await connection.call(
                    DESCRIBE_CLUSTER_MIRRORS, request, timeout_s=self.source.request_timeout_s
                )
                raise_for(response.error_code, "DescribeClusterMirrors", response.error_message)
                mirrors = response.mirrors
        except (PeerUnavailable, ApiError) as error:
            _refuse_all(asked, error)
            return
        for one in asked:
            agreed, problem = read_mirrors(mirrors, one.of, cluster_id)
            began = began_at(mirrors, one.of, cluster_id)
            one.bring(on.SourceMirrorsRead(agreed, problem, one.question.turn, began))

    async def _find_leaders(self, asked: list[Asked]) -> None:
        topics = dict.fromkeys(one.of.topic for one in asked)
        try:
            told = await self.source.peers.refresh(topics)
        except (PeerUnavailable, ApiError) as error:
            _refuse_all(asked, error)
            return
        errors = {topic.name: topic.error_code for topic in told}
        for one in asked:
            one.bring(self._leader(one, errors.get(one.of.topic, 0)))

    def _leader(self, one: Asked, topic_error: int) -> on.Event:
        of, turn = one.of, one.question.turn
        there = self.source.topic_id(of.topic)
        if self.is_same_topic is not None and not self.is_same_topic(of.topic, there):
            why = f"topic {of.topic} of the source has another id now, {there}"
            return on.SourceRefused(ErrorCode.INCONSISTENT_TOPIC_ID, why, turn)
        leader = self.source.peers.leader_of(of)
        if topic_error or self.source.peers.metadata.partition(of) is None:
            code = topic_error or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return on.SourceRefused(code, f"the source's metadata of {of}", turn)
        if leader is None:
            why = f"{of} has no leader at the source"
            return on.SourceRefused(ErrorCode.LEADER_NOT_AVAILABLE, why, turn)
        return on.SourceLeaderFound(*leader, turn)

    async def _find_ranges(self, node: BrokerId, asked: list[Asked]) -> None:
        try:
            starts, ends = await asyncio.gather(
                self._offsets(node, asked, lambda _: EARLIEST_TIMESTAMP),
                self._offsets(node, asked, lambda _: LATEST_TIMESTAMP),
            )
        except (PeerUnavailable, ApiError) as error:
            _refuse_all(asked, error)
            return
        for one in asked:
            one.bring(_range(one, starts.get(one.of), ends.get(one.of)))

    async def _find_offsets_at(self, node: BrokerId, asked: list[Asked]) -> None:
        """Ask for the first record of a time; the answer is -1 where there is none."""
        try:
            found = await self._offsets(node, asked, _time_of)
        except (PeerUnavailable, ApiError) as error:
            _refuse_all(asked, error)
            return
        for one in asked:
            listed = found.get(one.of)
            if listed is None or listed.error_code:
                one.bring(_refused(one, None if listed is None else listed.error_code))
            else:
                offset = Offset(listed.offset) if listed.offset >= 0 else None
                one.bring(on.OffsetAtFound(offset, one.question.turn))

    async def _offsets(
        self, node: BrokerId, asked: list[Asked], time_of: Callable[[Asked], int]
    ) -> dict[TopicPartition, ListedPartition]:
        connection = await self.source.peers.connection_to(node)
        topics: dict[TopicName, list[ListOffsetsPartition]] = {}
        for one in asked:
            assert isinstance(one.question, AskSourceRange | AskOffsetAt)
            topics.setdefault(one.of.topic, []).append(
                ListOffsetsPartition(
                    partition_index=one.of.partition,
                    current_leader_epoch=one.question.leader_epoch,
                    timestamp=time_of(one),
                )
            )
        request = ListOffsetsRequest(
            replica_id=CONSUMER,
            topics=tuple(
                ListOffsetsTopic(name=name, partitions=tuple(partitions))
                for name, partitions in topics.items()
            ),
            timeout_ms=int(self.source.request_timeout_s * 1000),
        )
        response = await connection.call(
            LIST_OFFSETS, request, timeout_s=self.source.request_timeout_s
        )
        return {
            TopicPartition(TopicName(topic.name), listed.partition_index): listed
            for topic in response.topics
            for listed in topic.partitions
        }

    async def _find_epoch_ends(self, node: BrokerId, asked: list[Asked]) -> None:
        topics: dict[TopicName, list[EpochPartition]] = {}
        for one in asked:
            assert isinstance(one.question, AskEpochEnd)
            topics.setdefault(one.of.topic, []).append(
                EpochPartition(
                    partition=one.of.partition,
                    current_leader_epoch=one.question.leader_epoch,
                    leader_epoch=one.question.epoch,
                )
            )
        request = OffsetForLeaderEpochRequest(
            replica_id=CONSUMER,
            topics=tuple(
                EpochTopic(topic=name, partitions=tuple(partitions))
                for name, partitions in topics.items()
            ),
        )
        try:
            connection = await self.source.peers.connection_to(node)
            response = await connection.call(
                OFFSET_FOR_LEADER_EPOCH, request, timeout_s=self.source.request_timeout_s
            )
        except (PeerUnavailable, ApiError) as error:
            _refuse_all(asked, error)
            return
        found = {
            (topic.topic, end.partition): end
            for topic in response.topics
            for end in topic.partitions
        }
        for one in asked:
            assert isinstance(one.question, AskEpochEnd)
            turn, end = one.question.turn, found.get((one.of.topic, one.of.partition))
            if end is None or end.error_code:
                one.bring(_refused(one, None if end is None else end.error_code))
            elif end.leader_epoch >= 0 > end.end_offset:
                one.bring(_refused(one, ErrorCode.OFFSET_NOT_AVAILABLE))
            else:
                epoch, offset = LeaderEpoch(end.leader_epoch), Offset(end.end_offset)
                one.bring(on.EpochEndFound(one.question.epoch, epoch, offset, turn))


def _time_of(one: Asked) -> int:
    assert isinstance(one.question, AskOffsetAt)
    return one.question.timestamp_ms


def _range(one: Asked, start: ListedPartition | None, end: ListedPartition | None) -> on.Event:
    for listed in (start, end):
        if listed is None or listed.error_code:
            return _refused(one, None if listed is None else listed.error_code)
        if listed.offset < 0:  # for an end of a log there is always an offset
            return _refused(one, ErrorCode.OFFSET_NOT_AVAILABLE)
    assert start is not None
    assert end is not None
    return on.SourceRangeFound(Offset(start.offset), Offset(end.offset), one.question.turn)


def _refused(one: Asked, code: int | None) -> on.SourceRefused:
    if code is None:
        why = f"the source's answer leaves out {one.of}"
        return on.SourceRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, why, one.question.turn)
    return on.SourceRefused(code, f"the source's answer about {one.of}", one.question.turn)


def _refuse_all(asked: Iterable[Asked], error: PeerUnavailable | ApiError) -> None:
    """Answer every question with why it could not be asked."""
    code = error.code if isinstance(error, ApiError) else ErrorCode.NETWORK_EXCEPTION
    for one in asked:
        one.bring(on.SourceRefused(code, str(error), one.question.turn))


def _parts(asked: list[Asked], size: int) -> list[list[Asked]]:
    return [asked[first : first + size] for first in range(0, len(asked), size)]
