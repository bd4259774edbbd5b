"""One partition of an internal topic that this broker leads: its log, its shard, who waits."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from twinlog.coordination.outcome import Outcome, Parked, StateRecord, Ticket
from twinlog.coordination.shard import Shard
from twinlog.model.errors import (
    RETRIABLE,
    ApiError,
    CorruptBatchError,
    DiskError,
    ErrorCode,
    WireError,
)
from twinlog.model.ids import Offset, TopicPartition
from twinlog.wire.primitives import Buffer
from twinlog.wire.records.batch import check_crc, iter_headers
from twinlog.wire.records.build import build_batch, records_of_pairs
from twinlog.wire.records.records import records_of

AnyShard = TypeVar("AnyShard", bound=Shard)
Reply = TypeVar("Reply")

LOAD_CHUNK_BYTES: Final = 256 << 10
"""Replayed at a time: about 20 ms, in which the broker does nothing else."""
BATCH_BYTES_TARGET: Final = 256 << 10
"""Records are cut into batches of about so many bytes, far below max.message.bytes."""
RELOAD_MS_MIN: Final = 1_000
RELOAD_MS_MAX: Final = 60_000

FAILURES: Final = (ApiError, WireError, CorruptBatchError, DiskError, AssertionError)
"""After which a shard is not trusted any more, and loaded again."""


class StateLog(Protocol):
    """What a coordinator needs of a partition that this broker leads."""

    @property
    def of(self) -> TopicPartition:
        """Which partition it is."""
        ...

    @property
    def start(self) -> Offset:
        """The first offset there is."""
        ...

    @property
    def end(self) -> Offset:
        """The first offset not yet written."""
        ...

    @property
    def high_watermark(self) -> Offset:
        """The first offset not yet on every in-sync replica."""
        ...

    def read(self, from_offset: Offset, *, max_bytes: int) -> Buffer:
        """Give the batches from the one that holds ``from_offset``; at least one whole batch."""
        ...

    def append(self, batches: Buffer, *, now_ms: int) -> None:
        """Write batches. Raises ApiError, DiskError."""
        ...


@dataclass(frozen=True, slots=True)
class Given(Generic[Reply]):
    """A reply that may be passed on once everything before ``end`` is committed."""

    reply: Reply
    end: Offset


Begun = Given[Any] | asyncio.Future[Given[Any]] | Exception
"""What became of a command: its reply, the promise of one, or why it was refused."""


class LedShard(Generic[AnyShard]):
    """Loads a shard from its log, then runs commands and timers on it.

    Invariant: once loaded, whenever nothing of it runs, the shard has replayed everything in the
    log, in order, and nothing else.
    """

    def __init__(self, log: StateLog, make_shard: Callable[[], AnyShard]) -> None:
        self.log: Final = log
        self.is_loading = True
        self.is_closed = False
        self.load_at_ms = 0
        self._make_shard: Final = make_shard
        self._shard = make_shard()
        self._loaded_to = log.start
        self._reload_ms = RELOAD_MS_MIN
        self._parked: dict[Ticket, asyncio.Future[Given[Any]]] = {}

    @property
    def next_ms(self) -> int | None:
        """When there is next something to do: go on loading, or a deadline; None for neither."""
        return self.load_at_ms if self.is_loading else self._shard.timers.next_ms

    def load_some(self, now_ms: int) -> bool:
        """Replay the next part of the log; True when that was the last.

        Raises one of ``FAILURES`` when the log cannot be read.
        """
        if self._loaded_to < self.log.end:
            batches = self.log.read(self._loaded_to, max_bytes=LOAD_CHUNK_BYTES)
            before = self._loaded_to
            self._replay(batches)
            assert self._loaded_to > before, f"nothing to read at {before} of {self.log.of}"
        if self._loaded_to < self.log.end:
            return False
        self._shard.on_loaded(now_ms)
        self.is_loading = False
        self._reload_ms = RELOAD_MS_MIN
        return True

    def begin(
        self, command: Callable[[AnyShard, int], Outcome[Reply]], now_ms: int
    ) -> Given[Reply] | asyncio.Future[Given[Reply]]:
        """Run a command; give its reply, or the promise of one.

        Raises what the command raises, and ApiError: COORDINATOR_LOAD_IN_PROGRESS, or why its
        records could not be written.
        """
        (begun,) = self.begin_all([command], now_ms)
        if isinstance(begun, Exception):
            raise begun
        return begun

    def begin_all(
        self, commands: Sequence[Callable[[AnyShard, int], Outcome[Any]]], now_ms: int
    ) -> list[Begun]:
        """Run commands in order, each seeing what those before it wrote, with one append for all.

        A command that is refused harms no other. When the append fails all are refused: each may
        rest on what was not written.
        """
        outcomes: list[Outcome[Any] | Exception] = []
        is_sound = not self.is_loading
        for command in commands:
            try:
                outcomes.append(
                    self._replayed(command(self._shard, now_ms)) if is_sound else self._not_loaded()
                )
            except ApiError as refusal:
                outcomes.append(refusal)
            except (AssertionError, WireError) as fault:
                outcomes.append(fault)
                is_sound = False
        run = [outcome for outcome in outcomes if isinstance(outcome, Outcome)]
        try:
            self._append([outcome.records for outcome in run if outcome.records], now_ms)
        except FAILURES as error:
            return [
                outcome if isinstance(outcome, Exception) else _refusal(self.log.of, error)
                for outcome in outcomes
            ]
        begun = [
            outcome if isinstance(outcome, Exception) else self._give(outcome)
            for outcome in outcomes
        ]
        if not (is_sound or self.is_loading):
            self.start_over(now_ms)
        return begun

    def fire_due(self, now_ms: int) -> None:
        """Hand every deadline that has passed to the shard. Raises one of ``FAILURES``."""
        for name in self._shard.timers.due(now_ms):
            outcome = self._replayed(self._shard.on_timer(name, now_ms))
            self._append([outcome.records] if outcome.records else [], now_ms)
            self._answer(outcome)

    def shift_timers(self, by_ms: int) -> None:
        """The clock was set: keep what is left of every wait."""
        self._shard.timers.shift(by_ms)
        self.load_at_ms += by_ms

    def start_over(self, now_ms: int) -> None:
        """Forget the shard and load it again, later each time until it succeeds."""
        self.send_away(f"{self.log.of} is loaded again")
        self.is_loading = True
        self.load_at_ms = now_ms + self._reload_ms
        self._reload_ms = min(self._reload_ms * 2, RELOAD_MS_MAX)
        self._shard = self._make_shard()
        self._loaded_to = self.log.start

    def close(self) -> None:
        """Let go: this broker no longer leads the partition."""
        self.is_closed = True
        self.send_away(f"{self.log.of} is no longer led by this broker")

    def send_away(self, why: str) -> None:
        """Tell everybody who waits to look for the coordinator again."""
        parked, self._parked = self._parked, {}
        for waiter in parked.values():
            if not waiter.done():
                waiter.set_exception(ApiError(ErrorCode.NOT_COORDINATOR, why))

    def _replayed(self, outcome: Outcome[Reply]) -> Outcome[Reply]:
        """Replay an outcome's records, so that whoever comes next sees them."""
        for record in outcome.records:
            self._shard.replay(record.key, record.value)
        return outcome

    def _not_loaded(self) -> ApiError:
        why = f"{self.log.of} is loaded up to {self._loaded_to} of {self.log.end}"
        return ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, why)

    def _append(self, written: Sequence[Sequence[StateRecord]], now_ms: int) -> None:
        """Write what was replayed; if that fails, the shard is not what the log says any more."""
        if not written:
            return
        try:
            self.log.append(b"".join(_batches(written, now_ms)), now_ms=now_ms)
        except FAILURES:
            self.start_over(now_ms)
            raise

    def _give(self, outcome: Outcome[Any]) -> Given[Any] | asyncio.Future[Given[Any]]:
        given: Given[Any] | asyncio.Future[Given[Any]]
        match outcome.reply:
            case Parked(ticket):
                given = self._park(ticket)
            case reply:
                given = Given(reply, self.log.end)
        self._answer(outcome)
        return given

    def _park(self, ticket: Ticket) -> asyncio.Future[Given[Any]]:
        waiter: asyncio.Future[Given[Any]] = asyncio.get_running_loop().create_future()
        self._parked[ticket] = waiter

        def forget(done: asyncio.Future[Given[Any]]) -> None:
            """Let go of one who gave up; a shard loaded again may have given the ticket anew."""
            if self._parked.get(ticket) is done:
                del self._parked[ticket]

        waiter.add_done_callback(forget)
        return waiter

    def _answer(self, outcome: Outcome[Any]) -> None:
        for answer in outcome.answers:
            waiter = self._parked.pop(answer.ticket, None)
            if waiter is not None and not waiter.done():
                waiter.set_result(Given(answer.reply, self.log.end))

    def _replay(self, batches: Buffer) -> None:
        for position, header in iter_headers(batches):
            check_crc(batches, position, header)
            # Offsets of a transaction count once it is committed; until transactions have their
            # coordinator nobody writes such batches, and a control batch is nobody's state.
            if not header.is_control and not header.is_transactional:
                for record in records_of(batches, position, header):
                    if record.offset >= self._loaded_to and record.key is not None:
                        self._shard.replay(record.key, record.value)
            self._loaded_to = Offset(header.next_offset)


def _refusal(of: TopicPartition, error: Exception) -> Exception:
    """Give what a client is told of records that could not be written, in a coordinator's words."""
    why = f"{of}: {error}"
    match error:
        case DiskError() | ApiError(code=ErrorCode.NOT_LEADER_OR_FOLLOWER):
            return ApiError(ErrorCode.NOT_COORDINATOR, why)
        case ApiError(code=code) if code in RETRIABLE:
            return ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, why)
        case ApiError():
            return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, why)
        case _:
            return error


def _batches(written: Iterable[Sequence[StateRecord]], now_ms: int) -> Iterator[bytes]:
    """Give batches that hold the records in order; what one outcome wrote stays in one batch.

    Only an outcome that is larger than a batch is cut: a torn write loses whole outcomes.
    """
    pairs: list[tuple[bytes | None, bytes | None]] = []
    size = 0
    for records in written:
        sizes = [len(record.key) + len(record.value or b"") for record in records]
        if pairs and size + sum(sizes) > BATCH_BYTES_TARGET:
            yield build_batch(records_of_pairs(pairs, timestamp_ms=now_ms))
            pairs, size = [], 0
        for record, record_size in zip(records, sizes, strict=True):
            pairs.append((record.key, record.value))
            size += record_size
            if size >= BATCH_BYTES_TARGET:
                yield build_batch(records_of_pairs(pairs, timestamp_ms=now_ms))
                pairs, size = [], 0
    if pairs:
        yield build_batch(records_of_pairs(pairs, timestamp_ms=now_ms))
