"""Record batches for tests, built by hand: uncompressed, independent of the code under test."""

from collections.abc import Sequence
from struct import pack

from crc32c import crc32c

Pair = tuple[bytes | None, bytes | None]


def varint(value: int) -> bytes:
    """Give a zig-zag varint."""
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(value: bytes | None) -> bytes:
    return varint(-1) if value is None else varint(len(value)) + value


def record(offset_delta: int, timestamp_delta: int, pair: Pair) -> bytes:
    """Give the bytes of one record without headers."""
    body = (
        b"\0"
        + varint(timestamp_delta)
        + varint(offset_delta)
        + _field(pair[0])
        + _field(pair[1])
        + varint(0)
    )
    return varint(len(body)) + body


def batch(
    pairs: Sequence[Pair] | int = 1,
    *,
    base_offset: int = 0,
    leader_epoch: int = 0,
    timestamps: Sequence[int] | None = None,
    timestamp: int = 1_000,
    producer: tuple[int, int, int] = (-1, -1, -1),
    is_transactional: bool = False,
    is_control: bool = False,
    offset_deltas: Sequence[int] | None = None,
    last_offset_delta: int | None = None,
    value_bytes: int = 1,
) -> bytes:
    """Give one uncompressed batch; ``pairs`` may be a number of records.

    ``producer`` is (id, epoch, base sequence). ``offset_deltas`` leaves gaps as compaction does.
    """
    if isinstance(pairs, int):
        pairs = [(b"k%d" % i, b"v" * value_bytes) for i in range(pairs)]
    times = list(timestamps) if timestamps is not None else [timestamp] * len(pairs)
    deltas = list(offset_deltas) if offset_deltas is not None else list(range(len(pairs)))
    base_time = times[0] if times else timestamp
    records = b"".join(
        record(delta, time - base_time, pair)
        for delta, time, pair in zip(deltas, times, pairs, strict=True)
    )
    last_delta = last_offset_delta if last_offset_delta is not None else deltas[-1]
    attributes = (0x10 if is_transactional else 0) | (0x20 if is_control else 0)
    covered = (
        pack(
            ">hiqqqhii",
            attributes,
            last_delta,
            base_time,
            max(times, default=timestamp),
            *producer,
            len(pairs),
        )
        + records
    )
    body = pack(">ibI", leader_epoch, 2, crc32c(covered)) + covered
    return pack(">qi", base_offset, len(body)) + body


def marker(
    control_type: int,
    *,
    base_offset: int = 0,
    leader_epoch: int = 0,
    producer_id: int = 1,
    producer_epoch: int = 0,
    coordinator_epoch: int = 0,
    timestamp: int = 1_000,
) -> bytes:
    """Give a control batch that ends a transaction: 0 aborts it, 1 commits it."""
    return batch(
        [(pack(">hh", 0, control_type), pack(">hi", 0, coordinator_epoch))],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        timestamp=timestamp,
        producer=(producer_id, producer_epoch, -1),
        is_transactional=True,
        is_control=True,
    )


def pid_reset(*, base_offset: int = 0, leader_epoch: int = 0) -> bytes:
    """Give the control batch by which a stopped mirror forgets the source's producers."""
    return batch(
        [(pack(">hh", 0, 7), pack(">h", 0))],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        is_control=True,
    )
