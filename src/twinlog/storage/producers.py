"""What a log remembers of the producers that number their batches: to find repeats and gaps.

Kafka keeps the last five batches of each producer: a client has at most five requests under way,
so a repeat is always one of them. Transactions are followed here as well, since the offset where
the oldest open one began is how far a read_committed consumer may read.
"""

from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple

from twinlog.model.errors import ApiError, ErrorCode
from twinlog.storage.markers import NO_COORDINATOR_EPOCH, Marker
from twinlog.storage.txn_index import AbortedTxn, OpenTxn
from twinlog.wire.records.batch import (
    CONTROL_BIT,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
)
from twinlog.wire.records.control import ControlType

SPANS_MAX: Final = 5
SEQUENCE_MASK: Final = 0x7FFF_FFFF
NO_OFFSET: Final = -1
NO_PRODUCER_EPOCH: Final = -1


class BatchSpan(NamedTuple):
    """One remembered batch of a producer."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        """Sequence of the first record."""
        return (self.last_sequence - self.offset_delta) & SEQUENCE_MASK

    @property
    def first_offset(self) -> int:
        """Offset of the first record."""
        return self.last_offset - self.offset_delta


class Producer:
    """One producer: its epoch, its last batches (oldest first), its open transaction if any."""

    __slots__ = (
        "coordinator_epoch",
        "epoch",
        "is_recent",
        "last_timestamp",
        "producer_id",
        "spans",
        "txn_first_offset",
    )

    def __init__(self, producer_id: int, epoch: int) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.spans: list[BatchSpan] = []
        self.last_timestamp = NO_TIMESTAMP
        self.coordinator_epoch = NO_COORDINATOR_EPOCH
        self.txn_first_offset = NO_OFFSET
        self.is_recent = True
        """Wrote, or was read from the disk, since ``expire`` looked last."""

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; -1 when no batch of this epoch is known."""
        return self.spans[-1].last_sequence if self.spans else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        """Offset of the last record; -1 when no batch of this epoch is known."""
        return self.spans[-1].last_offset if self.spans else NO_OFFSET


class FinishedTxn(NamedTuple):
    """A transaction whose marker is written; it is stable once the marker is replicated."""

    first_offset: int
    marker_offset: int


class Producers:
    """The producers of one log, as they are when the log ends at ``end``."""

    __slots__ = ("_finished", "_open", "_table", "end")

    def __init__(self, end: int = 0) -> None:
        self.end = end
        self._table: dict[int, Producer] = {}
        self._open: dict[int, int] = {}  # producer id -> first offset, oldest first
        self._finished: list[FinishedTxn] = []

    def __len__(self) -> int:
        """Give the number of producers known."""
        return len(self._table)

    def all(self) -> list[Producer]:
        """Give the producers, for a snapshot."""
        return list(self._table.values())

    def get(self, producer_id: int) -> Producer | None:
        """Give what is known of a producer."""
        return self._table.get(producer_id)

    def load(self, end: int, producers: list[Producer]) -> None:
        """Begin from a snapshot."""
        self.reset(end)
        self._table = {one.producer_id: one for one in producers}
        begun = sorted(
            (one.txn_first_offset, one.producer_id)
            for one in producers
            if one.txn_first_offset != NO_OFFSET
        )
        self._open = {producer_id: first for first, producer_id in begun}

    def recall(self, headers: Iterable[BatchHeader]) -> None:
        """Remember the batches before the one that a snapshot tells; they come in order."""
        found: dict[int, deque[BatchSpan]] = {}
        for header in headers:
            known = self._table.get(header.producer_id)
            is_data = not header.attributes & CONTROL_BIT and header.base_sequence >= 0
            if is_data and known is not None and known.epoch == header.producer_epoch:
                spans = found.setdefault(known.producer_id, deque(maxlen=SPANS_MAX))
                spans.append(_span_of(header))
        for producer_id, spans in found.items():
            known = self._table[producer_id]
            if len(known.spans) == 1 and spans[-1].last_offset == known.last_offset:
                known.spans = list(spans)

    def reset(self, end: int) -> None:
        """Forget everything; the log ends at ``end``."""
        self.end = end
        self._table = {}
        self._open = {}
        self._finished = []

    # -- what a leader asks before it appends ----------------------------------------------------

    def repeat_of(self, header: BatchHeader) -> BatchSpan | None:
        """Find the remembered batch that ``header`` repeats."""
        producer = self._table.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            return None
        last_sequence = header.last_sequence
        for span in producer.spans:
            if span.last_sequence == last_sequence and span.first_sequence == header.base_sequence:
                return span
        return None

    def check(self, header: BatchHeader, marker: Marker | None, *, is_sequenced: bool) -> None:
        """Raise ApiError unless the batch may follow what its producer wrote before.

        A coordinator's batches have an epoch but no sequence: ``is_sequenced`` is False for them.
        """
        producer = self._table.get(header.producer_id)
        if producer is None:
            return  # all its batches may have been deleted: any sequence will do
        if header.producer_epoch < producer.epoch:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {header.producer_id} has epoch {producer.epoch} here, "
                f"the batch comes with {header.producer_epoch}",
            )
        if marker is not None:
            self._check_marker(producer, marker)
            return
        if is_sequenced:
            _check_sequence(producer, header)
        if producer.txn_first_offset != NO_OFFSET and not header.is_transactional:
            raise ApiError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {header.producer_id} has a transaction open since offset "
                f"{producer.txn_first_offset}; the batch is not part of it",
            )

    def _check_marker(self, producer: Producer, marker: Marker) -> None:
        if marker.coordinator_epoch < producer.coordinator_epoch:
            raise ApiError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"coordinator epoch {marker.coordinator_epoch} of the marker is below "
                f"{producer.coordinator_epoch}, which wrote the one before",
            )

    # -- what every append does ------------------------------------------------------------------

    def apply(self, header: BatchHeader, marker: Marker | None) -> AbortedTxn | None:
        """Take note of a batch that is in the log; give the transaction it aborts, if any."""
        self.end = header.base_offset + header.last_offset_delta + 1
        if header.attributes & CONTROL_BIT:  # the properties spelt out: this runs for every batch
            return self._apply_marker(header, marker) if marker is not None else None
        producer_id = header.producer_id
        if producer_id < 0:
            return None
        producer = self._table.get(producer_id)
        if producer is None:
            producer = self._table[producer_id] = Producer(producer_id, header.producer_epoch)
        elif producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.spans = []
        spans = producer.spans
        if len(spans) == SPANS_MAX:
            del spans[0]
        spans.append(_span_of(header))
        producer.last_timestamp = header.max_timestamp
        producer.is_recent = True
        if header.attributes & TRANSACTIONAL_BIT and producer.txn_first_offset == NO_OFFSET:
            producer.txn_first_offset = header.base_offset
            self._open[producer_id] = header.base_offset
        return None

    def _apply_marker(self, header: BatchHeader, marker: Marker) -> AbortedTxn | None:
        if marker.type == ControlType.MIRROR_PID_RESET:
            self.reset(self.end)
            return None
        if not marker.ends_transaction or header.producer_id < 0:
            return None
        producer = self._table.get(header.producer_id)
        if producer is None:
            producer = Producer(header.producer_id, header.producer_epoch)
            self._table[header.producer_id] = producer
        elif producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.spans = []
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = marker.timestamp
        producer.is_recent = True
        producer.txn_first_offset = NO_OFFSET
        first = self._open.pop(header.producer_id, None)
        if first is None:
            return None
        self._finished.append(FinishedTxn(first, header.last_offset))
        if marker.type != ControlType.ABORT:
            return None
        stable = next(iter(self._open.values()), header.next_offset)
        return AbortedTxn(header.producer_id, first, header.last_offset, stable)

    # -- what readers and keepers ask ------------------------------------------------------------

    def first_unstable(self, high_watermark: int) -> int | None:
        """Give where the oldest transaction began that is open, or whose marker is not committed.

        The high watermark never falls, so what it has passed is forgotten.
        """
        if not self._finished and not self._open:
            return None  # asked at every fetch
        if self._finished:
            self._finished = [one for one in self._finished if one.marker_offset >= high_watermark]
        firsts = [one.first_offset for one in self._finished]
        firsts.extend(self._open.values())
        return min(firsts, default=None)

    def open_transactions(self) -> list[OpenTxn]:
        """Give each transaction without an end."""
        opened = ((self._table[producer_id], first) for producer_id, first in self._open.items())
        return [
            OpenTxn(producer.producer_id, producer.epoch, first, producer.coordinator_epoch)
            for producer, first in opened
        ]

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers that have been idle that long outside a transaction; give how many.

        Timestamps are the producer's own: it may send old records now. So one that wrote since the
        last look stays, or its retries after our restart would be written a second time.
        """
        idle = [
            one.producer_id
            for one in self._table.values()
            if not one.is_recent
            and one.txn_first_offset == NO_OFFSET
            and now_ms - one.last_timestamp >= expiration_ms
        ]
        for one in self._table.values():
            one.is_recent = False
        for producer_id in idle:
            del self._table[producer_id]
        return len(idle)


def _span_of(header: BatchHeader) -> BatchSpan:
    delta, base_sequence = header.last_offset_delta, header.base_sequence
    return BatchSpan(
        (base_sequence + delta) & SEQUENCE_MASK if base_sequence >= 0 else NO_SEQUENCE,
        header.base_offset + delta,
        delta,
        header.max_timestamp,
    )


def _check_sequence(producer: Producer, header: BatchHeader) -> None:
    """Raise ApiError unless the batch's first sequence is the one that is due."""
    if header.producer_epoch != producer.epoch:
        expected = 0  # an epoch begins at 0
    elif producer.spans:
        expected = (producer.last_sequence + 1) & SEQUENCE_MASK
    else:
        expected = 0
    if header.base_sequence != expected:
        raise ApiError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header.producer_id} epoch {header.producer_epoch} sends sequence "
            f"{header.base_sequence} where {expected} is due",
        )
