"""The mirror coordinator of a simulated broker: the real shard, and the log that it is made of."""

from typing import Protocol

from support.simulated.schedule import Schedule
from twinlog.coordination.outcome import StateRecord
from twinlog.mirroring import events as on
from twinlog.mirroring.records import (
    LastMirrorEpoch,
    MirrorPartition,
    PartitionStart,
    PartitionState,
    RecordLoss,
)
from twinlog.mirroring.shard import Known, MirrorShard, WriteState
from twinlog.mirroring.states import MirrorState
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import LeaderEpoch

TABLE = """
UNKNOWN LOG_ALIGNMENT STOPPING FAILED
LOG_ALIGNMENT MIRRORING STOPPING FAILED
EPOCH_FENCING MIRRORING STOPPING FAILED
ULE_RECOVERY MIRRORING STOPPING FAILED
MIRRORING EPOCH_FENCING ULE_RECOVERY PAUSING STOPPING FAILED
PAUSING PAUSED STOPPING FAILED
PAUSED MIRRORING STOPPING FAILED
STOPPING STOPPED FAILED
STOPPED LOG_ALIGNMENT FAILED
FAILED LOG_ALIGNMENT MIRRORING STOPPING
"""
"""The legal steps, written down a second time so that a slip in the product's table shows."""

STEPS = {line.split()[0]: set(line.split()) for line in TABLE.strip().splitlines()}


class Watcher(Protocol):
    """Who looks at what is committed."""

    def state_written(self, before: MirrorState, wanted: WriteState) -> None:
        """Look at a state."""
        ...

    def last_written(self, last: LastMirrorEpoch) -> None:
        """Look at a last mirror epoch."""
        ...


class Coordinator:
    """Answers writes, loses some, and is loaded anew now and then."""

    def __init__(self, schedule: Schedule, of: MirrorPartition, watcher: Watcher) -> None:
        self.of = of
        self.watcher = watcher
        self.records: list[StateRecord] = []
        self._schedule = schedule
        self._shard = MirrorShard()

    @property
    def known(self) -> Known:
        """What is committed of the partition."""
        return self._shard.known(self.of)

    def reload(self) -> None:
        """Forget everything and read it again."""
        self._shard = MirrorShard()
        for record in self.records:
            self._shard.replay(record.key, record.value)

    def write_state(self, wanted: WriteState) -> int:
        """Write a state; give its epoch. Raises ApiError."""
        self._may_be_away()
        before, was = self.known.state, self.known.mirror_state
        outcome = self._shard.write_state(wanted)
        self._commit(outcome.records)
        assert isinstance(outcome.reply, int)
        self._check_step(before, wanted)
        self.watcher.state_written(was, wanted)
        self._may_lose_reply()
        return outcome.reply

    def write_last_mirror_epoch(
        self, epoch: LeaderEpoch, last: LastMirrorEpoch
    ) -> on.LastMirrorEpochSaved:
        """Write the last mirror epoch. Raises ApiError."""
        self._may_be_away()
        self._commit(self._shard.write_last_mirror_epoch(self.of, epoch, last).records)
        self.watcher.last_written(last)
        self._may_lose_reply()
        return on.LastMirrorEpochSaved(last)

    def write_start(
        self, epoch: LeaderEpoch, start: PartitionStart | None, turn: int
    ) -> on.StartSaved:
        """Write where the partition begins. Raises ApiError."""
        self._may_be_away()
        self._commit(self._shard.write_start(self.of, epoch, start).records)
        self._may_lose_reply()
        return on.StartSaved(start, turn)

    def write_losses(self, epoch: LeaderEpoch, losses: tuple[RecordLoss, ...]) -> bool:
        """Write losses down; False if that failed."""
        if self._schedule.fails("loss not written down", 0.05):
            return False
        try:
            self._commit(self._shard.write_losses(self.of, epoch, losses).records)
        except ApiError as error:
            if error.code != ErrorCode.FENCED_LEADER_EPOCH:
                raise
            return False
        return True

    def delete_mirror(self) -> None:
        """Write tombstones for all that is known."""
        self._commit(self._shard.delete_mirror(self.of.mirror).records)

    def usurp(self, epoch: int) -> None:
        """Write as another leader, in its epoch: the state stays what it was."""
        state = self.known.state
        if state is not None:
            self._schedule.faults["another leader wrote the state"] += 1
            again = WriteState(
                of=self.of,
                state=MirrorState(state.state),
                leader_epoch=LeaderEpoch(epoch),
                previous=MirrorState(state.previous_state),
                error=state.error,
                retry_attempt=state.retry_attempt,
            )
            self._commit(self._shard.write_state(again).records)

    def write_as_old_leader(self, epoch: int) -> None:
        """Write as a leader that was deposed: that is refused."""
        state = self.known.state
        if state is None or epoch >= state.leader_epoch:
            return
        self._schedule.faults["a deposed leader wrote the state"] += 1
        old = WriteState(
            of=self.of, state=MirrorState.FAILED, leader_epoch=LeaderEpoch(epoch), error="old"
        )
        try:
            self._commit(self._shard.write_state(old).records)
        except ApiError as error:
            if error.code != ErrorCode.FENCED_LEADER_EPOCH:
                raise
            return
        raise AssertionError(f"a leader of epoch {epoch} wrote over {state}")

    def _commit(self, records: tuple[StateRecord, ...]) -> None:
        self.records.extend(records)
        for record in records:
            self._shard.replay(record.key, record.value)

    def _may_be_away(self) -> None:
        if self._schedule.fails("coordinator loading", 0.01):
            self.reload()
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "loading")

    def _may_lose_reply(self) -> None:
        if self._schedule.fails("coordinator's reply lost", 0.01):
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT, "written, but nobody is told")

    def _check_step(self, before: PartitionState | None, wanted: WriteState) -> None:
        after = self.known.state
        assert after is not None
        was = MirrorState.UNKNOWN if before is None else MirrorState(before.state)
        assert wanted.state.name in STEPS[was.name], f"stepped {was.name} -> {wanted.state.name}"
        if before is None:
            return
        expected = wanted.expected_state_epoch
        assert before.state_epoch == expected, f"{before} was overwritten by {wanted}"
        assert wanted.leader_epoch >= before.leader_epoch, f"{before} then {wanted}"
        assert after.state_epoch > before.state_epoch, f"{before} then {after}"
