import struct

import pytest

from twinlog.groups.classic import ClassicGroup
from twinlog.groups.commands import CommittedOffset
from twinlog.groups.offsets import Offsets, expired_offsets
from twinlog.groups.records import GroupMetadataValue, MemberMetadata
from twinlog.groups.settings import GroupSettings
from twinlog.model.ids import Offset, TopicName, TopicPartition

READ = TopicPartition(TopicName("read"), 0)
UNREAD = TopicPartition(TopicName("unread"), 0)
RETENTION_MS = 1_000
BROUGHT = CommittedOffset(Offset(1), brought_by="m")
OFFSETS = {
    READ: CommittedOffset(Offset(1), committed_at_ms=100),
    UNREAD: CommittedOffset(Offset(2), committed_at_ms=100),
}


def group(**value: object) -> ClassicGroup:
    found = ClassicGroup("g", GroupSettings())
    fields = {"protocol_type": "consumer", "generation": 1, "protocol": None, "leader": None}
    written = GroupMetadataValue(**{"members": (), **fields, **value})  # type: ignore[arg-type]
    found.replay(written)
    return found


def a_reading_group() -> ClassicGroup:
    subscription = struct.pack(">hi", 0, 1) + b"\0\4read"
    member = MemberMetadata(
        member_id="m",
        client_id="c",
        client_host="/h",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        subscription=subscription,
        assignment=b"",
    )
    return group(protocol="range", leader="m", members=(member,))


def expired(of: ClassicGroup, now_ms: int) -> list[TopicPartition]:
    return expired_offsets(of, OFFSETS, RETENTION_MS, now_ms)


def test_an_empty_group_keeps_its_offsets_for_the_retention_since_it_emptied() -> None:
    emptied = group(current_state_timestamp=5_000)
    assert expired(emptied, 5_999) == []
    assert expired(emptied, 6_000) == [READ, UNREAD]


def test_a_group_that_never_had_members_loses_an_offset_after_its_commit() -> None:
    simple = ClassicGroup("g", GroupSettings())
    assert expired(simple, 1_099) == []
    assert expired(simple, 1_100) == [READ, UNREAD]


def test_a_commit_after_the_group_emptied_counts() -> None:
    offsets = {READ: CommittedOffset(Offset(1), committed_at_ms=9_000)}
    emptied = group(current_state_timestamp=5_000)
    assert expired_offsets(emptied, offsets, RETENTION_MS, 9_999) == []


def test_a_stable_group_loses_only_what_nobody_reads() -> None:
    assert expired(a_reading_group(), 1_100) == [UNREAD]


def test_a_group_that_rebalances_loses_nothing() -> None:
    rebalancing = a_reading_group()
    rebalancing.begin_rebalance(0)
    assert expired(rebalancing, 1_000_000) == []


def test_a_group_of_another_kind_loses_nothing_while_it_has_members() -> None:
    workers = a_reading_group()
    workers.protocol_type = "connect"
    assert expired(workers, 1_000_000) == []


def test_a_client_may_have_chosen_its_own_expiry() -> None:
    offsets = {READ: CommittedOffset(Offset(1), committed_at_ms=100, expires_at_ms=150)}
    emptied = group(current_state_timestamp=5_000)
    assert expired_offsets(emptied, offsets, RETENTION_MS, 149) == []
    assert expired_offsets(emptied, offsets, RETENTION_MS, 150) == [READ]


def test_an_offset_stands_until_it_is_deleted() -> None:
    offsets = Offsets()
    offsets.replay("g", READ, OFFSETS[READ])
    offsets.replay("g", UNREAD, OFFSETS[UNREAD])
    offsets.replay("g", READ, None)
    offsets.replay("h", READ, None)
    assert offsets.of("g") == {UNREAD: OFFSETS[UNREAD]}
    offsets.replay("g", UNREAD, None)
    assert offsets.groups() == ()


@pytest.mark.parametrize(("topic", "count"), [("read", 2), ("unread", 1), ("other", 0)])
def test_a_deleted_topic_takes_the_offsets_of_all_groups_with_it(topic: str, count: int) -> None:
    offsets = Offsets()
    offsets.replay("g", READ, OFFSETS[READ])
    offsets.replay("h", READ, OFFSETS[READ])
    offsets.replay("h", UNREAD, OFFSETS[UNREAD])
    assert len(offsets.tombstones_of_topics(frozenset({TopicName(topic)}))) == count


def test_groups_that_a_mirror_brought_offsets_of_are_those_that_nobody_committed_since() -> None:
    offsets = Offsets()
    for name in ("kept", "half", "taken over"):
        for of in (READ, UNREAD):
            offsets.replay(name, of, BROUGHT)
    offsets.replay("half", READ, CommittedOffset(Offset(1)))
    for of in (READ, UNREAD):
        offsets.replay("taken over", of, CommittedOffset(Offset(1)))
    assert offsets.groups_brought_by("m") == ("kept", "half")
    assert offsets.groups_brought_by("other") == ()
