"""Control batches: the ends of transactions, and the reset of producers at a mirror's stop."""

import struct
from enum import IntEnum
from typing import Final

from twinlog.model.errors import WireError
from twinlog.model.ids import NO_EPOCH, LeaderEpoch, Offset, ProducerId
from twinlog.wire.records.build import build_batch
from twinlog.wire.records.records import Record


class ControlType(IntEnum):
    """What a control record says; Kafka's own, and that of KIP-1279."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6
    MIRROR_PID_RESET = 7


_KEY: Final = struct.Struct(">hh")  # version, type
_END_MARKER: Final = struct.Struct(">hi")  # version, coordinator epoch
_PID_RESET: Final = struct.Struct(">h")  # version
_VERSION: Final = 0


def end_marker(  # noqa: PLR0913 - each is a field of the marker
    kind: ControlType,
    *,
    producer_id: ProducerId,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp_ms: int,
    base_offset: int = 0,
    leader_epoch: LeaderEpoch = NO_EPOCH,
) -> bytes:
    """Give the batch that commits or aborts what ``producer_id`` has open."""
    assert kind in (ControlType.ABORT, ControlType.COMMIT), f"{kind.name} ends no transaction"
    record = Record(
        offset=Offset(base_offset),
        timestamp=timestamp_ms,
        key=_KEY.pack(_VERSION, kind),
        value=_END_MARKER.pack(_VERSION, coordinator_epoch),
    )
    return build_batch(
        [record],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )


def pid_reset_batch(
    *, timestamp_ms: int, base_offset: int = 0, leader_epoch: LeaderEpoch = NO_EPOCH
) -> bytes:
    """Give the batch after which every earlier producer of the partition is forgotten.

    It has no producer id and is in no transaction: consumers skip it like any control batch.
    """
    record = Record(
        offset=Offset(base_offset),
        timestamp=timestamp_ms,
        key=_KEY.pack(_VERSION, ControlType.MIRROR_PID_RESET),
        value=_PID_RESET.pack(_VERSION),
    )
    return build_batch(
        [record], base_offset=base_offset, leader_epoch=leader_epoch, is_control=True
    )


def control_type_of(key: bytes | None) -> ControlType | None:
    """Read what a control record's key says; None for a type that is not known (skip it).

    Raises WireError when there is no such key. Later versions of the key may be longer.
    """
    if key is None or len(key) < _KEY.size:
        raise WireError(f"control record with a key of {0 if key is None else len(key)} bytes")
    version, kind = _KEY.unpack_from(key)
    if version < 0:
        raise WireError(f"control record of version {version}")
    try:
        return ControlType(kind)
    except ValueError:
        return None


def coordinator_epoch_of(value: bytes | None) -> int:
    """Read the transaction coordinator's epoch from the value of an end marker."""
    if value is None or len(value) < _END_MARKER.size:
        raise WireError(f"end marker with a value of {0 if value is None else len(value)} bytes")
    epoch: int = _END_MARKER.unpack_from(value)[1]
    return epoch
