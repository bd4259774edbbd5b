import struct

import pytest

from twinlog.groups.commands import CommittedOffset
from twinlog.groups.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_group,
    decode_key,
    decode_offset,
    group_record,
    group_tombstone,
    offset_record,
    offset_tombstone,
    partition_of,
)
from twinlog.model.errors import WireError
from twinlog.model.ids import LeaderEpoch, Offset, TopicName, TopicPartition
from twinlog.wire.codec import encode_bytes

OF = TopicPartition(TopicName("orders"), 7)


def test_a_committed_offset_has_kafkas_bytes() -> None:
    committed = CommittedOffset(Offset(42), LeaderEpoch(3), "note", committed_at_ms=1_000)
    record = offset_record("group", OF, committed)
    assert record.key == b"\0\1" + b"\0\5group" + b"\0\6orders" + struct.pack(">i", 7)
    assert record.value == (
        b"\0\3" + struct.pack(">qi", 42, 3) + b"\0\4note" + struct.pack(">q", 1_000)
    )


def test_an_offset_with_its_own_expiry_is_written_in_the_version_that_has_it() -> None:
    committed = CommittedOffset(Offset(42), committed_at_ms=1_000, expires_at_ms=2_000)
    record = offset_record("group", OF, committed)
    assert record.value == (
        b"\0\1" + struct.pack(">q", 42) + b"\0\0" + struct.pack(">qq", 1_000, 2_000)
    )
    assert decode_offset(record.value) == committed


def test_an_offset_that_a_mirror_brought_says_so_where_kafka_passes_it_over() -> None:
    committed = CommittedOffset(Offset(42), LeaderEpoch(3), "note", 1_000, brought_by="m@source")
    record = offset_record("group", OF, committed)
    tagged = b"\x01" + b"\xe4\x5d" + b"\x09" + b"\x09m@source"
    assert record.value == (
        b"\0\4" + struct.pack(">qi", 42, 3) + b"\5note" + struct.pack(">q", 1_000) + tagged
    )
    assert decode_offset(record.value) == committed


def test_a_group_has_kafkas_bytes() -> None:
    member = MemberMetadata(
        member_id="m",
        group_instance_id=None,
        client_id="c",
        client_host="/h",
        rebalance_timeout_ms=60,
        session_timeout_ms=10,
        subscription=b"sub",
        assignment=b"as",
    )
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=5,
        protocol="range",
        leader="m",
        current_state_timestamp=99,
        members=(member,),
    )
    record = group_record("group", value)
    assert record.key == b"\0\2\0\5group"
    assert record.value == (
        b"\0\3\0\x08consumer" + struct.pack(">i", 5) + b"\0\5range\0\1m" + struct.pack(">q", 99)
        + struct.pack(">i", 1) + b"\0\1m\xff\xff\0\1c\0\2/h" + struct.pack(">ii", 60, 10)
        + struct.pack(">i", 3) + b"sub" + struct.pack(">i", 2) + b"as"
    )  # fmt: skip
    assert decode_group(record.value) == value


def test_keys_are_read_back_and_tombstones_have_no_value() -> None:
    key = decode_key(offset_tombstone("group", OF).key)
    assert isinstance(key, OffsetCommitKey)
    assert (key.group, partition_of(key)) == ("group", OF)
    assert offset_tombstone("group", OF).value is None
    assert decode_key(group_tombstone("group").key) == GroupMetadataKey(group="group")


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_an_offset_is_read(version: int) -> None:
    value = OffsetCommitValue(offset=9, leader_epoch=2, metadata="n", commit_timestamp=5)
    data = struct.pack(">h", version) + encode_bytes(value, version, flexible=version >= 4)
    found = decode_offset(data)
    assert (found.offset, found.metadata, found.committed_at_ms) == (9, "n", 5)
    assert found.leader_epoch == (2 if version >= 3 else -1)


def test_a_key_of_something_we_do_not_know_is_passed_over() -> None:
    assert decode_key(struct.pack(">h", 3) + b"\0\5group") is None


@pytest.mark.parametrize("value", [b"", b"\0", b"\0\3\0\0", b"\0\x09" + bytes(30)])
def test_a_value_that_cannot_be_read_says_so(value: bytes) -> None:
    with pytest.raises(WireError):
        decode_offset(value)
