"""Two clusters of ours that mirror each other in turns: failover, failback, and all over again."""

from collections.abc import Callable

from support.simulated.destination import Destination
from support.simulated.log import Batch, Log
from support.simulated.rules import Rules
from support.simulated.schedule import SCALES, Schedule
from support.simulated.source import Answer, FetchAnswer, Parted
from twinlog.broker.mirrors.source_mirrors import read_mirrors
from twinlog.mirroring import effects as do
from twinlog.mirroring.policy import MirrorPolicy, RetryPolicy
from twinlog.mirroring.records import LastMirrorEpoch
from twinlog.mirroring.shard import WriteState
from twinlog.mirroring.states import DesiredState, MirrorState
from twinlog.model.errors import ErrorCode
from twinlog.model.ids import LeaderEpoch, Offset, TopicName, TopicPartition
from twinlog.wire.messages.mirrors import (
    DescribedMirror,
    DescribedMirrorPartition,
    DescribedMirrorTopic,
)

OF = TopicPartition(TopicName("t"), 0)
RETRY = RetryPolicy(backoff_ms_min=10, backoff_ms_max=60, attempts_max=1000)
POLICY = MirrorPolicy(failed=RETRY, source=RETRY)
MESSY_MS = 2_500
STEPS_MAX = 30_000


class Twin(Destination):
    """One of the two: writable like any topic's partition while it has no mirror."""

    def __init__(self, schedule: Schedule, name: str, source: "View") -> None:
        super().__init__(schedule, source, POLICY)
        self.name = name
        self.rules = self.coordinator.watcher = TwinRules(self)
        self.has_mirror = False
        self.is_writable = True
        self.own_epoch = 1
        self.desired = DesiredState.STOPPED
        self.trimmed: set[int] = set()
        """What retention has deleted here, by identity."""

    def start(self) -> None:
        """Come up again, in a new leader epoch."""
        if self.has_mirror:
            super().start()
        else:
            self.own_epoch += 1

    def mirror_the_other(self) -> None:
        """Make the partition a mirror's, or start it again."""
        if self.has_mirror:
            self.ask_for(DesiredState.MIRRORING)
            return
        self.has_mirror, self.is_writable = True, False
        self.desired = DesiredState.MIRRORING
        self.begin()

    def delete_mirror(self) -> None:
        """Forget the mirror; the partition stays, and stays writable."""
        if self.has_mirror and self.is_writable:
            self.coordinator.delete_mirror()
            self.has_mirror = False
            self.rules.forget()
            self.end()

    def trim(self) -> None:
        """Delete old records, as retention does where producers write."""
        log = self.log
        if self.is_writable and log.end > log.start:
            before = list(log.batches)
            log.raise_start_to(self.schedule.random.randint(log.start, log.end))
            self.trimmed.update(b.identity for b in before if b not in log.batches)


class View:
    """What one twin is to the other: a source."""

    lost_tails = 1
    """A log may begin earlier after a cut: nothing is said of where a copy begins meanwhile."""
    is_same_topic = True

    def __init__(self, schedule: Schedule) -> None:
        self.is_dark = False
        self.twin: Twin | None = None
        self._schedule = schedule

    @property
    def _at(self) -> Twin:
        assert self.twin is not None
        return self.twin

    @property
    def lines(self) -> list[list[Batch]]:
        """Every line of records it ever had."""
        return self._at.log.lines

    @property
    def log(self) -> Log:
        """Its log as it is now."""
        return self._at.log

    def _check(self, epoch: int) -> ErrorCode | None:
        own = self._at.own_epoch
        if epoch in (-1, own):
            return None
        is_old = epoch < own
        return ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH

    def metadata(self) -> tuple[int, int] | ErrorCode:
        """Give leader and epoch."""
        return 0, self._at.own_epoch

    def range(self, node: int, epoch: int) -> tuple[int, int] | ErrorCode:
        """Give where the records begin and end."""
        return self._check(epoch) or (self.log.start, self.log.end)

    def offset_at(self, node: int, epoch: int, timestamp_ms: int) -> int | ErrorCode | None:
        """Nobody asks: everything is mirrored."""
        raise AssertionError("asked for the offset of a time")

    def epoch_end(self, node: int, epoch: int, asked: int) -> tuple[int, int] | ErrorCode:
        """Give the highest epoch at or below ``asked``, and its end, as a partition does."""
        at, log = self._at, self.log
        refused = self._check(epoch)
        if refused is not None:
            return refused
        if asked == at.own_epoch > log.epochs.latest:
            return asked, log.end
        return log.epochs.end_of(LeaderEpoch(asked), Offset(log.end))

    def fetch(self, node: int, epoch: int, offset: int, last_epoch: int) -> FetchAnswer:
        """Give what follows an offset."""
        refused = self._check(epoch)
        if refused is not None:
            return refused
        log = self.log
        if not log.start <= offset <= log.end:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        if last_epoch >= 0:
            ended = self.epoch_end(node, -1, last_epoch)
            assert isinstance(ended, tuple)
            if ended[0] != last_epoch or ended[1] < offset:
                return Parted()
        found = log.tail_from(offset)[: self._schedule.random.randint(0, 3)]
        return Answer(found, log.end, log.start)

    def mirrors(self) -> tuple[LastMirrorEpoch | None, str | None] | ErrorCode:
        """Give what the product reads in the description of the twin's mirror."""
        if not self._at.has_mirror:
            return None, None
        known = self._at.coordinator.known
        last = known.last_mirror_epoch or LastMirrorEpoch()
        described = DescribedMirrorPartition(
            partition_index=0,
            state_value=known.mirror_state.name,
            last_mirror_epoch=last.epoch,
            last_mirror_offset=last.log_end,
        )
        topic = DescribedMirrorTopic(topic_name=OF.topic, partitions=(described,))
        mirror = DescribedMirror(mirror_name="m", source_cluster_id="us", topics=(topic,))
        return read_mirrors([mirror], OF, "us")


class TwinRules(Rules):
    """What must hold of each, and between the two."""

    def state_written(self, before: MirrorState, wanted: WriteState) -> None:
        """Only one of the two may hold nothing but the other's records."""
        super().state_written(before, wanted)
        if self.mirrors_all:
            self._must(not self._other.rules.mirrors_all, "both mirror each other")

    def cut(self, cut: do.TruncateTo | do.RestartAt) -> None:
        """A record that was acknowledged goes only where it is saved, or on the other side too."""
        super().cut(cut)
        at, other = self._at, self._other
        assert isinstance(at, Twin)
        gone = at.log.tail_from(at.log.start if isinstance(cut, do.RestartAt) else cut.end)
        deleted = at.trimmed | other.trimmed
        for batch in gone:
            saved = any(batch in tail for tail in at.tails)
            is_kept = batch.identity < 0 or saved or batch in other.log.batches
            self._must(is_kept or batch.identity in deleted, f"{batch} was acknowledged, is lost")

    @property
    def _other(self) -> Twin:
        view = self._at.network.source
        assert isinstance(view, View)
        assert view.twin is not None
        return view.twin


class Twins:
    """Both, their producers, and an operator who moves the work from one to the other."""

    def __init__(self, seed: int) -> None:
        self.schedule = schedule = Schedule(seed)
        views = View(schedule), View(schedule)
        self.sides = Twin(schedule, "a", views[1]), Twin(schedule, "b", views[0])
        self.views = views
        for view, side in zip(views, self.sides, strict=True):
            view.twin = side
        self.identity = 0
        self.acknowledged: dict[int, Batch] = {}
        self.turns = 0
        self.sides[1].mirror_the_other()

    def play(self) -> None:
        """Let everything happen that can."""
        chance = self.schedule.random
        happenings: list[tuple[int, Callable[[Twin], object]]] = [
            (60, self._write),
            (6, self._fail_over),
            (6, self._fail_back),
            (1, lambda side: side.mirror_the_other()),
            (1, self._pause),
            (1, lambda side: side.kill()),
            (2, self._cut_off),
            (1, Twin.trim),
            (1, Twin.delete_mirror),
            (1, self._let_store_fail),
            (20, lambda side: None),
        ]
        scaled = [weight * chance.choice(SCALES) for weight, _ in happenings]
        weights = [60, max(scaled[1], 3), max(scaled[2], 3), *scaled[3:]]

        def act() -> None:
            if self.schedule.now_ms < MESSY_MS:
                happening = chance.choices(happenings, weights)[0][1]
                happening(chance.choice(self.sides))
                self.schedule.after(chance.randint(1, 25), act)

        act()
        while self.schedule.now_ms < MESSY_MS:
            self.schedule.step()

    def other(self, side: Twin) -> Twin:
        """Give the other one."""
        return self.sides[1] if side is self.sides[0] else self.sides[0]

    def _write(self, side: Twin) -> None:
        if side.is_writable:
            self.identity += 1
            self.acknowledged[self.identity] = side.write(self.identity)

    def _fail_over(self, side: Twin) -> None:
        if side.has_mirror and side.desired != DesiredState.STOPPED:
            self.schedule.faults["failover"] += 1
            side.ask_for(DesiredState.STOPPED)

    def _fail_back(self, side: Twin) -> None:
        if side.is_writable and self.other(side).is_writable:
            self.schedule.faults["failback"] += 1
            side.mirror_the_other()

    def _pause(self, side: Twin) -> None:
        if side.has_mirror and side.desired != DesiredState.STOPPED:
            side.ask_for(self.schedule.random.choice((DesiredState.PAUSED, DesiredState.MIRRORING)))

    def _cut_off(self, side: Twin) -> None:
        self.schedule.faults["cut off from the other"] += 1
        view = self.views[self.sides.index(side)]
        view.is_dark = True
        self.schedule.soon(lambda: setattr(view, "is_dark", False), at_most_ms=300)

    def _let_store_fail(self, side: Twin) -> None:
        side.is_store_away = True
        self.schedule.soon(lambda: setattr(side, "is_store_away", False), at_most_ms=300)

    # The end of it

    def settle(self) -> None:
        """Stop both, let one mirror the other, and look where every record is."""
        self.schedule.faults_on = False
        for view, side in zip(self.views, self.sides, strict=True):
            view.is_dark = side.is_store_away = False
        for side in self.sides:
            if side.has_mirror:
                side.ask_for(DesiredState.STOPPED)
        self.run_until(lambda: all(side.is_writable for side in self.sides))
        one = self.schedule.random.choice(self.sides)
        two = self.other(one)
        one.mirror_the_other()
        self.run_until(lambda: one.mirror.state == MirrorState.MIRRORING and self._are_equal)
        kept = {batch for side in self.sides for tail in side.tails for batch in tail}
        kept.update(two.log.batches)
        deleted = one.trimmed | two.trimmed
        for identity, batch in self.acknowledged.items():
            assert batch in kept or identity in deleted, f"{batch} is lost\n{self.describe()}"

    @property
    def _are_equal(self) -> bool:
        """Whether both have the same, but for what retention has deleted on one side only."""
        one, two = (side.log for side in self.sides)
        start = max(one.start, two.start)
        return one.end == two.end and one.tail_from(start) == two.tail_from(start)

    def run_until(self, is_done: Callable[[], bool]) -> None:
        """Go on until something holds."""
        self.schedule.run_until(is_done, self.describe, steps_max=STEPS_MAX)

    def describe(self) -> str:
        """Say where both stand."""
        return "\n".join(
            f"{side.name}: {side.mirror.state.name} wants {side.desired.name} "
            f"({side.mirror.standing}, {side.mirror.trouble}) epoch {side.own_epoch} "
            f"{side.log.start}..{side.log.end} {side.log.epochs.entries}"
            for side in self.sides
        )
