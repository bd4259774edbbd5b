"""Brings the offsets of a source's groups over, and takes away what the source has deleted.

Which offsets a mirror brought stands in their own records; it is read once, when the mirror goes
to work here, and followed from then on.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from twinlog.broker.context import Broker
from twinlog.broker.internal_topics import offsets_topic
from twinlog.broker.mirrors.group_reads import GroupAtSource, consumer_groups, offsets_of_groups
from twinlog.broker.mirrors.source import group_matcher
from twinlog.broker.mirrors.work import MirrorWork
from twinlog.cluster.facts import DesiredState, TopicFact
from twinlog.config.coordinators import OFFSET_METADATA_MAX_BYTES
from twinlog.groups.commands import CommittedOffset
from twinlog.mirroring.group_sync import (
    GroupPlan,
    LocalRange,
    SourceOffset,
    clamp,
    mark_of,
    plan_group,
)
from twinlog.mirroring.topic_sync import is_same_topic
from twinlog.model.bounds import GROUP_TEXT_BYTES_MAX
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import LeaderEpoch, Offset, TopicName, TopicPartition

log = logging.getLogger(__name__)

GROUP_TIMEOUT_S: Final = 5.0
FAILURES_TOLD_MAX: Final = 10
GROUPS_AT_ONCE_MAX: Final = 500

Ranges = dict[TopicPartition, LocalRange]
Changes = dict[TopicPartition, CommittedOffset | None]


@dataclass(frozen=True, slots=True)
class _Compared:
    """What is planned for one group; ``ours`` are its offsets here that bear our ``mark``."""

    group: str
    mark: str
    ours: set[TopicPartition]
    plan: GroupPlan


class GroupFollowing:
    """The group offsets of one mirror."""

    def __init__(self, work: MirrorWork, broker: Broker) -> None:
        self._work: Final = work
        self._broker: Final = broker
        self._brought: set[str] | None = None
        """Groups with offsets that this mirror brought; more than those that still have some."""

    async def sync(self) -> None:
        """Do one round. Raises PeerUnavailable and ApiError; what was done by then stands."""
        mirrored = self._mirrored()
        if not mirrored:
            return
        peers = self._work.source.peers
        if not peers.nodes:
            await peers.refresh(())
        brought = await self._groups_brought()
        is_wanted = group_matcher(self._work.settings)
        groups, failures = await consumer_groups(self._work.source)
        wanted = sorted(filter(is_wanted, groups | brought))
        failures += [_too_long(group) for group in wanted if not _fits(group)]
        wanted = [group for group in wanted if _fits(group)]
        for first in range(0, len(wanted), GROUPS_AT_ONCE_MAX):
            some = wanted[first : first + GROUPS_AT_ONCE_MAX]
            failures += await self._sync_some(some, mirrored)
        if failures:
            why = "; ".join(failures[:FAILURES_TOLD_MAX])
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, why)

    async def _sync_some(self, groups: list[str], mirrored: Ranges) -> list[str]:
        """Bring some groups in step; give why others could not be."""
        failures: list[str] = []
        compared: list[_Compared] = []
        for group, at_source in (await offsets_of_groups(self._work.source, groups)).items():
            try:
                if isinstance(at_source, ApiError):
                    raise at_source
                compared += await self._compare(group, at_source, mirrored)
            except ApiError as error:
                failures.append(f"{group}: {error.why}")
        same = await self._same_topics({topic for one in compared for topic in one.plan.topics})
        for one in compared:
            try:
                await self._bring(one, same)
            except ApiError as error:
                failures.append(f"{one.group}: {error.why}")
        return failures

    @property
    def _mark(self) -> str:
        fact = self._broker.facts.image.mirrors.get(self._work.name)
        return mark_of(self._work.name, "" if fact is None else fact.source_cluster_id)

    async def _groups_brought(self) -> set[str]:
        """Give the groups that may have offsets of ours. Raises ApiError while a shard loads."""
        if self._brought is None:
            broker, mark = self._broker, self._mark
            told: list[tuple[str, ...]] = await broker.groups.run_everywhere(
                lambda shard, _: shard.groups_brought_by(mark), timeout_s=GROUP_TIMEOUT_S
            )
            self._brought = {group for groups in told for group in groups}
        return self._brought

    async def _compare(
        self, group: str, at_source: GroupAtSource, mirrored: Ranges
    ) -> Iterable[_Compared]:
        """Compare a group's offsets, unless it has nothing to do with this mirror."""
        broker = self._broker
        brought = await self._groups_brought()
        if group not in brought and not at_source.offsets.keys() & mirrored.keys():
            return ()
        topic = offsets_topic(broker.settings)
        await broker.new_topics.ensure(topic.name, topic.partition_count, topic.config)
        here: Mapping[TopicPartition, CommittedOffset] = await broker.groups.run(
            group, lambda shard, _: shard.offsets_of(group), timeout_s=GROUP_TIMEOUT_S
        )
        mark = self._mark
        ours = {of for of, one in here.items() if one.brought_by == mark}
        metadata_max: int = broker.settings[OFFSET_METADATA_MAX_BYTES]
        plan = plan_group(
            {of: _without_long(one, metadata_max) for of, one in at_source.offsets.items()},
            {of: one.offset for of, one in here.items()},
            mirrored,
            ours - at_source.untold,
            {of: here[of].metadata for of in ours},
        )
        return (_Compared(group, mark, ours, plan),)

    async def _bring(self, compared: _Compared, same: Collection[TopicName]) -> None:
        """Write what is planned for the topics that are the ``same`` over there."""
        group, brought = compared.group, await self._groups_brought()
        changes = self._changes(compared, same)
        if changes and not await self._commit(group, changes, compared.mark):
            return
        if any(changes.values()) or compared.ours - changes.keys():
            brought.add(group)
        else:  # groups come and go by the thousand
            brought.discard(group)

    def _changes(self, compared: _Compared, same: Collection[TopicName]) -> Changes:
        plan, mark = compared.plan, compared.mark
        live: Ranges = {}
        for of in (*plan.commit, *plan.delete):
            bounds = self._range_of(of)  # a stop may have been asked for, or the log been cut
            if bounds is not None and of.topic in same:
                live[of] = bounds
        wall_ms = self._broker.clock.wall_ms()
        clamped = {of: clamp(one, live[of]) for of, one in plan.commit.items() if of in live}
        changes: Changes = {
            of: CommittedOffset(
                one.offset, one.leader_epoch, one.metadata, wall_ms, brought_by=mark
            )
            for of, one in clamped.items()
        }
        return changes | {of: None for of in plan.delete if of in live}

    async def _same_topics(self, topics: Collection[TopicName]) -> set[TopicName]:
        """Leave out what is not there, hidden from this mirror, or another of the same name.

        Asked after the offsets: what is still the same now was so when they were told. The offsets
        of a topic that is gone went with it, of which the copy is kept; those of another topic are
        not of our records.
        """
        if not topics:
            return set()
        told = await self._work.source.peers.refresh(topics)
        ids = {topic.name: topic.topic_id for topic in told if not topic.error_code}
        here = self._broker.facts.image.topics
        return {
            name
            for name in topics
            if name in here and name in ids and is_same_topic(here[name].id, ids[name])
        }

    async def _commit(self, group: str, changes: Changes, mark: str) -> bool:
        """Write offsets unless the group has members here: then they are its own."""
        try:
            await self._broker.groups.run(
                group,
                lambda shard, _: shard.commit_for_mirror(group, changes, mark),
                timeout_s=GROUP_TIMEOUT_S,
            )
        except ApiError as error:
            if error.code != ErrorCode.NON_EMPTY_GROUP:
                raise
            log.debug("group is active here, left alone", extra={"group": group})
            return False
        return True

    def _mirrored(self) -> Ranges:
        """Give what is mirrored of every partition whose offsets this mirror may write now."""
        return dict(self._ranges())

    def _ranges(self) -> Iterator[tuple[TopicPartition, LocalRange]]:
        for of in tuple(self._work.status.partitions):
            bounds = self._range_of(of)
            if bounds is not None:
                yield of, bounds

    def _range_of(self, of: TopicPartition) -> LocalRange | None:
        """Give what is mirrored of a partition; None if its offsets are not this mirror's to write.

        Before both logs were compared, offsets here may be of records that were written here.
        """
        topic = self._broker.facts.image.topics.get(of.topic)
        partition = self._broker.partitions.find(of)
        at_work = self._work.status.partitions.get(of)
        if topic is None or partition is None or at_work is None or not at_work.is_aligned:
            return None
        if not _is_live(topic, self._work.name):
            return None
        start, end = partition.log.start, partition.high_watermark
        epoch_at: Callable[[Offset], int] = partition.log.epochs.epoch_at
        return LocalRange(
            start,
            end,
            LeaderEpoch(epoch_at(start)),
            LeaderEpoch(epoch_at(Offset(end - 1))),
        )


def _fits(group: str) -> bool:
    return len(group.encode()) <= GROUP_TEXT_BYTES_MAX


def _too_long(group: str) -> str:
    return f"{group[:100]}...: the group id is longer than {GROUP_TEXT_BYTES_MAX} bytes"


def _without_long(committed: SourceOffset, bytes_max: int) -> SourceOffset:
    """Leave out metadata that no client may commit here; what counts is the offset."""
    is_long = len(committed.metadata.encode()) > bytes_max
    return replace(committed, metadata="") if is_long else committed


def _is_live(topic: TopicFact, mirror: str) -> bool:
    its = topic.mirror
    return (
        its is not None and its.mirror == mirror and its.desired_state is not DesiredState.STOPPED
    )
