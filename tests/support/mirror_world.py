"""One mirrored partition, its source, its network and its disk, all driven by one seed."""

import heapq
from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from struct import pack
from uuid import UUID

from twinlog.mirroring import effects as do
from twinlog.mirroring import events as on
from twinlog.mirroring.alignment import LogFacts
from twinlog.mirroring.partition import PartitionMirror
from twinlog.mirroring.policy import GapPolicy, MirrorPolicy, RetryPolicy
from twinlog.mirroring.records import LastMirrorEpoch, MirrorPartition
from twinlog.mirroring.shard import MirrorShard, WriteState
from twinlog.mirroring.states import DesiredState, MirrorState
from twinlog.model.epochs import EpochHistory
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import BrokerId, LeaderEpoch, Offset

OF = MirrorPartition(mirror="m", topic_id=UUID(int=7), partition=0)


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
        body = pack(">ibI", self.epoch, 2, 0) + pack(">hi", 0, self.last - self.base)
        body += bytes(34) + pack(">q", self.identity)
        return pack(">qi", self.base, len(body)) + body


@dataclass(eq=False)
class Log:
    """A list of batches with a start, as a disk would hold it."""

    start: int = 0
    restart: int = 0
    batches: list[Batch] = field(default_factory=list)

    @property
    def end(self) -> int:
        return self.batches[-1].last + 1 if self.batches else self.restart

    def epochs(self) -> EpochHistory:
        history = EpochHistory()
        for batch in self.batches:
            history.assign(LeaderEpoch(batch.epoch), Offset(max(batch.base, self.start)))
        return history

    def truncate_to(self, end: int) -> None:
        assert end >= self.start, f"truncate to {end} below the start {self.start}"
        before = self.end
        self.batches = [b for b in self.batches if b.last < end]
        self.restart = min(before, end)

    def raise_start_to(self, start: int) -> None:
        assert start <= self.end, f"start {start} beyond the end {self.end}"
        self.restart = max(self.end, self.restart)
        self.start = max(self.start, start)
        kept = [b for b in self.batches if b.last >= self.start]
        self.batches = kept

    @property
    def open_transactions(self) -> int:
        """One producer: its last marker or first record of a transaction says if one is open."""
        last = next((b for b in reversed(self.batches) if b.kind in ("open", "end")), None)
        return int(last is not None and last.kind == "open")


class Source:
    """A partition's leader in the source cluster; what it shows is committed."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.log = Log()
        self.epoch = random.randint(0, 4)
        self.is_dark = False
        self.is_old = random.random() < 0.3
        """Whether fetches are served whatever leader epoch they name, as Kafka before 2.1 did."""
        self.lost_tails = 0
        self.identity = 0
        self.histories: list[list[Batch]] = [[]]
        """Every batch by rising offset, a new list after each loss of a tail."""
        self.by_identity: dict[int, Batch] = {}
        self.epochs = EpochHistory()
        self._elect(0)

    def produce(self) -> None:
        base = self.log.end + (self.random.random() < 0.1) * self.random.randint(1, 5)
        self.identity += 1
        kind = "data"
        if self.random.random() < 0.2:
            kind = "end" if self.log.open_transactions else "open"
        count = 1 if kind == "end" else self.random.randint(1, 8)
        batch = Batch(base, base + count - 1, self.epoch, self.identity, kind)
        self.log.batches.append(batch)
        self.histories[-1].append(batch)
        self.by_identity[batch.identity] = batch

    def trim(self) -> None:
        if self.log.end > self.log.start:
            self.log.raise_start_to(self.random.randint(self.log.start, self.log.end))
            self.epochs.truncate_from_start(Offset(self.log.start))

    def change_leader(self) -> None:
        self._elect(self.random.choice((1, 2, 3, 14)))

    def lose_tail(self) -> None:
        lost = self.random.randint(1, 3)
        keep = self.log.batches[: max(0, len(self.log.batches) - lost)]
        end = keep[-1].last + 1 if keep else self.log.start
        self.log.truncate_to(max(end, self.log.start))
        self.epochs.truncate_from_end(Offset(self.log.end))
        self.lost_tails += 1
        self._elect(self.random.randint(1, 2))
        self.histories.append([b for b in self.histories[-1] if b.last < end])

    def epoch_end(self, asked: int) -> tuple[int, int]:
        epoch, end = self.epochs.end_of(LeaderEpoch(asked), Offset(self.log.end))
        return epoch, end

    def _elect(self, by: int) -> None:
        """Begin a new epoch at the log end, as a leader does before it writes anything."""
        self.epoch += by
        self.epochs.assign(LeaderEpoch(self.epoch), Offset(self.log.end))

    def fetch(self, offset: int, count: int) -> list[Batch]:
        return [b for b in self.log.batches if b.last >= offset][:count]


class World:
    """Runs callbacks in time order; the same seed always gives the same run."""

    def __init__(self, seed: int, *, machine: type[PartitionMirror] = PartitionMirror) -> None:
        self.random = Random(seed)
        self.machine_type = machine
        self.now_ms = 0
        self.faults_on = True
        self.allows_unclean = self.random.random() < 0.6
        self.gap = GapPolicy.FAIL if self.random.random() < 0.2 else GapPolicy.CONTINUE
        self.source = Source(self.random)
        self.durable: list[tuple[bytes, bytes | None]] = []
        self.shard = MirrorShard()
        self.log = Log()
        self.own_epoch = 0
        self.desired = DesiredState.MIRRORING
        self.gaps: list[tuple[int, int]] = []
        self.life = 0
        self.just_lied = False
        self.told: deque[object] = deque(maxlen=60)
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self._timer = (-1, -1)
        self.mirror: PartitionMirror = self.start_machine()

    # Time

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._due, (self.now_ms + delay_ms, self._count, action))

    def step(self) -> None:
        at_ms, _, action = heapq.heappop(self._due)
        self.now_ms = max(self.now_ms, at_ms)
        before = self.log, len(self.log.batches), self.log.start
        action()
        if (self.log, len(self.log.batches), self.log.start) != before:
            self.check()

    def run_until(self, is_done: Callable[[], bool], *, steps_max: int) -> None:
        for _ in range(steps_max):
            if is_done():
                return
            self.step()
        raise AssertionError(f"never done: {self.describe()}\n" + self.tell())

    # The broker

    def start_machine(self) -> PartitionMirror:
        """Begin a new life with what is durable; its leader epoch is a new one."""
        self.life += 1
        self.own_epoch += 1
        self.shard = MirrorShard()
        for key, value in self.durable:
            self.shard.replay(key, value)
        retry = RetryPolicy(backoff_ms_min=20, backoff_ms_max=200, attempts_max=1000)
        policy = MirrorPolicy(self.gap, self.allows_unclean, failed=retry, source=retry)
        self.mirror = self.machine_type(OF, policy)
        known = self.shard.known(OF)
        self.deliver(
            on.Started(
                self.desired, known.state, known.last_mirror_epoch, LeaderEpoch(self.own_epoch)
            )
        )
        return self.mirror

    def _set_timer(self) -> None:
        deadline, life = self.mirror.deadline_ms, self.life
        if deadline is None or (deadline, life) == self._timer:
            return
        self._timer = (deadline, life)

        def ring() -> None:
            if life == self.life and self.mirror.deadline_ms == deadline:
                self.deliver(on.TimeCame())

        self.after(max(0, deadline - self.now_ms), ring)

    def deliver(self, event: on.Event) -> None:
        """Give the machine an event and carry out what it orders, unless killed in between."""
        life = self.life
        self.told.append((self.now_ms, event))
        for effect in self.mirror.on(event, self.now_ms, self.random.random()):
            if self.faults_on and self.random.random() < 0.004:
                self.told.append("-- killed")
                self.start_machine()
            if life != self.life:
                return
            self.told.append(effect)
            self.carry_out(effect)
        self._set_timer()

    def answer(self, event: on.Event, delay_ms: int | None = None) -> None:
        """Bring an event to the machine after a while, unless it died meanwhile."""
        life = self.life

        def bring() -> None:
            if life == self.life:
                self.deliver(event)

        self.after(self.random.randint(0, 10) if delay_ms is None else delay_ms, bring)

    def ask_source(self, turn: int, reply: Callable[[], on.Event]) -> None:
        """Ask now, answer later; the question or the answer may be lost."""
        lost = self.source.is_dark or (self.faults_on and self.random.random() < 0.1)
        if lost:
            refused = on.SourceRefused(ErrorCode.REQUEST_TIMED_OUT, "no answer", turn)
            self.answer(refused, self.random.randint(10, 60))
            return
        life = self.life

        def at_source() -> None:
            if life == self.life:
                event = reply()
                self.answer(event)

        self.after(self.random.randint(0, 5), at_source)

    def carry_out(self, effect: do.Effect) -> None:  # noqa: C901, PLR0912, PLR0915 - one case each
        source = self.source
        match effect:
            case do.SaveState():
                self._save_state(effect)
            case do.SaveLastMirrorEpoch(epoch, log_end):
                self._save_last(LastMirrorEpoch(epoch=epoch, log_end=log_end))
            case do.ReadLog(reset_from, turn):
                self.answer(on.LogRead(self._facts(reset_from), turn))
            case do.ReadSourceMirrors(turn):
                self.ask_source(turn, lambda: on.SourceMirrorsRead(None, None, turn))
            case do.FindSourceLeader(turn):
                self.ask_source(
                    turn,
                    lambda: on.SourceLeaderFound(BrokerId(1), LeaderEpoch(source.epoch), turn),
                )
            case do.AskSourceRange(_, epoch, turn):
                self.ask_source(turn, lambda: self._range(epoch, turn))
            case do.AskEpochEnd(_, leader_epoch, asked, turn):
                self.ask_source(turn, lambda: self._epoch_end(leader_epoch, asked, turn))
            case do.FetchFrom():
                self.ask_source(effect.turn, lambda: self._fetched(effect))
            case do.StopFetching():
                pass
            case do.BeginAt(start):
                assert not self.log.batches
                self.log = Log(start=start, restart=start)
            case do.Append(batches):
                if self.faults_on and self.random.random() < 0.02:
                    end = Offset(self.log.end)
                    self.deliver(on.AppendFailed(end, "spoilt on the way", end))
                    return
                self._append(bytes(batches))
            case do.RaiseLogStart(start) if start > self.log.end:
                end = Offset(self.log.end)  # the append before it has failed
                self.deliver(on.AppendFailed(end, "a start beyond the end", end))
            case do.RaiseLogStart(start):
                self.log.raise_start_to(start)
            case do.BumpEpoch(at_least):
                self._bump(at_least)
            case do.TruncateTo(end, _, turn):
                self.log.truncate_to(end)
                self.answer(on.StepDone(turn))
            case do.RestartAt(start, _, turn, _):
                self._check_restart(start)
                self.log = Log(start=start, restart=start)
                self.answer(on.StepDone(turn))
            case do.NoteGap(first, end, _):
                self.gaps.append((first, end))
            case do.AwaitReplicas(turn):
                self.answer(on.ReplicasConverged(turn))
            case do.AwaitCommit(turn) if self.faults_on and self.random.random() < 0.1:
                self.answer(on.StepFailed("not replicated in time", turn))
            case do.AwaitCommit(turn):
                self.answer(on.LogCommitted(turn))
            case do.AppendAbortMarkers(turn):
                while self.log.open_transactions:
                    self.write_own("end")
                self.answer(on.StepDone(turn))
            case do.AppendPidReset(turn):
                self.write_own("reset")
                self.answer(on.StepDone(turn))

    def _save_state(self, effect: do.SaveState) -> None:
        life, epoch = self.life, LeaderEpoch(self.own_epoch)
        write = WriteState(
            of=OF,
            state=effect.state,
            leader_epoch=epoch,
            expected_state_epoch=effect.expected_state_epoch,
            previous=effect.previous,
            error=effect.error,
            retry_attempt=effect.retry_attempt,
        )

        def commit() -> None:
            try:
                outcome = self.shard.write_state(write)
            except ApiError as error:
                if error.code not in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH):
                    raise
                if life == self.life:
                    self.start_machine()
                return
            for record in outcome.records:
                self.durable.append((record.key, record.value))
                self.shard.replay(record.key, record.value)
            assert isinstance(outcome.reply, int)
            self.answer(on.StateSaved(effect.state, outcome.reply)) if life == self.life else None

        # A write under way may land although its writer died: only fencing keeps it out.
        self.after(self.random.randint(0, 5), commit)

    def _save_last(self, last: LastMirrorEpoch) -> None:
        life, epoch = self.life, LeaderEpoch(self.own_epoch)

        def commit() -> None:
            if life != self.life:
                return
            for record in self.shard.write_last_mirror_epoch(OF, epoch, last).records:
                self.durable.append((record.key, record.value))
                self.shard.replay(record.key, record.value)
            self.answer(on.LastMirrorEpochSaved(last))

        self.after(self.random.randint(0, 5), commit)

    def _facts(self, reset_from: Offset | None) -> LogFacts:
        found = any(
            b.kind == "reset" and reset_from is not None and b.base >= reset_from
            for b in self.log.batches
        )
        return LogFacts(
            start=Offset(self.log.start),
            end=Offset(self.log.end),
            epochs=tuple(self.log.epochs().entries),
            open_transactions=self.log.open_transactions,
            has_pid_reset=found,
        )

    def _refused(self, code: ErrorCode, turn: int) -> on.SourceRefused:
        return on.SourceRefused(code, "says the source", turn)

    def _stale(self, epoch: int, turn: int) -> on.SourceRefused | None:
        if epoch == self.source.epoch:
            return None
        return self._refused(ErrorCode.FENCED_LEADER_EPOCH, turn)

    def _range(self, epoch: int, turn: int) -> on.Event:
        log = self.source.log
        start, end = log.start, log.end
        if self.faults_on and not self.just_lied and self.random.random() < 0.05:
            # A replica that is behind, or ahead, answers; never twice in a row.
            start, self.just_lied = end, True
        else:
            self.just_lied = False
        found = on.SourceRangeFound(Offset(start), Offset(end), turn)
        return self._stale(epoch, turn) or found

    def _epoch_end(self, leader_epoch: int, asked: int, turn: int) -> on.Event:
        epoch, end = self.source.epoch_end(asked)
        found = on.EpochEndFound(LeaderEpoch(asked), LeaderEpoch(epoch), Offset(end), turn)
        return self._stale(leader_epoch, turn) or found

    def _fetched(self, wanted: do.FetchFrom) -> on.Event:
        source, turn = self.source, wanted.turn
        if self.faults_on and self.random.random() < 0.01:
            return self._refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, turn)
        stale = self._stale(wanted.leader_epoch, turn)
        if stale is not None and not source.is_old:
            return stale
        if not source.log.start <= wanted.offset <= source.log.end:
            return self._refused(ErrorCode.OFFSET_OUT_OF_RANGE, turn)
        if wanted.last_fetched_epoch >= 0:
            epoch, end = source.epoch_end(wanted.last_fetched_epoch)
            if epoch != wanted.last_fetched_epoch or end < wanted.offset:
                return on.Diverged(turn)
        batches = source.fetch(wanted.offset, self.random.randint(0, 3))
        raw = b"".join(b.encoded() for b in batches)
        if batches and self.random.random() < 0.2:
            raw = raw[: -self.random.randint(1, 20)]
        return on.Fetched(
            wanted.offset, Offset(source.log.end), Offset(source.log.start), raw, turn
        )

    def _append(self, raw: bytes) -> None:
        position = 0
        while position < len(raw):
            length = int.from_bytes(raw[position + 8 : position + 12], "big") + 12
            identity = int.from_bytes(raw[position + length - 8 : position + length], "big")
            batch = self.source.by_identity[identity]
            assert batch.base >= self.log.end, f"{batch} does not continue {self.log.end}"
            assert batch.epoch <= self.own_epoch, f"{batch} above our epoch {self.own_epoch}"
            self.log.batches.append(batch)
            position += length

    def _check_restart(self, start: int) -> None:
        """Records are dropped or jumped over only when the source really lacks them."""
        if self.mirror.state == MirrorState.LOG_ALIGNMENT or self.source.lost_tails:
            return
        assert self.log.end < self.source.log.start, f"dropped for nothing: {self.describe()}"
        assert self.gaps, "jumped over records without a word"
        assert self.gaps[-1] == (self.log.end, start), f"{self.gaps[-1]} noted: {self.describe()}"

    def write_own(self, kind: str) -> None:
        epochs = [b.epoch for b in self.log.batches]
        assert self.own_epoch >= max(epochs, default=-1)
        last = self.shard.known(OF).last_mirror_epoch
        if kind != "data":
            assert last is not None, "written before the last mirror epoch was committed"
            assert self.own_epoch > last.epoch, "written before the epoch rose"
        end = self.log.end
        self.log.batches.append(Batch(end, end, self.own_epoch, -1, kind))

    def _bump(self, at_least: int) -> None:
        if self.faults_on and self.random.random() < 0.1:
            return  # the metadata store does not answer

        life = self.life

        def seen() -> None:
            self.own_epoch = max(self.own_epoch, at_least)
            if life == self.life:
                self.deliver(on.LeaderEpochSeen(LeaderEpoch(self.own_epoch)))

        self.after(self.random.randint(1, 20), seen)

    # What must hold

    def check(self) -> None:
        """Everything that came from the source is a prefix of one of its histories."""
        mirrored = [b for b in self.log.batches if b.identity >= 0]
        own = [b for b in self.log.batches if b.identity < 0]
        assert not own or not mirrored or own[0].base > mirrored[-1].last, "own before mirrored"
        for before, batch in pairwise(mirrored):
            assert before.epoch <= batch.epoch
        if not mirrored:
            return
        for history in self.source.histories:
            first = bisect_left(history, mirrored[0].base, key=lambda b: b.base)
            if history[first : first + len(mirrored)] == mirrored:
                return
        raise AssertionError(f"not a prefix: {self.describe()}\n" + self.tell())

    @property
    def is_level(self) -> bool:
        """Whether the destination is what the source is."""
        source = self.source.log
        return (
            self.mirror.state == MirrorState.MIRRORING
            and self.log.batches == source.batches
            and (self.log.start, self.log.end) == (source.start, source.end)
        )

    def ask_for(self, desired: DesiredState) -> None:
        self.desired = desired
        self.deliver(on.DesiredChanged(desired))

    def tell(self) -> str:
        """Give the last of what happened, a line each."""
        return "\n".join(str(line)[:200] for line in self.told)

    def describe(self) -> str:
        return (
            f"{self.mirror.state.name} ({self.mirror.standing}, {self.mirror.trouble}) wants "
            f"{self.desired.name}; here {self.log.start}..{self.log.end}, source "
            f"{self.source.log.start}..{self.source.log.end} epoch {self.source.epoch}"
        )
