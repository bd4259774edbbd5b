"""How groups are shown: Kafka's columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TextIO

from twinlog.cli.output import fitted, write_table
from twinlog.model.errors import WireError
from twinlog.wire.codec import decode_from
from twinlog.wire.messages.groups import DescribedGroup, DescribedMember
from twinlog.wire.primitives import Int16, Int32
from twinlog.wire.schema import message

OFFSET_HEADINGS: Final = (
    "GROUP",
    "TOPIC",
    "PARTITION",
    "CURRENT-OFFSET",
    "LOG-END-OFFSET",
    "LAG",
    "CONSUMER-ID",
    "HOST",
    "CLIENT-ID",
)
MEMBER_HEADINGS: Final = ("GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS")
STATE_HEADINGS: Final = ("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS")


@message
class AssignedTopic:
    """A topic in the assignment of a consumer (its embedded protocol)."""

    topic: str
    partitions: tuple[Int32, ...]


@message
class ConsumerAssignment:
    """What the leader of a group gives a member; more may follow in later versions."""

    version: Int16
    topics: tuple[AssignedTopic, ...]


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One partition as a group sees it."""

    topic: str
    partition: int
    current: int | None
    end: int | None
    member: DescribedMember | None

    @property
    def lag(self) -> int | None:
        """Records that the group has not consumed."""
        if self.current is None or self.end is None:
            return None
        return max(0, self.end - self.current)


@dataclass(frozen=True, slots=True)
class Table:
    """Headings and rows."""

    headings: Sequence[str]
    rows: Sequence[Sequence[object]]

    def write(self, out: TextIO) -> None:
        """Write it, each column as wide as it needs."""
        write_table(fitted(self.headings, self.rows), self.rows, out)


def assigned_to(member: DescribedMember) -> list[tuple[str, int]]:
    """Give the partitions of a member; none when its assignment is not a consumer's."""
    if not member.member_assignment:
        return []
    try:
        found, _ = decode_from(ConsumerAssignment, member.member_assignment, 0, flexible=False)
    except WireError:
        return []
    return [(topic.topic, partition) for topic in found.topics for partition in topic.partitions]


def offsets_table(group: str, rows: Sequence[GroupRow]) -> Table:
    """Give the table of offsets and lag."""
    cells = []
    for row in rows:
        member = row.member
        who = (None,) * 3 if member is None else _who(member)
        cells.append((group, row.topic, row.partition, row.current, row.end, row.lag, *who))
    return Table(OFFSET_HEADINGS, cells)


def members_table(group: DescribedGroup) -> Table:
    """Give the table of members."""
    cells = [(group.group_id, *_who(m), len(assigned_to(m))) for m in group.members]
    return Table(MEMBER_HEADINGS, cells)


def states_table(group: DescribedGroup, coordinator: str) -> Table:
    """Give the table of one group's state."""
    strategy = group.protocol_data or None
    row = (group.group_id, coordinator, strategy, group.group_state, len(group.members))
    return Table(STATE_HEADINGS, [row])


def _who(member: DescribedMember) -> tuple[str, str, str]:
    return member.member_id, member.client_host, member.client_id
