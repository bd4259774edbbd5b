"""Compares two logs batch by batch, from headers and CRCs, in whatever pieces these arrive."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, NamedTuple

from twinlog.model.errors import CorruptBatchError
from twinlog.wire.primitives import Buffer
from twinlog.wire.records.batch import BatchHeader, check_crc, iter_headers

DIFFERENCES_KEPT_MAX: Final = 10


class Side(Enum):
    """Which of the two logs."""

    SOURCE = "source"
    DESTINATION = "destination"


class Mark(NamedTuple):
    """What is kept of a batch: its header, and what its CRC says of its bytes."""

    header: BatchHeader
    is_sound: bool
    """Whether the CRC of the bytes is the one in the header."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The marks of one fetched piece of a log."""

    marks: tuple[Mark, ...]
    next_offset: int
    fault: str | None = None
    """Why what stands at ``next_offset`` is no batch."""


def piece_of(records: Buffer, position: int, end: int) -> Piece:
    """Read the batches that hold offsets from ``position`` up to ``end`` (exclusive)."""
    marks: list[Mark] = []
    following, fault, seen_count = position, None, 0
    try:
        for at, header in iter_headers(records):
            seen_count += 1
            if header.next_offset <= position:
                continue
            if header.base_offset >= end:
                return Piece(tuple(marks), end)
            marks.append(Mark(header, _is_sound(records, at, header)))
            following = header.next_offset
    except CorruptBatchError as error:
        fault = error.why
    if fault is None and len(records) and not seen_count:
        fault = f"{len(records)} bytes are there, but no whole batch"
    return Piece(tuple(marks), following, fault)


def _is_sound(records: Buffer, at: int, header: BatchHeader) -> bool:
    try:
        check_crc(records, at, header)
    except CorruptBatchError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the logs differ, in what, and what stands at either side."""

    offset: int
    what: tuple[str, ...]
    source: Mark | None
    destination: Mark | None
    why: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Give it as a JSON object."""
        return {
            "offset": self.offset,
            "what": list(self.what),
            "source": _as_json(self.source),
            "destination": _as_json(self.destination),
            "why": self.why,
        }

    def __str__(self) -> str:
        """Say it in a line."""
        sides = f"source has {_said(self.source)}, destination has {_said(self.destination)}"
        told = self.why or sides
        return f"at offset {self.offset}: {', '.join(self.what)} ({told})"


@dataclass(slots=True)
class Comparison:
    """Merges the batches of both logs by offset, from ``start`` up to ``end`` (exclusive).

    Marks wait here only until the other side has come as far, so whoever asks ``wants`` before
    reading on holds one piece of each log at most.
    """

    start: int
    end: int
    differences: list[Difference] = field(default_factory=list)
    """The first ones."""
    difference_count: int = 0
    batch_count: int = 0
    """Batches that are equal."""
    byte_count: int = 0
    skipped: list[tuple[int, int]] = field(default_factory=list)
    """Offsets (end exclusive) that were deleted before they could be compared."""
    _equal_to: int = -1
    _waiting: dict[Side, deque[Mark]] = field(default_factory=lambda: {s: deque() for s in Side})
    _has_ended: dict[Side, bool] = field(default_factory=lambda: dict.fromkeys(Side, False))

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to compare."""
        return all(self._has_ended.values()) and not any(self._waiting.values())

    @property
    def equal_up_to(self) -> int:
        """The offset (exclusive) up to which both logs are the same, as far as is known."""
        if self.differences:
            return max(self.start, min(d.offset for d in self.differences))
        return self.end if self.is_over else max(self.start, self._equal_to)

    def wants(self, side: Side) -> bool:
        """Tell whether batches of that side are needed to go on."""
        return not self._has_ended[side] and not self._waiting[side]

    def take(self, side: Side, marks: Iterable[Mark]) -> None:
        """Take the next batches of one side."""
        self._waiting[side].extend(marks)
        self._merge()

    def finish(self, side: Side) -> None:
        """Note that one side has no more batches before ``end``."""
        self._has_ended[side] = True
        self._merge()

    def give_up(self, side: Side, offset: int, why: str) -> None:
        """Note that what stands at ``offset`` cannot be read; nothing behind it is compared."""
        self._differ(offset, (f"unreadable at the {side.value}",), None, None, why)
        for each in Side:
            self._has_ended[each] = True
            self._waiting[each].clear()

    def skip_to(self, offset: int) -> None:
        """Leave out what one side has deleted meanwhile."""
        self.skipped.append((max(self.start, self._equal_to), offset))
        for marks in self._waiting.values():
            while marks and marks[0].header.next_offset <= offset:
                marks.popleft()
        self._merge()

    def _merge(self) -> None:
        source, destination = (self._waiting[side] for side in Side)
        while source and destination:
            self._pair(source, destination)
        if self._has_ended[Side.SOURCE] and not source:
            while destination:
                mark = destination.popleft()
                self._differ(mark.header.base_offset, ("extra",), None, mark)
        if self._has_ended[Side.DESTINATION] and not destination:
            while source:
                mark = source.popleft()
                self._differ(mark.header.base_offset, ("missing",), mark, None)

    def _pair(self, source: deque[Mark], destination: deque[Mark]) -> None:
        """Take the first batch of the side that is behind, or of both if they meet."""
        theirs, ours = source[0], destination[0]
        if theirs.header.last_offset < ours.header.base_offset:
            source.popleft()
            self._differ(theirs.header.base_offset, ("missing",), theirs, None)
            return
        if ours.header.last_offset < theirs.header.base_offset:
            destination.popleft()
            self._differ(ours.header.base_offset, ("extra",), None, ours)
            return
        if theirs.header.last_offset <= ours.header.last_offset:
            source.popleft()
        if ours.header.last_offset <= theirs.header.last_offset:
            destination.popleft()
        what = difference_of(theirs, ours)
        if what:
            offset = min(theirs.header.base_offset, ours.header.base_offset)
            self._differ(offset, what, theirs, ours)
        else:
            self.batch_count += 1
            self.byte_count += ours.header.length
            self._equal_to = ours.header.next_offset

    def _differ(
        self,
        offset: int,
        what: tuple[str, ...],
        source: Mark | None,
        destination: Mark | None,
        why: str | None = None,
    ) -> None:
        self.difference_count += 1
        if len(self.differences) < DIFFERENCES_KEPT_MAX:
            self.differences.append(Difference(offset, what, source, destination, why))


def difference_of(source: Mark, destination: Mark) -> tuple[str, ...]:
    """Say in what two batches that share offsets differ; empty if they are the same."""
    theirs, ours = source.header, destination.header
    what = []
    if theirs.base_offset != ours.base_offset:
        what.append("base offset")
    if theirs.last_offset != ours.last_offset:
        what.append("last offset")
    if theirs.leader_epoch != ours.leader_epoch:
        what.append("epoch")
    if theirs.crc != ours.crc:
        what.append("CRC")
    if theirs.body_length != ours.body_length:
        what.append("length")
    # What is left of the header lies under the CRC, which the bytes are held against here.
    if not source.is_sound:
        what.append("corrupt at the source")
    if not destination.is_sound:
        what.append("corrupt at the destination")
    return tuple(what)


def _as_json(mark: Mark | None) -> dict[str, Any] | None:
    if mark is None:
        return None
    header = mark.header
    return {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "leaderEpoch": header.leader_epoch,
        "crc": header.crc,
        "bytes": header.length,
        "records": header.record_count,
        "isSound": mark.is_sound,
    }


def _said(mark: Mark | None) -> str:
    if mark is None:
        return "nothing"
    header = mark.header
    sound = "" if mark.is_sound else " which its bytes do not have"
    return (
        f"{header.base_offset}-{header.last_offset} epoch {header.leader_epoch} "
        f"CRC {header.crc:#010x}{sound} {header.length} bytes"
    )
