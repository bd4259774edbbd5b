"""Two twinlog brokers that take turns: fail over in a random way, fail back, account for all."""

import json
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from support.cluster_admin import create_topic, offsets_of
from support.dying_process import DyingTwinlog
from support.live_clients import LiveConsumer, LiveProducers, Partition, Session
from support.mirror import CommandRun, Mirror, twinlog_command
from support.positions import committed_offsets
from support.record_ledger import Held, Ledger, Tail, check_session, records_in, tails_in
from support.waiting import wait_until

TOPICS: Final = {"orders": 3, "events": 2}
GROUP: Final = "readers"
PARTITIONS: Final = [(topic, number) for topic, count in TOPICS.items() for number in range(count)]
WAYS: Final = ("promote", "stop under load", "source killed", "destination killed")

_SETTINGS: Final = {
    "mirror.metadata.refresh.interval.ms": "1000",
    "mirror.failed.retry.initial.backoff.ms": "50",
    "mirror.failed.retry.max.backoff.ms": "500",
    "log.segment.bytes": "65536",
}
_MIRROR_SETTINGS: Final = {"groups_sync_interval_ms": "200", "fetch_wait_max_ms": "50"}
_STOP_MOMENTS: Final = (
    "stop asked",
    "effect SaveState STOPPING",
    "event StateSaved STOPPING",
    "effect SaveLastMirrorEpoch",
    "event LastMirrorEpochSaved",
    "effect AppendPidReset",
    "append",
    "effect SaveState STOPPED",
    "event StateSaved STOPPED",
)
_START_MOMENTS: Final = (
    "effect SaveState LOG_ALIGNMENT",
    "effect ReadSourceMirrors",
    "effect TruncateTo",
    "saved",
    "event StepDone",
    "effect SaveState MIRRORING",
    "event StateSaved MIRRORING",
)


class FailoverRounds:
    """A pair of brokers of which one is ``active``: clients are there, and the other mirrors it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance: Final = random.Random(seed)
        self.active = DyingTwinlog(folder / "a", node_id=1, settings=_SETTINGS)
        self.passive = DyingTwinlog(folder / "b", node_id=2, settings=_SETTINGS)
        self.ledger: Final = Ledger()
        self.history: Final[list[str]] = []
        self._mirrors: Final[list[Mirror]] = []
        self._producers: LiveProducers | None = None
        self._consumer: LiveConsumer | None = None
        self._begins: dict[Partition, int | None] = dict.fromkeys(PARTITIONS)
        self._told: dict[object, tuple[object, ...]] = {}
        self._counts = {"producers": 0, "mirrors": 0, "consumed": 0}

    def __enter__(self) -> "FailoverRounds":
        """Start both, and clients at the one that the other mirrors."""
        self.active.start()
        self.passive.start()
        for topic, count in TOPICS.items():
            create_topic(self.active, topic, partitions=count)
        self._connect_clients()
        self._mirror_active()
        return self

    def __exit__(self, *_: object) -> None:
        """End both and all clients."""
        if self._producers is not None:
            self._producers.abandon()
        if self._consumer is not None:
            self._consumer.vanish()
        self.active.stop()
        self.passive.stop()

    @property
    def story(self) -> str:
        """What was done so far, for messages of failure."""
        return "; ".join(self.history)

    # One round

    def play(self, way: str) -> None:
        """Fail over in that way and fail back; then see that nothing is lost or repeated."""
        self.history.append(f"{len(self.history) + 1}: {way}")
        self._idle_for(0.3, 1.0)
        tails_before = len(self._tails())
        session, committed = self._fail_over(way)
        left_behind = _logs_of(self.active)
        self._check_session(session, left_behind)
        self.active, self.passive = self.passive, self.active
        self._check_where_group_begins(session, committed)
        self._connect_clients()
        self._idle_for(0.1, 0.5)
        self._mirror_active()
        self._idle_for(0.1, 0.5)
        self._settle()
        if way == "promote":
            assert len(self._tails()) == tails_before, "a promote lost something"
        self._producers = LiveProducers(self.active, list(TOPICS), self._next_name())

    # Failing over

    def _fail_over(self, way: str) -> tuple[Session, dict[Partition, int | None]]:
        """Leave the passive side writable and the active one without clients."""
        self._say(f"of {self.active.node_id}")
        if way == "promote":
            return self._promote()
        seen = self._committed_at(self.passive)
        if way == "stop under load":
            self._stop()
            self._idle_for(0.1, 0.5)
        elif way == "source killed":
            self.active.kill()
        else:
            self._stop_with_a_death()
        session = self._take_clients_away(is_dead=way == "source killed")
        if way == "source killed":
            self._stop()
            self.active.start()
        return session, seen

    def _promote(self) -> tuple[Session, dict[Partition, int | None]]:
        assert self._producers is not None
        self.ledger.acknowledged += self._producers.finish()
        self._producers = None
        session = self._consumer_leaves()
        mirror = self._mirrors[-1]
        mirror.run("--stop", "--promote", "--mirror", mirror.name, *_ALL, "--timeout-ms", "60000")
        return session, dict(session.committed)

    def _stop(self) -> None:
        mirror = self._mirrors[-1]
        mirror.run("--stop", "--wait", "--mirror", mirror.name, *_ALL, "--timeout-ms", "60000")

    def _stop_with_a_death(self) -> None:
        """Kill the destination at a moment of its stop, and stop it again once it is back."""
        moment = self.chance.choice(_STOP_MOMENTS)
        self._say(f"dying at {moment!r}")
        self.passive.die_at(moment, count=self.chance.randint(1, 3) if "asked" not in moment else 1)
        mirror = self._mirrors[-1]
        self._run_though_it_dies(mirror, "--stop")
        self._until_dead_or_late()
        self.passive.start()
        self._stop()

    def _take_clients_away(self, *, is_dead: bool) -> Session:
        assert self._producers is not None
        producers, self._producers = self._producers, None
        self.ledger.acknowledged += producers.abandon() if is_dead else producers.finish()
        if is_dead or self.chance.random() < 0.5:
            assert self._consumer is not None
            consumer, self._consumer = self._consumer, None
            return consumer.vanish()
        return self._consumer_leaves()

    def _consumer_leaves(self) -> Session:
        assert self._consumer is not None
        consumer, self._consumer = self._consumer, None
        return consumer.leave()

    # Failing back

    def _mirror_active(self) -> None:
        """Let the passive side mirror the active one, by a mirror that was there or a new one."""
        mirror = self._choose_mirror()
        self._mirrors.append(mirror)
        if self.chance.random() < 0.4:
            moment = self.chance.choice(_START_MOMENTS)
            self._say(f"{self.passive.node_id} dies at start at {moment!r}")
            self.passive.die_at(moment, count=self.chance.randint(1, 2))
        self._run_though_it_dies(mirror, "--start")
        self._until_dead_or_late()
        if not self.passive.server.is_running:
            self.passive.start()
        mirror.start(TOPICS)

    def _choose_mirror(self) -> Mirror:
        known = [one for one in self._mirrors if one.twinlog is self.passive]
        if known and self.chance.random() < 0.5:
            self._say(f"by {known[-1].name} again")
            return known[-1]
        self._counts["mirrors"] += 1
        mirror = Mirror(self.passive, self.active, f"mirror-{self._counts['mirrors']}")
        mirror.create(**_MIRROR_SETTINGS)
        self._say(f"by the new {mirror.name}")
        return mirror

    def _run_though_it_dies(self, mirror: Mirror, verb: str) -> CommandRun:
        where = ("mirrors", "--bootstrap-server", mirror.twinlog.bootstrap)
        return twinlog_command(*where, verb, "--mirror", mirror.name, *_ALL)

    def _until_dead_or_late(self) -> None:
        """Give an ordered death its time; not every moment comes in every round."""
        if self.passive.is_to_die and not self.passive.dies_within(3.0):
            self._say("which did not come")

    # Looking

    def _settle(self) -> None:
        """With producers quiet, see that both sides are equal and that everything is somewhere."""
        assert self._producers is not None
        assert self._consumer is not None
        self.ledger.acknowledged += self._producers.finish()
        self._producers = None
        mirror = self._mirrors[-1]
        mirror.await_states(PARTITIONS, "MIRRORING")
        mirror.await_caught_up(PARTITIONS)
        mirror.assert_equal(PARTITIONS)
        verified = mirror.run("--verify", "--mirror", mirror.name, "--json")
        results = {one["result"] for one in json.loads(verified.stdout)["partitions"]}
        assert results == {"EQUAL"}, verified.stdout
        logs = _logs_of(self.active)
        assert logs == _logs_of(self.passive)
        tails = self._tails()
        found = self.ledger.account(logs, tails)
        self._check_losses(tails)
        self._consumer.await_positions({of: max(held) + 1 for of, held in logs.items() if held})
        self._check_offsets_come_over()
        self._tidy_up()
        self._say(f"{found['log']} in logs, {found['tail']} in {len(tails)} tails")

    def _tidy_up(self) -> None:
        """Delete mirrors of the active side, whose work is done, as operators do at times."""
        done = [one for one in self._mirrors if one.twinlog is self.active]
        if done and self.chance.random() < 0.4:
            for name in {one.name for one in done}:
                self._say(f"{name} deleted")
                done[0].run("--delete", "--mirror", name)
            self._mirrors[:] = [one for one in self._mirrors if one.twinlog is self.passive]

    def _check_session(self, session: Session, logs: dict[Partition, Held]) -> None:
        self._counts["consumed"] += check_session(session, self._begins, logs)

    def _check_where_group_begins(
        self, session: Session, known: dict[Partition, int | None]
    ) -> None:
        """See that no offset is beyond what the group committed, or behind what had come over."""
        begins = self._committed_at(self.active)
        for of, begin in begins.items():
            last, least = session.tried.get(of, self._begins.get(of)), known.get(of)
            at = f"{of} begins at {begin}, committed {last}, of which {least} had come"
            assert begin is None or (last is not None and begin <= last), at
            assert least is None or (begin is not None and begin >= least), at
            assert begin is None or begin <= offsets_of(self.active, *of)[1], at
        self._begins = begins

    def _check_losses(self, tails: Sequence[Tail]) -> None:
        told: dict[object, tuple[object, ...]] = {
            loss["savedTo"]: (loss["firstOffset"], loss["endOffset"], loss["savedBytes"])
            for mirror in {(one.twinlog.node_id, one.name): one for one in self._mirrors}.values()
            for row in mirror.describe()
            for loss in _listed(row["losses"])
        }
        told.pop(None, None)
        # A mirror's deletion takes along what it told; the files stay.
        self._told |= told
        saved = {str(one.path): (one.first, one.end, one.path.stat().st_size) for one in tails}
        assert self._told == saved

    def _check_offsets_come_over(self) -> None:
        """See that the passive side's offsets become the active one's, old ones of its own too."""

        def apart() -> dict[Partition, tuple[int | None, int | None]]:
            here, there = self._committed_at(self.active), self._committed_at(self.passive)
            return {of: (here[of], there[of]) for of in here if here[of] != there[of]}

        wait_until(lambda: not apart(), lambda: f"offsets are equal: {apart()}", timeout_s=60.0)

    # Plumbing

    def _connect_clients(self) -> None:
        self._producers = LiveProducers(self.active, list(TOPICS), self._next_name())
        self._consumer = LiveConsumer(self.active, list(TOPICS), GROUP)

    def _next_name(self) -> str:
        self._counts["producers"] += 1
        return f"p{self._counts['producers']}"

    def _committed_at(self, broker: DyingTwinlog) -> dict[Partition, int | None]:
        return committed_offsets(broker, GROUP, PARTITIONS)

    def _tails(self) -> list[Tail]:
        return tails_in(self.active.log_folder) + tails_in(self.passive.log_folder)

    def _say(self, text: str) -> None:
        if self.history:
            self.history[-1] += f", {text}"

    def _idle_for(self, least_s: float, most_s: float) -> None:
        time.sleep(self.chance.uniform(least_s, most_s))


_ALL: Final = ("--topics", ",".join(TOPICS))


def _logs_of(broker: DyingTwinlog) -> dict[Partition, Held]:
    return {of: records_in(broker.partition_folder(*of)) for of in PARTITIONS}


def _listed(losses: object) -> list[dict[str, object]]:
    assert isinstance(losses, list)
    return losses
