"""Source and local group offsets -> what to commit here and what to delete.

Per partition, not per group: one that is ahead or unknown does not hold up the others. An offset
is never beyond what is mirrored, nor below what is still there.

What a mirror brought is marked as brought, in the record of the offset itself: a client that
commits here writes its own record without the mark, so that what is deleted because the source has
deleted it is never somebody else's, also when the two are equal, and also after a restart.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from twinlog.model.ids import NO_EPOCH, LeaderEpoch, Offset, TopicName, TopicPartition


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """What a group committed at the source."""

    offset: Offset
    leader_epoch: LeaderEpoch = NO_EPOCH
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class LocalRange:
    """What is mirrored of a partition: from ``start`` to ``end`` (exclusive), and in which epoch.

    ``start_epoch`` and ``end_epoch`` are those of the records at the two ends; -1 if unknown.
    """

    start: Offset
    end: Offset
    start_epoch: LeaderEpoch = NO_EPOCH
    end_epoch: LeaderEpoch = NO_EPOCH


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """What brings one group in step with the source."""

    commit: Mapping[TopicPartition, SourceOffset] = field(default_factory=dict)
    delete: frozenset[TopicPartition] = frozenset()

    @property
    def topics(self) -> set[TopicName]:
        """The topics it is about."""
        return {of.topic for of in (*self.commit, *self.delete)}


def plan_group(
    at_source: Mapping[TopicPartition, SourceOffset],
    here: Mapping[TopicPartition, Offset],
    mirrored: Mapping[TopicPartition, LocalRange],
    brought: Collection[TopicPartition],
    noted: Mapping[TopicPartition, str] | None = None,
) -> GroupPlan:
    """Compare a group's offsets.

    ``mirrored`` has the partitions whose offsets this mirror may write now; no other is touched.
    ``brought`` are those of ``here`` that this mirror brought and nobody committed since: what the
    source has deleted of them is deleted here. ``noted`` is the metadata of theirs: a group that
    commits the same offset with another word is followed as well.
    """
    said = noted or {}
    commit: dict[TopicPartition, SourceOffset] = {}
    for of, committed in at_source.items():
        bounds = mirrored.get(of)
        if bounds is None or committed.offset < 0:
            continue
        clamped = clamp(committed, bounds)
        is_same_word = said.get(of, clamped.metadata) == clamped.metadata
        if here.get(of) != clamped.offset or not is_same_word:
            commit[of] = clamped
    delete = frozenset(
        of for of in brought if of in mirrored and of in here and _is_gone(at_source.get(of))
    )
    return GroupPlan(commit, delete)


def mark_of(mirror: str, source_cluster_id: str) -> str:
    """Give what marks the offsets that a mirror brings.

    A mirror of another source is another mirror, also under the same name.
    """
    return f"{mirror}@{source_cluster_id}"


def _is_gone(at_source: SourceOffset | None) -> bool:
    return at_source is None or at_source.offset < 0


def clamp(committed: SourceOffset, bounds: LocalRange) -> SourceOffset:
    """Bring an offset into what is mirrored; epoch and metadata belong to where it was."""
    if committed.offset < bounds.start:
        return SourceOffset(bounds.start, bounds.start_epoch)
    if committed.offset > bounds.end:
        return SourceOffset(bounds.end, bounds.end_epoch)
    return committed
