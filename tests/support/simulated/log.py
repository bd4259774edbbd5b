"""A log as a disk would hold it, reduced to batches, and every line of records it ever held."""

from dataclasses import dataclass
from struct import pack, unpack_from
from zlib import crc32

from twinlog.model.epochs import EpochHistory
from twinlog.model.ids import LeaderEpoch, Offset

KINDS = ("data", "open", "end", "reset")
"""Plain records; the first of a transaction; its marker; a producer reset."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of the model: ``last`` is inclusive; ``kind`` is what the model must know of it."""

    base: int
    last: int
    epoch: int
    identity: int
    kind: str = "data"

    def encoded(self) -> bytes:
        """Give bytes with a true header and a body that names the batch."""
        delta = self.last - self.base
        covered = pack(">hi", 0, delta) + bytes(30)
        covered += pack(">ibq", delta + 1, KINDS.index(self.kind), self.identity)
        body = pack(">ibI", self.epoch, 2, crc32(covered)) + covered
        return pack(">qi", self.base, len(body)) + body


def decoded(raw: bytes) -> tuple[list[Batch], int | None]:
    """Give the good batches at the head, and the offset of the first that is not what it says."""
    good: list[Batch] = []
    position = 0
    while position < len(raw):
        base, length, epoch, _, crc = unpack_from(">qiibI", raw, position)
        end = position + 12 + length
        if crc32(raw[position + 21 : end]) != crc:
            return good, base
        (delta,) = unpack_from(">i", raw, position + 23)
        kind, identity = unpack_from(">bq", raw, end - 9)
        good.append(Batch(base, base + delta, epoch, identity, KINDS[kind]))
        position = end
    return good, None


class Log:
    """Batches from ``start`` on; ``end`` is exclusive.

    ``lines`` are the records by rising offset that were ever told to anybody, a new list after each
    cut: whoever copies the log must have a part of one of them. ``version`` rises with each change.
    """

    def __init__(self, start: int = 0) -> None:
        self.start = self.end = start
        self.batches: list[Batch] = []
        self.epochs = EpochHistory()
        self.lines: list[list[Batch]] = [[]]
        self.version = 0

    def append(self, batch: Batch) -> None:
        """Write a batch; holes before it are allowed, as compaction leaves them."""
        assert batch.base >= self.end, f"{batch} does not continue {self.end}"
        self.epochs.assign(LeaderEpoch(batch.epoch), Offset(batch.base))
        self.batches.append(batch)
        self.lines[-1].append(batch)
        self.end = batch.last + 1
        self.version += 1

    def tail_from(self, offset: int) -> list[Batch]:
        """Give what a cut there would take."""
        return [batch for batch in self.batches if batch.last >= offset]

    def truncate_to(self, end: int) -> None:
        """Cut; a batch that reaches beyond goes whole."""
        if end >= self.end:
            return
        gone = self.tail_from(end)
        self.end = min([end, *(batch.base for batch in gone)])
        self.start = min(self.start, self.end)
        if gone:
            del self.batches[-len(gone) :]
        self.epochs.truncate_from_end(Offset(self.end))
        self._begin_line()

    def restart_at(self, start: int) -> None:
        """Drop everything and begin there."""
        self.start = self.end = start
        self.batches = []
        self.epochs = EpochHistory()
        self._begin_line()

    def raise_start_to(self, start: int) -> None:
        """Drop what lies below; a batch that reaches beyond stays whole."""
        assert start <= self.end, f"start {start} beyond the end {self.end}"
        if start <= self.start:
            return
        self.start = start
        self.batches = self.tail_from(start)
        self.epochs.truncate_from_start(Offset(start))
        self.version += 1

    def _begin_line(self) -> None:
        line = self.lines[-1]
        kept = [batch for batch in line if batch.last < self.end]
        if len(kept) < len(line):
            self.lines.append(kept)
        self.version += 1

    @property
    def open_transactions(self) -> int:
        """One producer: its last marker or first record of a transaction says if one is open."""
        for batch in reversed(self.batches):
            if batch.kind in ("open", "end"):
                return int(batch.kind == "open")
        return 0

    def copy(self) -> "Log":
        """Give another log with the same records, and lines of its own from here on."""
        log = Log(self.start)
        log.end, log.batches = self.end, list(self.batches)
        log.epochs = EpochHistory(list(self.epochs.entries))
        log.lines = [list(self.lines[-1])]
        return log
