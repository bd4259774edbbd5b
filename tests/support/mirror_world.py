"""One mirrored partition, its source, its network and its disk, all driven by one seed."""

from collections.abc import Callable

from support.simulated.destination import Destination
from support.simulated.group_offsets import GroupOffsets
from support.simulated.schedule import SCALES, Schedule
from support.simulated.source import KafkaSource
from twinlog.config.mirror_start import LATEST, LATEST_TIMESTAMP
from twinlog.mirroring import events as on
from twinlog.mirroring.policy import (
    FROM_EARLIEST,
    GapPolicy,
    MirrorPolicy,
    RetryPolicy,
    StartSpec,
)
from twinlog.mirroring.states import DesiredState, MirrorState
from twinlog.model.ids import BrokerId, LeaderEpoch

RETRY = RetryPolicy(backoff_ms_min=10, backoff_ms_max=60, attempts_max=1000)
STARTS = (*[FROM_EARLIEST] * 4, StartSpec(LATEST, LATEST_TIMESTAMP), StartSpec("5", 5))
OWN_EPOCHS = (0, 1, 3, 5)
MESSY_MS = 800
STEPS_MAX = 20_000
LOOK_MS = 60
ORDERS = (*DesiredState, DesiredState.MIRRORING, DesiredState.MIRRORING)

Happening = tuple[int, Callable[[], object]]


class World:
    """A Kafka cluster and a destination. The same seed always gives the same run."""

    def __init__(
        self,
        seed: int,
        *,
        allows_unclean: bool | None = None,
        gap: GapPolicy | None = None,
        is_source_only: bool = False,
    ) -> None:
        """Let nobody touch the broker, nor kill it, if it is the source only that misbehaves."""
        self.is_source_only = is_source_only
        self.schedule = Schedule(seed)
        chance = self.schedule.random
        unclean, gap_fails = chance.random() < 0.6, chance.random() < 0.2
        self.policy = MirrorPolicy(
            gap or (GapPolicy.FAIL if gap_fails else GapPolicy.CONTINUE),
            unclean if allows_unclean is None else allows_unclean,
            chance.choice(STARTS),
            failed=RETRY,
            source=RETRY,
        )
        self.source = KafkaSource(self.schedule)
        self.here = Destination(self.schedule, self.source, self.policy)
        self.own_identity = 0
        self.is_dark_for_good = False
        self.here.may_be_killed = not is_source_only
        self.here.own_epoch = chance.choice(OWN_EPOCHS)
        self.here.start()
        self.group = GroupOffsets(self.here, self.source)

    # The mess

    def play(self, until_ms: int = MESSY_MS) -> None:
        """Let everything happen that can, or only what happens to the source."""
        happenings = self._of_the_source()
        if not self.is_source_only:
            happenings += self._of_the_broker()
        chance = self.schedule.random
        # Some things happen often in this run, and some not at all.
        scaled = [weight * chance.choice(SCALES) for weight, _ in happenings]
        weights = [happenings[0][0], *scaled[1:]]

        def act() -> None:
            if self.schedule.now_ms < until_ms:
                chance.choices(happenings, weights)[0][1]()
                self.schedule.after(chance.randint(1, 25), act)

        act()
        while self.schedule.now_ms < until_ms:
            self.schedule.step()

    def _of_the_source(self) -> list[Happening]:
        source = self.source
        return [
            (60, source.produce),
            (10, source.commit),
            (4, source.trim),
            (8, source.change_leader),
            (3, source.lose_tail),
            (4, source.produce_to_deposed),
            (4, source.forget_deposed),
            (4, self._darken),
            (6, self.group.consume),
            (1, self.group.delete),
            (2, self._tell_leader),
            (1, self._let_store_fail),
            (15, lambda: None),
        ]

    def _of_the_broker(self) -> list[Happening]:
        here, chance = self.here, self.schedule.random
        return [
            (2, lambda: here.ask_for(chance.choice(ORDERS))),
            (1, here.kill),
            (1, self._kill_often),
            (1, self._let_replicas_fail),
            (1, lambda: here.coordinator.usurp(here.own_epoch + 1)),
            (1, lambda: here.coordinator.write_as_old_leader(here.own_epoch - 1)),
            (1, here.coordinator.reload),
            (2, lambda: here.deliver(on.RecoverAsked())),
            (2, self.write_own),
            (1, self._recreate),
        ]

    def _darken(self) -> None:
        self.schedule.faults["source dark"] += 1
        self.source.is_dark = True
        self.schedule.soon(self._lighten, at_most_ms=150)

    def _lighten(self) -> None:
        self.source.is_dark = self.is_dark_for_good

    def _kill_often(self) -> None:
        for delay_ms in range(0, 12, 3):
            self.schedule.after(delay_ms, self.here.kill)

    def _let_replicas_fail(self) -> None:
        self.schedule.faults["replicas down"] += 1
        self.here.are_replicas_down = True
        self.schedule.soon(self._mend_replicas, at_most_ms=200)

    def _mend_replicas(self) -> None:
        self.here.are_replicas_down = False

    def _let_store_fail(self) -> None:
        self.schedule.faults["metadata store away"] += 1
        self.here.is_store_away = True
        self.schedule.soon(self._mend_store, at_most_ms=300)

    def _mend_store(self) -> None:
        self.here.is_store_away = False

    def _tell_leader(self) -> None:
        """Let a refresh that nobody here asked for name the leader."""
        told = self.source.metadata()
        if isinstance(told, tuple):
            here = self.here
            moved = on.SourceLeaderMoved(BrokerId(told[0]), LeaderEpoch(told[1]))
            self.schedule.soon(lambda: here.deliver(moved), at_most_ms=50)

    def write_own(self) -> None:
        """Let a producer write here, if he may."""
        if self.here.is_writable:
            self.own_identity -= 1
            self.here.write(self.own_identity * 1000)

    def _recreate(self) -> None:
        """Delete the source's topic and create it again, where that can be seen at all."""
        can_be_seen = self.source.has_ids
        if can_be_seen and self.schedule.random.random() < 0.3:
            self.source.recreate()

    # The end of it

    def calm(self) -> None:
        """Let no more go wrong."""
        self.schedule.faults_on = False
        self.source.settle()
        self._mend_replicas()
        self._mend_store()
        self._look_for_topic()

    def _look_for_topic(self) -> None:
        """Let the sync of topics see that the topic is another, or who leads it now."""
        if self.source.has_ids and not self.source.is_same_topic:
            self.here.deliver(on.SourceLost("the topic is another one"))
        else:
            self._tell_leader()
        self.schedule.after(LOOK_MS, self._look_for_topic)

    def stop(self) -> None:
        """Order a stop, and wait until producers may write."""
        self._mend_replicas()
        self._mend_store()
        self.here.ask_for(DesiredState.STOPPED)
        self.run_until(lambda: self.here.is_writable)
        assert self.state == MirrorState.STOPPED, self.describe()

    @property
    def may_fail_for_good(self) -> bool:
        """Whether an operator's decision, or a new topic, leaves nothing else."""
        policy = self.policy
        may_lose = not policy.supports_unclean_election or policy.gap == GapPolicy.FAIL
        return may_lose or not self.source.is_same_topic

    def run_until(self, is_done: Callable[[], bool]) -> None:
        """Go on until something holds."""
        self.schedule.run_until(is_done, self.describe, steps_max=STEPS_MAX)

    @property
    def state(self) -> MirrorState:
        """The state that was last committed."""
        return self.here.mirror.state

    @property
    def is_level(self) -> bool:
        """Whether the destination is what the source is."""
        here, source = self.here.log, self.source.log
        # A leader that was elected uncleanly may have records that were deleted elsewhere.
        may_lack = self.source.lost_tails or self.policy.start is not FROM_EARLIEST
        return (
            self.state == MirrorState.MIRRORING
            and here.batches == source.tail_from(here.start)
            and here.end == source.end
            and (here.start == source.start or (bool(may_lack) and here.start > source.start))
        )

    def describe(self) -> str:
        """Say where everything stands."""
        log, leader = self.source.log, self.source.leader
        return (
            f"source {log.start}..{log.end} epoch {leader.epoch} shown {leader.shown}, "
            f"topic {self.source.topic}, {self.policy}\n{self.here.tell()}"
        )
