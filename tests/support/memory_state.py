"""A state log in memory, and a shard that is a plain dict: enough to drive coordinators."""

from collections.abc import Hashable
from dataclasses import dataclass, field

from twinlog.coordination.outcome import Answer, Outcome, Parked, StateRecord, Ticket
from twinlog.coordination.timers import Timers
from twinlog.model.errors import ApiError, DiskError, ErrorCode
from twinlog.model.ids import Offset, TopicName, TopicPartition
from twinlog.wire.primitives import Buffer
from twinlog.wire.records.batch import iter_headers, stamp


class MemoryStateLog:
    """Keeps batches in memory; what is appended is committed at once unless ``lags``."""

    def __init__(self, of: TopicPartition | None = None) -> None:
        self.of = TopicPartition(TopicName("__state"), 0) if of is None else of
        self.start = Offset(0)
        self.end = Offset(0)
        self.lags = False
        self.fails_with: ApiError | DiskError | None = None
        self.high_watermark = Offset(0)
        self.batches: list[tuple[Offset, Offset, bytes]] = []

    def read(self, from_offset: Offset, *, max_bytes: int) -> Buffer:
        """Give the batches from the one that holds ``from_offset``; at least one."""
        found = b""
        for _, next_offset, batch in self.batches:
            if next_offset > from_offset and (not found or len(found) + len(batch) <= max_bytes):
                found += batch
        return found

    def append(self, batches: Buffer, *, now_ms: int) -> None:
        """Write batches, or fail as told."""
        if self.fails_with is not None:
            raise self.fails_with
        written = bytearray(batches)
        for position, header in list(iter_headers(written)):
            stamp(written, position, base_offset=self.end, leader_epoch=0)
            batch = bytes(written[position : position + header.length])
            base, self.end = self.end, Offset(self.end + header.record_count)
            self.batches.append((base, self.end, batch))
        if not self.lags:
            self.high_watermark = self.end


@dataclass
class DictShard:
    """Remembers keys and values; a ``wait`` is answered by the next ``put``."""

    values: dict[bytes, bytes] = field(default_factory=dict)
    timers: Timers = field(default_factory=Timers)
    fired: list[Hashable] = field(default_factory=list)
    loaded_at_ms: int | None = None
    waiting: list[Ticket] = field(default_factory=list)
    ticket_count: int = 0

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Take in a record."""
        assert key != b"poison", "poison in the log"
        if value is None:
            self.values.pop(key, None)
        else:
            self.values[key] = value

    def on_loaded(self, now_ms: int) -> None:
        """Remember when."""
        self.loaded_at_ms = now_ms

    def on_timer(self, name: Hashable, now_ms: int) -> Outcome[None]:
        """Write down that the deadline passed."""
        self.fired.append(name)
        return Outcome(None, (StateRecord(f"fired {name}".encode(), b"%d" % now_ms),))

    def put(self, key: bytes, value: bytes | None) -> Outcome[str]:
        """Write, and answer everybody who waits."""
        answers = tuple(Answer(ticket, value) for ticket in self.waiting)
        self.waiting.clear()
        return Outcome("put", (StateRecord(key, value),), answers)

    def get(self, key: bytes) -> Outcome[bytes | None]:
        """Only read."""
        return Outcome(self.values.get(key))

    def wait(self) -> Outcome[bytes | None]:
        """Park until the next put."""
        self.ticket_count += 1
        ticket = Ticket(self.ticket_count)
        self.waiting.append(ticket)
        return Outcome(Parked(ticket))

    def refuse(self) -> Outcome[None]:
        """Refuse what the client asks."""
        raise ApiError(ErrorCode.INVALID_REQUEST, "refused")


@dataclass
class ManualClock:
    """Two clocks that a test sets by hand."""

    wall: int = 1_000_000
    steady: int = 0

    def wall_ms(self) -> int:
        """Give the time of day."""
        return self.wall

    def now_ms(self) -> int:
        """Give the steady time."""
        return self.steady

    def advance(self, by_ms: int) -> None:
        """Let time pass on both."""
        self.wall += by_ms
        self.steady += by_ms
