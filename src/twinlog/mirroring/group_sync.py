"""Source and local group offsets -> what to commit here and what to delete.

Per partition, not per group: one that is ahead or unknown does not hold up the others. An offset
is never beyond what is mirrored, nor below what is still there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from twinlog.model.ids import NO_EPOCH, LeaderEpoch, Offset, TopicPartition


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


def plan_group(
    at_source: Mapping[TopicPartition, SourceOffset],
    here: Mapping[TopicPartition, Offset],
    mirrored: Mapping[TopicPartition, LocalRange],
    synced: Mapping[TopicPartition, Offset],
) -> GroupPlan:
    """Compare a group's offsets.

    ``mirrored`` has the partitions whose offsets this mirror may write now; no other is touched.
    ``synced`` is what this mirror wrote last: what the source has deleted since is deleted here,
    unless somebody else moved it.
    """
    commit: dict[TopicPartition, SourceOffset] = {}
    for of, committed in at_source.items():
        bounds = mirrored.get(of)
        if bounds is None or committed.offset < 0:
            continue
        clamped = clamp(committed, bounds)
        if here.get(of) != clamped.offset:
            commit[of] = clamped
    delete = frozenset(
        of
        for of, offset in synced.items()
        if of in mirrored and of not in at_source and here.get(of) == offset
    )
    return GroupPlan(commit, delete)


def clamp(committed: SourceOffset, bounds: LocalRange) -> SourceOffset:
    """Bring an offset into what is mirrored; epoch and metadata belong to where it was."""
    if committed.offset < bounds.start:
        return SourceOffset(bounds.start, bounds.start_epoch)
    if committed.offset > bounds.end:
        return SourceOffset(bounds.end, bounds.end_epoch)
    return committed
