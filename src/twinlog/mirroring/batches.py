"""Looks at batches without decoding them: how far they go, in which epochs, and which they are."""

from dataclasses import dataclass
from struct import Struct
from typing import Final

from twinlog.model.ids import NO_EPOCH, LeaderEpoch, Offset
from twinlog.wire.primitives import Buffer

_HEAD: Final = Struct(">qiibIhi")  # base offset .. last offset delta
_HEAD_BYTES: Final = _HEAD.size
_LENGTH_MIN: Final = 49  # what follows the length in a batch without records
_PREFIX_BYTES: Final = 12
_MAGIC: Final = 2
_WHOLE_HEAD: Final = Struct(">qiibIhiqqqhii")  # base offset .. record count
HEADER_BYTES: Final = _WHOLE_HEAD.size
_HAS_DELETE_HORIZON: Final = 0x40


@dataclass(frozen=True, slots=True)
class Walk:
    """What whole batches at the head of a buffer are.

    ``length`` is in bytes; ``problem`` says what is wrong with the first batch that cannot be
    taken, which is at ``problem_offset``; only batches before it are counted.
    """

    first_offset: Offset
    last_offset_of_first: Offset
    next_offset: Offset
    last_epoch: LeaderEpoch
    length: int
    count: int
    problem: str | None = None
    problem_offset: Offset = Offset(-1)


def walk(records: Buffer, expected: Offset, last_epoch: LeaderEpoch = NO_EPOCH) -> Walk:
    """Walk over ``records``, which were asked for from ``expected`` on; a cut tail is left out.

    ``last_epoch`` is that of the log they are for: leader epochs never go back along a log, so a
    batch of an earlier one is of another history.

    The first batch may begin before ``expected``: a source gives whole batches. What the CRC
    covers is not looked at here; the log does that before it writes.
    """
    size = len(records)
    position = count = 0
    first = last_of_first = -1
    following: int = expected
    epoch: int = last_epoch
    base: int = expected
    problem: str | None = None
    unpack = _HEAD.unpack_from
    while position + _HEAD_BYTES <= size:
        base, length, batch_epoch, magic, _, _, last_delta = unpack(records, position)
        end = position + _PREFIX_BYTES + length
        if end > size and magic == _MAGIC:
            break
        last = base + last_delta
        if magic != _MAGIC or length < _LENGTH_MIN or last_delta < 0 or batch_epoch < epoch:
            problem = _problem(magic, length, last_delta, batch_epoch, epoch)
            break
        if (base < following and count) or last < following:
            problem = f"its offsets {base} to {last} do not continue the log at {following}"
            break
        if not count:
            first, last_of_first = base, last
        following, epoch, position = last + 1, batch_epoch, end
        count += 1
    return Walk(
        first_offset=Offset(first),
        last_offset_of_first=Offset(last_of_first),
        next_offset=Offset(following),
        last_epoch=LeaderEpoch(epoch),
        length=position,
        count=count,
        problem=problem,
        problem_offset=Offset(base),
    )


def _problem(  # the branch order is the order of the header's bytes
    magic: int, length: int, last_delta: int, epoch: int, before: int
) -> str:
    if magic in (0, 1):
        return (
            f"the source still holds message format v{magic}, which is older than Kafka 0.11 and "
            "cannot be mirrored byte for byte; rewrite the topic at the source with log.message."
            "format.version 0.11 or later, or let retention remove the old segments"
        )
    if magic != _MAGIC:
        return f"unknown message format (magic {magic})"
    if length < _LENGTH_MIN:
        return f"a batch of {length} bytes after its length is too short"
    if last_delta < 0:
        return f"last offset delta {last_delta}"
    return f"its leader epoch {epoch} is below {before} of the batch before"


def length_before(records: Buffer, offset: Offset) -> int:
    """Give how many bytes of ``records`` lie before the batch whose base is ``offset``."""
    position = 0
    while position + _HEAD_BYTES <= len(records):
        base, length, *_ = _HEAD.unpack_from(records, position)
        end = position + _PREFIX_BYTES + length
        if base >= offset or length < _LENGTH_MIN or end > len(records):
            break
        position = end
    return position


@dataclass(frozen=True, slots=True)
class BatchIdentity:
    """What tells a batch from another one that has its offsets; ``length`` is in bytes."""

    base: Offset
    last: Offset
    epoch: LeaderEpoch
    producer: tuple[int, int, int]
    """Id, epoch and base sequence."""
    crc: int
    is_cleaned: bool
    """Whether a log cleaner has written it anew, with fewer records or a delete horizon."""
    length: int

    def is_same_as(self, other: "BatchIdentity") -> bool:
        """Tell whether both are one batch, which each replica may have cleaned or not.

        A cleaner keeps a batch's offsets, leader epoch and producer, also of one that it empties.
        """
        mine = (self.base, self.last, self.epoch, self.producer)
        is_cleaned = self.is_cleaned or other.is_cleaned
        theirs = (other.base, other.last, other.epoch, other.producer)
        return mine == theirs and (self.crc == other.crc or is_cleaned)


def identity_of(head: Buffer) -> BatchIdentity | None:
    """Give the identity of the batch that begins there, None if that is not a whole header (v2)."""
    if len(head) < HEADER_BYTES:
        return None
    base, length, epoch, magic, crc, attributes, last_delta, _, _, *rest = _WHOLE_HEAD.unpack_from(
        head
    )
    if magic != _MAGIC or length < _LENGTH_MIN:
        return None
    producer_id, producer_epoch, sequence, count = rest
    return BatchIdentity(
        base=Offset(base),
        last=Offset(base + last_delta),
        epoch=LeaderEpoch(epoch),
        producer=(producer_id, producer_epoch, sequence),
        crc=crc,
        is_cleaned=count <= last_delta or bool(attributes & _HAS_DELETE_HORIZON),
        length=_PREFIX_BYTES + length,
    )
