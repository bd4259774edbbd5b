"""Keys and values of ``__mirror_state``: what each record type is, and its bytes.

Record types, the first two bytes of every key (KIP-1279 leaves the numbers open; these are ours):
1 MirrorPartitionState, 2 LastMirrorEpochs; from 12000 on what the proposal does not have. Keys are
not flexible, values are (v0); the first two bytes of a value are its version. A null value is a
tombstone. Unknown types and versions are skipped by whoever reads them, so that a newer broker can
leave its records behind.
"""

import struct
from typing import Annotated, Final
from uuid import UUID

from twinlog.model.errors import WireError
from twinlog.wire.codec import decode_whole, encode_bytes
from twinlog.wire.primitives import Int8, Int16, Int32, Int64
from twinlog.wire.schema import message, since, tag

PARTITION_STATE_TYPE: Final = 1
LAST_MIRROR_EPOCH_TYPE: Final = 2
LOSSES_TYPE: Final = 12_003
START_TYPE: Final = 12_004
"""Ours, and far from the numbers that the proposal may come to use."""
VERSION: Final = 0
_PREFIX: Final = struct.Struct(">h")


@message
class MirrorPartition:
    """One partition of one topic in one mirror: the key of every record type."""

    mirror: str
    topic_id: UUID
    partition: Int32


@message
class PartitionState:
    """Where a mirrored partition is, why; ``failed_at_ms`` (tagged, ours) is 0 unless FAILED."""

    state: Int8
    leader_epoch: Int32 = -1
    state_epoch: Int32 = 0
    error: str | None = None
    retry_attempt: Int16 = 0
    previous_state: Int8 = -1
    failed_at_ms: Annotated[Int64, since(0), tag(0)] = 0


@message
class LastMirrorEpoch:
    """The latest epoch that came from the source, and the log end, when the mirror stopped.

    ``own_from`` (tagged, ours) is the first leader epoch in which anything is written here after.
    """

    epoch: Int32 = -1
    log_end: Int64 = -1
    own_from: Annotated[Int32, since(0), tag(0)] = -1


@message
class RecordLoss:
    """Records that were cut off here, or never came; ``end`` is exclusive."""

    kind: str
    first: Int64
    end: Int64
    cause: str
    at_ms: Int64
    saved_to: str | None = None
    """The file that holds what was cut off."""
    saved_bytes: Int64 = 0


@message
class PartitionLosses:
    """The last losses of a partition, the oldest first."""

    losses: tuple[RecordLoss, ...]


@message
class PartitionStart:
    """Where a partition began that was not to be mirrored from the source's earliest record.

    The source had records from ``skipped_from`` up to ``offset``, and they were not wanted.
    ``leader_epoch`` is the source's of then: both logs agree up to ``offset`` in it. A failback
    has no such beginning; but if the source began inside of our log when it mirrored us,
    ``own_below`` says where: what is below is only here, and no retention over there counts for it.
    """

    spec: str = ""
    offset: Int64 = -1
    skipped_from: Int64 = -1
    leader_epoch: Int32 = -1
    at_ms: Int64 = 0
    is_over: bool = False
    """Whether the partition was stopped since: another start from scratch begins anew."""
    own_below: Int64 = -1


NON_RETRYABLE: Final = -1
"""The retry attempt of a failure that only an operator can mend."""

Value = PartitionState | LastMirrorEpoch | PartitionLosses | PartitionStart
_VALUES: Final[dict[int, type[Value]]] = {
    PARTITION_STATE_TYPE: PartitionState,
    LAST_MIRROR_EPOCH_TYPE: LastMirrorEpoch,
    LOSSES_TYPE: PartitionLosses,
    START_TYPE: PartitionStart,
}


def state_key(of: MirrorPartition) -> bytes:
    """Give the key under which a partition's state is kept."""
    return _PREFIX.pack(PARTITION_STATE_TYPE) + encode_bytes(of, VERSION, flexible=False)


def last_mirror_epoch_key(of: MirrorPartition) -> bytes:
    """Give the key under which a partition's last mirror epoch is kept."""
    return _PREFIX.pack(LAST_MIRROR_EPOCH_TYPE) + encode_bytes(of, VERSION, flexible=False)


def losses_key(of: MirrorPartition) -> bytes:
    """Give the key under which a partition's losses are kept."""
    return _PREFIX.pack(LOSSES_TYPE) + encode_bytes(of, VERSION, flexible=False)


def start_key(of: MirrorPartition) -> bytes:
    """Give the key under which it is kept where a partition began."""
    return _PREFIX.pack(START_TYPE) + encode_bytes(of, VERSION, flexible=False)


def value_bytes(value: Value) -> bytes:
    """Give the bytes of a value, its version first."""
    return _PREFIX.pack(VERSION) + encode_bytes(value, VERSION, flexible=True)


def read_key(key: bytes) -> tuple[int, MirrorPartition] | None:
    """Read a key's type and partition; None for a type that is not ours to know.

    Raises WireError when the bytes are not a key.
    """
    if len(key) < _PREFIX.size:
        raise WireError(f"mirror state key of {len(key)} bytes")
    record_type: int = _PREFIX.unpack_from(key)[0]
    if record_type not in _VALUES:
        return None
    return record_type, decode_whole(MirrorPartition, key, VERSION, flexible=False, at=_PREFIX.size)


def read_value(record_type: int, value: bytes) -> Value | None:
    """Read the value that belongs to a known ``record_type``; None for a later version.

    Raises WireError when the bytes are not a value.
    """
    if len(value) < _PREFIX.size:
        raise WireError(f"mirror state value of {len(value)} bytes")
    version: int = _PREFIX.unpack_from(value)[0]
    if version != VERSION:
        return None
    return decode_whole(_VALUES[record_type], value, VERSION, flexible=True, at=_PREFIX.size)


def home_key(of: MirrorPartition) -> str:
    """Give the text whose hash says in which partition of ``__mirror_state`` ``of`` lives."""
    return f"{of.mirror}:{topic_id_text(of.topic_id)}:{of.partition}"


def topic_id_text(topic_id: UUID) -> str:
    """Give a topic id as Kafka prints it: 22 characters of URL-safe base64."""
    number = topic_id.int << 4  # 128 bits and 4 of padding: 22 groups of 6
    return "".join(_BASE64[number >> shift & 63] for shift in range(126, -1, -6))


_BASE64: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
