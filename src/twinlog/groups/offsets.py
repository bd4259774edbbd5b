"""Committed offsets of all groups in one shard: what stands, and what has expired."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from twinlog.coordination.outcome import StateRecord
from twinlog.groups.classic import ClassicGroup
from twinlog.groups.classic_states import ClassicState
from twinlog.groups.commands import CommittedOffset
from twinlog.groups.records import offset_tombstone
from twinlog.model.ids import Offset, TopicName, TopicPartition

GroupOffsets = Mapping[TopicPartition, CommittedOffset]


@dataclass(slots=True)
class Offsets:
    """Per group, the offset to read next in each partition; only ``replay`` changes them."""

    _by_group: dict[str, dict[TopicPartition, CommittedOffset]] = field(default_factory=dict)

    def replay(self, group_id: str, of: TopicPartition, committed: CommittedOffset | None) -> None:
        """Take in a written offset; None deletes it."""
        if committed is not None:
            self._by_group.setdefault(group_id, {})[of] = committed
            return
        offsets = self._by_group.get(group_id, {})
        offsets.pop(of, None)
        if not offsets:
            self._by_group.pop(group_id, None)

    def of(self, group_id: str) -> GroupOffsets:
        """Give the offsets of a group; none when it has none."""
        return self._by_group.get(group_id, {})

    def groups(self) -> Iterable[str]:
        """Give the groups that have offsets."""
        return tuple(self._by_group)

    def groups_brought_by(self, mirror: str) -> tuple[str, ...]:
        """Give the groups that have an offset which ``mirror`` brought."""
        return tuple(
            group_id
            for group_id, offsets in self._by_group.items()
            if any(committed.brought_by == mirror for committed in offsets.values())
        )

    def beyond(
        self, ends: Mapping[TopicPartition, Offset]
    ) -> list[tuple[str, TopicPartition, CommittedOffset]]:
        """Give every group's offsets that are above the end given for their partition."""
        return [
            (group_id, of, committed)
            for group_id, offsets in self._by_group.items()
            for of, committed in offsets.items()
            if of in ends and committed.offset > ends[of]
        ]

    def tombstones(self, group_id: str, which: Iterable[TopicPartition]) -> list[StateRecord]:
        """Give the records that delete these offsets of a group, where it has them."""
        offsets = self.of(group_id)
        return [offset_tombstone(group_id, of) for of in which if of in offsets]

    def tombstones_of_topics(self, topics: frozenset[TopicName]) -> list[StateRecord]:
        """Give the records that delete every group's offsets in these topics."""
        return [
            offset_tombstone(group_id, of)
            for group_id, offsets in self._by_group.items()
            for of in offsets
            if of.topic in topics
        ]


def expired_offsets(
    group: ClassicGroup, offsets: GroupOffsets, retention_ms: int, now_ms: int
) -> list[TopicPartition]:
    """Give the offsets that nobody needs any more, by KIP-211.

    An empty group keeps its offsets for the retention since its last member left; a group that
    never had members, since each commit. A stable group of consumers loses the offsets of topics
    that none of them reads, the retention after the last commit. A group that is rebalancing loses
    nothing: who reads what is not known then.
    """
    if not group.is_active:
        left_at_ms = group.state_since_ms if group.protocol_type is not None else -1
        candidates = offsets
    else:
        subscribed = group.subscribed_topics() if group.state is ClassicState.STABLE else None
        if subscribed is None:
            return []
        left_at_ms = -1
        candidates = {of: o for of, o in offsets.items() if of.topic not in subscribed}
    return [
        of
        for of, committed in candidates.items()
        if _expires_at_ms(committed, left_at_ms, retention_ms) <= now_ms
    ]


def _expires_at_ms(committed: CommittedOffset, left_at_ms: int, retention_ms: int) -> int:
    if committed.expires_at_ms is not None:
        return committed.expires_at_ms
    return max(left_at_ms, committed.committed_at_ms) + retention_ms
