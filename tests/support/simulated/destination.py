"""The broker that holds a mirrored partition: its machine, its log, and its state's coordinator."""

from collections import deque
from collections.abc import Callable
from uuid import UUID

from support.simulated.coordinator import Coordinator
from support.simulated.cutting import Cut, Cutting
from support.simulated.log import Batch, Log, decoded
from support.simulated.network import Network, Source
from support.simulated.rules import Rules
from support.simulated.schedule import Schedule
from twinlog.mirroring import effects as do
from twinlog.mirroring import events as on
from twinlog.mirroring.alignment import LogFacts
from twinlog.mirroring.batches import identity_of
from twinlog.mirroring.partition import PartitionMirror
from twinlog.mirroring.policy import MirrorPolicy
from twinlog.mirroring.records import LastMirrorEpoch, MirrorPartition
from twinlog.mirroring.shard import WriteState
from twinlog.mirroring.states import DesiredState, MirrorState
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import LeaderEpoch, Offset

BEGIN_AGAIN_MS = 30
OWN_CONTROL = -1
"""The identity of markers and resets, which are nobody's records."""


class Destination:
    """Carries out what the machine orders, as ``broker/mirrors/driven.py`` does, with mishaps."""

    def __init__(self, schedule: Schedule, source: Source, policy: MirrorPolicy) -> None:
        self.schedule = schedule
        self.of = MirrorPartition(mirror="m", topic_id=UUID(int=7), partition=0)
        self.policy = policy
        self.log = Log()
        self.rules: Rules = Rules(self)
        self.coordinator = Coordinator(schedule, self.of, self.rules)
        self.network = Network(schedule, source)
        self.own_epoch = 0
        self.desired = DesiredState.MIRRORING
        self.is_writable = False
        self.may_be_killed = True
        self.are_replicas_down = False
        self.is_store_away = False
        """Whether the metadata store, which raises leader epochs, cannot be reached."""
        self.tails: list[list[Batch]] = []
        """What was cut off and saved."""
        self._gap: do.NoteGap | None = None
        self._life = 0
        self._inbox: deque[on.Event] = deque()
        self._is_busy = False
        self._is_unfenced = False
        """Whether this life began at rest, with nothing written that would fence who was before.

        On one broker the coordinator has died together with him.
        """
        self._timer = (-1, -1)
        self.mirror = PartitionMirror(self.of, policy)

    # Its life

    def start(self) -> None:
        """Begin as a process that has just come up: in a new leader epoch."""
        self.own_epoch += 1
        self.is_writable = False
        self.begin()

    def begin(self) -> None:
        """Throw the machine away and make one of what is durable."""
        self._life += 1
        self._inbox.clear()
        self.coordinator.reload()
        self.mirror = PartitionMirror(self.of, self.policy)
        known = self.coordinator.known
        is_at_rest = int(known.mirror_state) == int(self.desired) != MirrorState.MIRRORING
        self._is_unfenced = is_at_rest
        if known.mirror_state == MirrorState.STOPPED and self.desired == DesiredState.STOPPED:
            self.is_writable = True
        self.deliver(
            on.Started(
                desired=self.desired,
                actual=known.state,
                last_mirror_epoch=known.last_mirror_epoch,
                leader_epoch=LeaderEpoch(self.own_epoch),
                start=known.start,
            )
        )

    def end(self) -> None:
        """Let go of the partition: answers that are under way reach nobody."""
        self._life += 1

    def _begin_later(self, life: int) -> None:
        self.schedule.after(BEGIN_AGAIN_MS, lambda: self.begin() if life == self._life else None)

    def kill(self) -> None:
        """End the process at once and start it again; power may go too, and what was not synced."""
        self.schedule.told.append("-- killed")
        if self.schedule.fails("records lost by a power cut", 0.2):
            self._lose_power()
        self.start()

    def _lose_power(self) -> None:
        """Lose what was not synced yet; what a stop or a producer wrote is, on other replicas."""
        batches = self.log.batches
        kept = batches[: -self.schedule.random.randint(1, 3)]
        lost = batches[len(kept) :]
        if lost and self.rules.mirrors_all:
            before = self.log.version
            self.log.truncate_to(kept[-1].last + 1 if kept else self.log.start)
            self.rules.power_cut(before)

    def ask_for(self, desired: DesiredState) -> None:
        """Take an operator's order."""
        self.desired = desired
        if desired != DesiredState.STOPPED:
            self.is_writable = False
        self.deliver(on.DesiredChanged(desired))

    def write(self, identity: int) -> Batch:
        """Take a producer's records."""
        assert self.is_writable
        return self._write_own("data", identity)

    # Events

    def deliver(self, event: on.Event) -> None:
        """Give the machine an event; what comes of it in the meantime is taken in afterwards."""
        self._inbox.append(event)
        if self._is_busy:
            return
        self._is_busy = True
        try:
            while self._inbox:
                self._take(self._inbox.popleft())
        finally:
            self._is_busy = False
        self._set_timer()

    def _take(self, event: on.Event) -> None:
        schedule, life = self.schedule, self._life
        schedule.told.append((schedule.now_ms, event))
        before = self.mirror.state
        effects = self.mirror.on(event, schedule.now_ms, schedule.random.random())
        if before != self.mirror.state == MirrorState.STOPPED == int(self.desired):
            self.is_writable = True
        for effect in effects:
            if self.may_be_killed and schedule.fails("killed between two effects", 0.004):
                self.kill()
            if life != self._life:
                return
            schedule.told.append(effect)
            version = self.log.version
            self.carry_out(effect)
            if self.log.version != version:
                self.rules.check()

    def _bring(self) -> Callable[[on.Event], None]:
        """Give what brings an event to the machine, unless it died meanwhile."""
        life = self._life

        def bring(event: on.Event) -> None:
            if life == self._life:
                self.deliver(event)

        return bring

    def _answer(self, event: on.Event, delay_ms: int | None = None) -> None:
        bring = self._bring()
        wait_ms = self.schedule.random.randint(0, 10) if delay_ms is None else delay_ms
        self.schedule.after(wait_ms, lambda: bring(event))

    def _set_timer(self) -> None:
        deadline, life = self.mirror.deadline_ms, self._life
        if deadline is None or (deadline, life) == self._timer:
            return
        self._timer = (deadline, life)

        def ring() -> None:
            if life == self._life and self.mirror.deadline_ms == deadline:
                self.deliver(on.TimeCame())

        self.schedule.after(max(0, deadline - self.schedule.now_ms), ring)

    # Effects

    def carry_out(self, effect: do.Effect) -> None:
        """Carry out one effect."""
        match effect:
            case do.SaveState() | do.SaveLastMirrorEpoch() | do.SaveStart():
                self._save(effect)
            case do.StopFetching():
                pass  # what is under way arrives nevertheless
            case do.BeginAt() | do.Append() | do.RaiseLogStart():
                self._write(effect)
            case do.BumpEpoch(at_least):
                self._bump(at_least)
            case do.NoteGap():
                self._gap = effect
            case do.TruncateTo() | do.RestartAt():
                self._cut(effect)
            case do.AwaitReplicas() | do.AwaitCommit():
                self._await(effect)
            case do.ReadLog() | do.AppendAbortMarkers() | do.AppendPidReset():
                self._step(effect)
            case _:
                self.network.ask(effect, self._bring())

    def _await(self, effect: do.AwaitReplicas | do.AwaitCommit) -> None:
        awaits_all = isinstance(effect, do.AwaitReplicas)
        done = on.ReplicasConverged if awaits_all else on.LogCommitted
        self._replicated(done(effect.turn), 0.1)

    def _step(self, effect: do.ReadLog | do.AppendAbortMarkers | do.AppendPidReset) -> None:
        if self.schedule.fails("log not read or written", 0.01):
            self._answer(on.StepFailed("the disk is bad", effect.turn))
            return
        match effect:
            case do.ReadLog(reset_from, turn):
                delay_ms = None if self.schedule.random.random() < 0.5 else 0
                self._answer(on.LogRead(self._facts(reset_from), turn), delay_ms)
            case do.AppendAbortMarkers(turn):
                while self.log.open_transactions:
                    self._write_own("end")
                self._replicated(on.StepDone(turn), 0.03)
            case do.AppendPidReset(turn):
                self._write_own("reset")
                self._replicated(on.StepDone(turn), 0.03)

    def _facts(self, reset_from: Offset | None) -> LogFacts:
        log = self.log
        return LogFacts(
            start=Offset(log.start),
            end=Offset(log.end),
            epochs=tuple(log.epochs.entries),
            open_transactions=log.open_transactions,
            has_pid_reset=reset_from is not None
            and any(b.kind == "reset" and b.base >= reset_from for b in log.batches),
            last_batch=identity_of(log.batches[-1].encoded()) if log.batches else None,
        )

    def _replicated(
        self, event: on.StepDone | on.ReplicasConverged | on.LogCommitted, chance: float
    ) -> None:
        if self.are_replicas_down or self.schedule.fails("not replicated in time", chance):
            self._answer(on.StepFailed("not replicated in time", event.turn), 40)
            return
        self.rules.replicated(event)
        self._answer(event)

    # The log

    def _write(self, effect: do.BeginAt | do.Append | do.RaiseLogStart) -> None:
        self.rules.mirrored(effect)
        log = self.log
        match effect:
            case do.BeginAt(start):
                log.restart_at(start)
            case do.Append(batches):
                self._append(bytes(batches))
            case do.RaiseLogStart(start) if start > log.end:
                self._write_failed(log.end, "a start beyond the end")  # the append before failed
            case do.RaiseLogStart(start):
                log.raise_start_to(start)

    def _append(self, raw: bytes) -> None:
        good, spoilt = decoded(raw)
        if spoilt is not None:
            self._write_failed(spoilt, "spoilt")
        if self.schedule.fails("disk full", 0.01):
            good = good[: self.schedule.random.randint(0, len(good))]
            self._write_failed(good[-1].last + 1 if good else self.log.end, "disk full")
        for batch in good:
            assert batch.epoch <= self.own_epoch, f"{batch} above our epoch {self.own_epoch}"
            if batch.base < self.log.end:  # as the log of the product does
                self._write_failed(batch.base, "does not continue the log")
                return
            self.log.append(batch)

    def _write_failed(self, offset: int, why: str) -> None:
        self.deliver(on.AppendFailed(Offset(offset), why, Offset(self.log.end)))

    def _write_own(self, kind: str, identity: int = OWN_CONTROL) -> Batch:
        log = self.log
        self.rules.own_written(kind)
        batch = Batch(log.end, log.end, self.own_epoch, identity, kind)
        log.append(batch)
        self.rules.check()
        return batch

    def _cut(self, cut: Cut) -> None:
        life, gap, self._gap = self._life, self._gap, None
        Cutting(
            at=self,
            cut=cut,
            gap=gap,
            is_wanted=lambda: life == self._life and cut.turn == self.mirror.turn,
            bring=self._bring(),
        ).begin()

    # What others write

    def _save(self, effect: do.SaveState | do.SaveLastMirrorEpoch | do.SaveStart) -> None:
        life, bring = self._life, self._bring()
        write = self._writer(effect)

        def commit() -> None:
            if life != self._life and self._is_unfenced:
                return
            try:
                event = write()
            except ApiError as error:
                self._not_written(error, life)
                return
            bring(event)

        # A write under way may land although its writer died: only fencing keeps it out.
        self.schedule.after(self.schedule.random.choice((0, 1, 2, 3, 5, 5, 40)), commit)

    def _writer(
        self, effect: do.SaveState | do.SaveLastMirrorEpoch | do.SaveStart
    ) -> Callable[[], on.Event]:
        """Give what writes, in the leader epoch of now."""
        epoch, coordinator = LeaderEpoch(self.own_epoch), self.coordinator
        match effect:
            case do.SaveState(state, expected, previous, error, attempt):
                wanted = WriteState(self.of, state, epoch, expected, previous, error, attempt)
                return lambda: on.StateSaved(state, coordinator.write_state(wanted))
            case do.SaveLastMirrorEpoch(last_epoch, log_end, own_from):
                last = LastMirrorEpoch(epoch=last_epoch, log_end=log_end, own_from=own_from)
                return lambda: coordinator.write_last_mirror_epoch(epoch, last)
            case do.SaveStart(start, turn):
                return lambda: coordinator.write_start(epoch, start, turn)

    def _not_written(self, error: ApiError, life: int) -> None:
        if life != self._life:
            return
        self.schedule.told.append(error)
        if error.code in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH):
            known = self.coordinator.known.state
            # Another leader has been here: only a new epoch of ours goes beyond its own.
            self.own_epoch = max(self.own_epoch, -1 if known is None else known.leader_epoch)
            self.begin()
            return
        assert error.code != ErrorCode.INVALID_CLUSTER_MIRROR_STATE, f"{error}: {self.tell()}"
        self._begin_later(life)

    def _bump(self, at_least: int) -> None:
        if self.is_store_away or self.schedule.fails("epoch not raised", 0.1):
            return  # the metadata store does not answer
        bring = self._bring()

        def raised() -> None:
            self.own_epoch = max(self.own_epoch, at_least)
            seen = on.LeaderEpochSeen(LeaderEpoch(self.own_epoch))
            late = self.schedule.fails("raised epoch seen late", 0.05)
            self.schedule.after(300 if late else 0, lambda: bring(seen))

        self.schedule.after(self.schedule.random.randint(1, 20), raised)

    def tell(self) -> str:
        """Say where everything stands, and what happened last."""
        mirror = self.mirror
        where = (
            f"{mirror.state.name} ({mirror.standing}, {mirror.trouble}) wants "
            f"{self.desired.name}, epoch {self.own_epoch}; here {self.log.start}..{self.log.end}"
        )
        return f"{where}\n{self.schedule.tell()}"
