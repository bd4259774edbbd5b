"""Keys and values of ``__consumer_offsets``, byte for byte as Kafka writes them.

Both begin with their version as an int16. The version of a key tells what the record is: 0 and 1
an offset, 2 a classic group; others belong to kinds of groups we do not know, and are skipped.

Values are written in v3 (an offset that carries its own expiry in v1, the only version with that
field), which every Kafka since 2.1 reads; v0-4 are read. An offset that a mirror brought says so in
a tagged field of v4, the first version that has such fields: so what is whose is never in doubt,
and costs no write of its own.
"""

import struct
from sys import intern
from typing import Annotated, Any, Final, TypeVar

from twinlog.coordination.outcome import StateRecord
from twinlog.groups.commands import CommittedOffset
from twinlog.model.errors import WireError
from twinlog.model.ids import LeaderEpoch, Offset, TopicName, TopicPartition
from twinlog.wire.codec import decode_from, encode_bytes
from twinlog.wire.primitives import Int32, Int64
from twinlog.wire.schema import message, since, tag, until

T = TypeVar("T")

OFFSET_KEY_VERSIONS: Final = (0, 1)
GROUP_KEY_VERSION: Final = 2
VALUE_VERSION: Final = 3
VALUE_VERSION_WITH_EXPIRY: Final = 1
VALUE_VERSION_MAX: Final = 4
VALUE_FLEXIBLE_SINCE: Final = 4
BROUGHT_BY_TAG: Final = 12_004
"""Ours, and far from the numbers that Kafka may come to use."""

_VERSION: Final = struct.Struct(">h")


@message
class OffsetCommitKey:
    """Whose offset: a group's, in one partition."""

    group: str
    topic: str
    partition: Int32


@message
class OffsetCommitValue:
    """A committed offset."""

    offset: Int64
    leader_epoch: Annotated[Int32, since(3)] = -1
    metadata: str
    commit_timestamp: Int64
    expire_timestamp: Annotated[Int64, since(1), until(1)] = -1
    brought_by: Annotated[str, since(4), tag(BROUGHT_BY_TAG)] = ""


@message
class GroupMetadataKey:
    """Which classic group."""

    group: str


@message
class MemberMetadata:
    """One member of a classic group in its current generation."""

    member_id: str
    group_instance_id: Annotated[str | None, since(3)] = None
    client_id: str
    client_host: str
    rebalance_timeout_ms: Annotated[Int32, since(1)] = 0
    session_timeout_ms: Int32
    subscription: bytes
    assignment: bytes


@message
class GroupMetadataValue:
    """A classic group in its current generation; without members it is Empty."""

    protocol_type: str
    generation: Int32
    protocol: str | None
    leader: str | None
    current_state_timestamp: Annotated[Int64, since(2)] = -1
    members: tuple[MemberMetadata, ...]


Key = OffsetCommitKey | GroupMetadataKey


def offset_record(group_id: str, of: TopicPartition, committed: CommittedOffset) -> StateRecord:
    """Give the record of a committed offset."""
    expires_at_ms = committed.expires_at_ms
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.committed_at_ms,
        expire_timestamp=-1 if expires_at_ms is None else expires_at_ms,
        brought_by=committed.brought_by,
    )
    version = VALUE_VERSION if expires_at_ms is None else VALUE_VERSION_WITH_EXPIRY
    if committed.brought_by:
        version = VALUE_FLEXIBLE_SINCE
    return StateRecord(_offset_key(group_id, of), _encode(value, version))


def offset_tombstone(group_id: str, of: TopicPartition) -> StateRecord:
    """Give the record that deletes a committed offset."""
    return StateRecord(_offset_key(group_id, of), None)


def group_record(group_id: str, value: GroupMetadataValue) -> StateRecord:
    """Give the record of a classic group."""
    return StateRecord(_group_key(group_id), _encode(value, VALUE_VERSION))


def group_tombstone(group_id: str) -> StateRecord:
    """Give the record that deletes a classic group."""
    return StateRecord(_group_key(group_id), None)


def decode_key(key: bytes) -> Key | None:
    """Read a key; None when it belongs to something we do not know. Raises WireError."""
    version = _version(key)
    if version in OFFSET_KEY_VERSIONS:
        return _decode(OffsetCommitKey, key, flexible=False)
    if version == GROUP_KEY_VERSION:
        return _decode(GroupMetadataKey, key, flexible=False)
    return None


def decode_group(value: bytes) -> GroupMetadataValue:
    """Read the value of a group's record. Raises WireError."""
    return _decode_value(GroupMetadataValue, value)


def decode_offset(value: bytes) -> CommittedOffset:
    """Read the value of an offset's record. Raises WireError."""
    found = _decode_value(OffsetCommitValue, value)
    return CommittedOffset(
        offset=Offset(found.offset),
        leader_epoch=LeaderEpoch(found.leader_epoch),
        metadata=found.metadata,
        committed_at_ms=found.commit_timestamp,
        expires_at_ms=None if found.expire_timestamp == -1 else found.expire_timestamp,
        brought_by=intern(found.brought_by),
    )


def partition_of(key: OffsetCommitKey) -> TopicPartition:
    """Give the partition an offset's key speaks of."""
    return TopicPartition(TopicName(key.topic), key.partition)


def _offset_key(group_id: str, of: TopicPartition) -> bytes:
    key = OffsetCommitKey(group=group_id, topic=of.topic, partition=of.partition)
    return _encode(key, OFFSET_KEY_VERSIONS[-1])


def _group_key(group_id: str) -> bytes:
    return _encode(GroupMetadataKey(group=group_id), GROUP_KEY_VERSION)


def _encode(what: Any, version: int) -> bytes:
    flexible = version >= VALUE_FLEXIBLE_SINCE  # keys have no such version
    return _VERSION.pack(version) + encode_bytes(what, version, flexible=flexible)


def _version(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise WireError(f"a record of __consumer_offsets has {len(data)} bytes where a version is")
    version: int = _VERSION.unpack_from(data)[0]
    return version


def _decode_value(cls: type[T], value: bytes) -> T:
    version = _version(value)
    if not 0 <= version <= VALUE_VERSION_MAX:
        raise WireError(f"{cls.__name__} v{version} of __consumer_offsets; v0-4 are known")
    return _decode(cls, value, flexible=version >= VALUE_FLEXIBLE_SINCE)


def _decode(cls: type[T], data: bytes, *, flexible: bool) -> T:
    return decode_from(cls, data, _version(data), flexible=flexible, at=_VERSION.size)[0]
