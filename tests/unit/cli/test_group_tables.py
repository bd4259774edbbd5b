"""Groups are shown in Kafka's columns."""

import io
import struct

from twinlog.cli.group_tables import (
    GroupRow,
    Table,
    assigned_to,
    members_table,
    offsets_table,
    states_table,
)
from twinlog.wire.messages.groups import DescribedGroup, DescribedMember

# Version 0, one topic "orders" with partitions 0 and 2, no user data.
ASSIGNMENT = (
    struct.pack(">hih", 0, 1, 6) + b"orders" + struct.pack(">iii", 2, 0, 2) + struct.pack(">i", -1)
)


def member(assignment: bytes = ASSIGNMENT) -> DescribedMember:
    return DescribedMember(
        member_id="c-1",
        client_id="c",
        client_host="/127.0.0.1",
        member_metadata=b"",
        member_assignment=assignment,
    )


GROUP = DescribedGroup(
    group_id="g",
    group_state="Stable",
    protocol_type="consumer",
    protocol_data="range",
    members=(member(),),
)


def lines(table: Table) -> list[str]:
    out = io.StringIO()
    table.write(out)
    return out.getvalue().splitlines()


def test_an_assignment_is_read_and_one_that_is_none_is_empty() -> None:
    assert assigned_to(member()) == [("orders", 0), ("orders", 2)]
    assert assigned_to(member(b"")) == []
    assert assigned_to(member(b"\0\1nonsense")) == []


def test_offsets_show_lag_and_who_has_the_partition() -> None:
    rows = [
        GroupRow("orders", 0, 3, 10, member()),
        GroupRow("orders", 1, None, 10, None),
        GroupRow("orders", 2, 12, 10, None),
    ]
    head, first, second, third = lines(offsets_table("g", rows))
    expected = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID"
    assert head.split() == expected.split(" ")
    assert first.split() == ["g", "orders", "0", "3", "10", "7", "c-1", "/127.0.0.1", "c"]
    assert second.split() == ["g", "orders", "1", "-", "10", "-", "-", "-", "-"]
    assert third.split()[5] == "0"


def test_members_and_states() -> None:
    assert lines(members_table(GROUP))[1].split() == ["g", "c-1", "/127.0.0.1", "c", "2"]
    assert lines(states_table(GROUP, "h:1 (5)"))[1].split() == [
        *("g", "h:1", "(5)", "range", "Stable", "1")
    ]
