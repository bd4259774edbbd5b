"""MirrorShard: the mirror coordinator's commands, and the replay that alone changes what it knows.

A writer is fenced twice: by its leader epoch (an older leader of the partition may write no more)
and by the state epoch it expects (it decided from what is no longer so). A step that the table does
not allow is an error: it never looks like success.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from twinlog.coordination.outcome import Outcome, StateRecord
from twinlog.coordination.timers import Timers
from twinlog.mirroring.beginning import is_another_start
from twinlog.mirroring.records import (
    LAST_MIRROR_EPOCH_TYPE,
    LOSSES_TYPE,
    START_TYPE,
    LastMirrorEpoch,
    MirrorPartition,
    PartitionLosses,
    PartitionStart,
    PartitionState,
    RecordLoss,
    last_mirror_epoch_key,
    losses_key,
    read_key,
    read_value,
    start_key,
    state_key,
    value_bytes,
)
from twinlog.mirroring.states import MirrorState, may_step
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import NO_EPOCH, LeaderEpoch

UNCHECKED = -1
"""In place of an epoch: do not check it."""
LOSSES_KEPT_MAX: Final = 100
"""Of one partition; the oldest go first."""


@dataclass(frozen=True, slots=True)
class WriteState:
    """The leader of a partition wants its state written."""

    of: MirrorPartition
    state: MirrorState
    leader_epoch: LeaderEpoch = NO_EPOCH
    expected_state_epoch: int = UNCHECKED
    previous: MirrorState = MirrorState.UNKNOWN
    error: str | None = None
    retry_attempt: int = 0
    failed_at_ms: int = 0


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one partition: never written is ``state`` None."""

    of: MirrorPartition
    state: PartitionState | None
    last_mirror_epoch: LastMirrorEpoch | None
    losses: tuple[RecordLoss, ...] = ()
    start: PartitionStart | None = None
    """None where it began at the source's earliest record."""

    @property
    def mirror_state(self) -> MirrorState:
        """The state, UNKNOWN when none was ever written."""
        return MirrorState.UNKNOWN if self.state is None else MirrorState(self.state.state)


class MirrorShard:
    """The mirrored partitions whose state lives in one partition of ``__mirror_state``."""

    def __init__(self) -> None:
        self._states: dict[MirrorPartition, PartitionState] = {}
        self._last_epochs: dict[MirrorPartition, LastMirrorEpoch] = {}
        self._losses: dict[MirrorPartition, tuple[RecordLoss, ...]] = {}
        self._starts: dict[MirrorPartition, PartitionStart] = {}
        self._timers = Timers()

    @property
    def timers(self) -> Timers:
        """There are none: retries are the business of the partition's leader."""
        return self._timers

    # Commands

    def write_state(self, wanted: WriteState) -> Outcome[int]:
        """Write a state; the reply is its new state epoch.

        Raises ApiError FENCED_LEADER_EPOCH, FENCED_STATE_EPOCH, INVALID_CLUSTER_MIRROR_STATE.
        """
        of, before = wanted.of, self._states.get(wanted.of)
        from_state = MirrorState.UNKNOWN if before is None else MirrorState(before.state)
        self._check_leader_epoch(of, wanted.leader_epoch)
        epoch = 0 if before is None else before.state_epoch
        if wanted.expected_state_epoch not in (UNCHECKED, epoch):
            raise ApiError(
                ErrorCode.FENCED_STATE_EPOCH,
                f"{_name(of)} is at state epoch {epoch}, not {wanted.expected_state_epoch}",
            )
        if not may_step(from_state, wanted.state):
            raise ApiError(
                ErrorCode.INVALID_CLUSTER_MIRROR_STATE,
                f"{_name(of)} is {from_state.name} and cannot become {wanted.state.name}",
            )
        written = PartitionState(
            state=wanted.state,
            leader_epoch=max(wanted.leader_epoch, -1 if before is None else before.leader_epoch),
            state_epoch=epoch + 1,
            error=wanted.error,
            retry_attempt=wanted.retry_attempt,
            previous_state=wanted.previous,
            failed_at_ms=wanted.failed_at_ms if wanted.state == MirrorState.FAILED else 0,
        )
        records = [StateRecord(state_key(of), value_bytes(written))]
        if wanted.state == MirrorState.MIRRORING and of in self._last_epochs:
            # In one batch with the state: a last mirror epoch always belongs to the last stop.
            records.append(StateRecord(last_mirror_epoch_key(of), None))
        start = self._starts.get(of)
        if start is not None and is_another_start(self.known(of).mirror_state, wanted.state):
            records.append(StateRecord(start_key(of), value_bytes(replace(start, is_over=True))))
        return Outcome(records=tuple(records), reply=written.state_epoch)

    def write_last_mirror_epoch(
        self, of: MirrorPartition, leader_epoch: LeaderEpoch, last: LastMirrorEpoch
    ) -> Outcome[None]:
        """Write the last mirror epoch of a partition that is STOPPING.

        Raises ApiError FENCED_LEADER_EPOCH, INVALID_CLUSTER_MIRROR_STATE.
        """
        self._check_leader_epoch(of, leader_epoch)
        state = self.known(of).mirror_state
        if state != MirrorState.STOPPING:
            raise ApiError(
                ErrorCode.INVALID_CLUSTER_MIRROR_STATE,
                f"{_name(of)} is {state.name}: a last mirror epoch belongs to STOPPING",
            )
        record = StateRecord(last_mirror_epoch_key(of), value_bytes(last))
        return Outcome(records=(record,), reply=None)

    def write_losses(
        self, of: MirrorPartition, leader_epoch: LeaderEpoch, losses: tuple[RecordLoss, ...]
    ) -> Outcome[tuple[RecordLoss, ...]]:
        """Write what a partition is about to lose; the reply is what was not written before.

        Who dies before it is done tells of it again. Raises ApiError FENCED_LEADER_EPOCH.
        """
        self._check_leader_epoch(of, leader_epoch)
        before = self._losses.get(of, ())
        last = {what_of(loss) for loss in before[-len(losses) :]}
        fresh = tuple(loss for loss in losses if what_of(loss) not in last)
        if not fresh:
            return Outcome(reply=())
        value = PartitionLosses(losses=(*before, *fresh)[-LOSSES_KEPT_MAX:])
        record = StateRecord(losses_key(of), value_bytes(value))
        return Outcome(records=(record,), reply=fresh)

    def write_start(
        self, of: MirrorPartition, leader_epoch: LeaderEpoch, start: PartitionStart | None
    ) -> Outcome[None]:
        """Write where a partition begins; None deletes that: it begins at the earliest record.

        Raises ApiError FENCED_LEADER_EPOCH.
        """
        self._check_leader_epoch(of, leader_epoch)
        record = StateRecord(start_key(of), None if start is None else value_bytes(start))
        return Outcome(records=(record,), reply=None)

    def read_states(self, partitions: Iterable[MirrorPartition]) -> Outcome[tuple[Known, ...]]:
        """Give what is known of the partitions, in their order, after all earlier writes."""
        return Outcome(reply=tuple(self.known(of) for of in partitions))

    def read_all(self) -> Outcome[tuple[Known, ...]]:
        """Give what is known of every partition."""
        return self.read_states(self._everything())

    def delete_partitions(self, partitions: Iterable[MirrorPartition]) -> Outcome[int]:
        """Delete what is known of the partitions; the reply is how many were known."""
        records: list[StateRecord] = []
        count = 0
        for of in partitions:
            known = self.known(of)
            if known.state is not None:
                records.append(StateRecord(state_key(of), None))
            if known.last_mirror_epoch is not None:
                records.append(StateRecord(last_mirror_epoch_key(of), None))
            if known.losses:
                records.append(StateRecord(losses_key(of), None))
            if known.start is not None:
                records.append(StateRecord(start_key(of), None))
            count += known.state is not None or known.last_mirror_epoch is not None
        return Outcome(records=tuple(records), reply=count)

    def delete_mirror(self, mirror: str) -> Outcome[int]:
        """Delete everything known of a mirror."""
        return self.delete_partitions([of for of in self._everything() if of.mirror == mirror])

    def delete_topics(self, is_gone: Callable[[UUID], bool]) -> Outcome[int]:
        """Delete everything known of topics that are there no more, whatever mirror they were of.

        A mirror may stand for years while topics come and go.
        """
        return self.delete_partitions([of for of in self._everything() if is_gone(of.topic_id)])

    def _everything(self) -> dict[MirrorPartition, None]:
        return dict.fromkeys([*self._states, *self._last_epochs, *self._losses, *self._starts])

    def known(self, of: MirrorPartition) -> Known:
        """Give what is known of one partition by now."""
        losses = self._losses.get(of, ())
        last, start = self._last_epochs.get(of), self._starts.get(of)
        return Known(of, self._states.get(of), last, losses, start)

    def _check_leader_epoch(self, of: MirrorPartition, leader_epoch: LeaderEpoch) -> None:
        state = self._states.get(of)
        if state is not None and UNCHECKED != leader_epoch < state.leader_epoch:
            raise ApiError(
                ErrorCode.FENCED_LEADER_EPOCH,
                f"{_name(of)} was written by leader epoch {state.leader_epoch}, "
                f"the writer has {leader_epoch}",
            )

    # What is durable

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Take in one record; types and versions that are not known are skipped."""
        read = read_key(key)
        if read is None:
            return
        record_type, of = read
        if value is None:
            self._kept(record_type).pop(of, None)
            return
        match read_value(record_type, value):
            case PartitionState() as state:
                self._states[of] = state
            case LastMirrorEpoch() as last:
                self._last_epochs[of] = last
            case PartitionLosses() as known:
                self._losses[of] = known.losses
            case PartitionStart() as start:
                self._starts[of] = start
            case None:
                pass

    def _kept(self, record_type: int) -> dict[MirrorPartition, Any]:
        kept: dict[int, dict[MirrorPartition, Any]] = {
            LAST_MIRROR_EPOCH_TYPE: self._last_epochs,
            LOSSES_TYPE: self._losses,
            START_TYPE: self._starts,
        }
        return kept.get(record_type, self._states)

    def on_loaded(self, now_ms: int) -> None:
        """Nothing has a deadline here."""

    def on_timer(self, name: Hashable, now_ms: int) -> Outcome[None]:
        """Nothing has a deadline here."""
        raise AssertionError(f"the mirror coordinator set no deadline, {name} came due")


def what_of(loss: RecordLoss) -> tuple[str, int, int, str | None]:
    """Give what makes a loss the same as one that was told of before."""
    return loss.kind, loss.first, loss.end, loss.saved_to


def _name(of: MirrorPartition) -> str:
    return f"partition {of.partition} of topic id {of.topic_id} in mirror {of.mirror}"
