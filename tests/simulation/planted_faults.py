"""Faults that could be made in the product, each a small patch, and the play that meets it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest

from simulation import mirror_plays as plays
from twinlog.mirroring import effects as do
from twinlog.mirroring import events as on
from twinlog.mirroring import group_sync, partition, shard, standing
from twinlog.mirroring.aligning import Alignment
from twinlog.mirroring.alignment import LogFacts
from twinlog.mirroring.conclusions import Doubtful
from twinlog.mirroring.following import Following
from twinlog.mirroring.partition import PartitionMirror
from twinlog.mirroring.policy import GapPolicy
from twinlog.mirroring.records import LastMirrorEpoch
from twinlog.mirroring.shard import MirrorShard
from twinlog.mirroring.standing import Standing
from twinlog.mirroring.states import DesiredState, MirrorState
from twinlog.mirroring.stopping import Stopping
from twinlog.model.ids import LeaderEpoch

Plant = Callable[[pytest.MonkeyPatch], None]
NO_BOUND: Final = LeaderEpoch(1 << 30)


@dataclass(frozen=True, slots=True)
class PlantedFault:
    """A fault by name, what it would do to a user, and who catches it."""

    name: str
    harm: str
    caught_by: plays.Play
    plant: Plant


FAULTS: Final[list[PlantedFault]] = []


def fault(name: str, harm: str, caught_by: plays.Play) -> Callable[[Plant], Plant]:
    """Add a fault to the list."""

    def add(plant: Plant) -> Plant:
        FAULTS.append(PlantedFault(name, harm, caught_by, plant))
        return plant

    return add


def around(patch: pytest.MonkeyPatch, owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
    """Replace a method by one that is given the real one, then what that is given."""
    real = getattr(owner, name)

    def wrapped(*given: Any, **named: Any) -> Any:
        return wrapper(real, *given, **named)

    patch.setattr(owner, name, wrapped)


# Alignment


@fault(
    "no truncation",
    "records that the source lost stay, and others follow them: two histories in one log",
    plays.level_once_faults_end,
)
def no_truncation(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Alignment, "_cut", lambda self, end: self._aligned())


@fault(
    "last batch not met at the source",
    "records of a topic that was made again follow those of the old one: two histories in one log",
    plays.another_topic_of_the_same_name,
)
def last_batch_not_met(patch: pytest.MonkeyPatch) -> None:
    def forget(real: Callable[..., Any], *given: Any) -> Any:
        following = real(*given)
        following.to_meet = None
        return following

    around(patch, Following, "of", forget)


@fault(
    "divergence unheard",
    "a mirror stands still for ever after an unclean election",
    plays.level_over_restarts_of_one_broker,
)
def divergence_unheard(patch: pytest.MonkeyPatch) -> None:
    around(
        patch,
        PartitionMirror,
        "on",
        lambda real, self, event, *rest: (
            [] if isinstance(event, on.Diverged) else real(self, event, *rest)
        ),
    )


@fault(
    "no second look",
    "one wrong answer of a broker costs records that the source still has",
    plays.level_once_faults_end,
)
def no_second_look(patch: pytest.MonkeyPatch) -> None:
    def believe(self: Alignment, verdict: str, offset: Any, *, looks: int = 1) -> None:
        self.doubted = Doubtful(verdict, offset, looks)

    patch.setattr(Alignment, "_doubt", believe)


@fault(
    "gap not noted",
    "records that the source deleted too early are missing, and nobody is told",
    plays.level_once_faults_end,
)
def gap_not_noted(patch: pytest.MonkeyPatch) -> None:
    def forget(real: Callable[..., Any], self: Alignment, kept: Any) -> Any:
        step = real(self, kept)
        return step[1:] if isinstance(step, list) else step

    around(patch, Alignment, "_gap", forget)


@fault(
    "gap policy ignored",
    "a mirror jumps over lost records though the operator forbade it",
    plays.level_once_faults_end,
)
def gap_policy_ignored(patch: pytest.MonkeyPatch) -> None:
    def jump(real: Callable[..., Any], self: Alignment, kept: Any) -> Any:
        self.policy = replace(self.policy, gap=GapPolicy.CONTINUE)
        return real(self, kept)

    around(patch, Alignment, "_gap", jump)


@fault(
    "unclean election followed unasked",
    "records are cut off though the operator never allowed it",
    plays.level_once_faults_end,
)
def unclean_election_followed_unasked(patch: pytest.MonkeyPatch) -> None:
    def allow(real: Callable[..., Any], self: Alignment, end: Any) -> Any:
        self.policy = replace(self.policy, supports_unclean_election=True)
        return real(self, end)

    around(patch, Alignment, "_cut", allow)


@fault(
    "replicas not awaited",
    "after an unclean election an election here brings back what was cut off",
    plays.level_once_faults_end,
)
def replicas_not_awaited(patch: pytest.MonkeyPatch) -> None:
    def go_on(real: Callable[..., Any], self: PartitionMirror, aligned: Any) -> Any:
        if self.state == MirrorState.ULE_RECOVERY:
            return self._save(MirrorState.MIRRORING)
        return real(self, aligned)

    around(patch, PartitionMirror, "_aligned", go_on)


@fault(
    "last mirror epoch ignored at the start",
    "records written here stay below those of the source: two histories in one log",
    plays.start_again_after_a_stop,
)
def last_mirror_epoch_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Alignment, "_kept", lambda self, local: local)


@fault(
    "tail not saved",
    "records written here are gone for good after a failback",
    plays.start_again_after_a_stop,
)
def tail_not_saved(patch: pytest.MonkeyPatch) -> None:
    def forget(real: Callable[..., Any], self: Alignment, event: on.Event) -> Any:
        step = real(self, event)
        if not isinstance(step, list):
            return step
        return [replace(e, ours_from=None) if isinstance(e, do.RestartAt) else e for e in step]

    around(patch, Alignment, "on", forget)


@fault(
    "lost bump not repeated",
    "a mirror stands still for ever when the metadata store does not answer once",
    plays.level_once_faults_end,
)
def lost_bump_not_repeated(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Alignment, "again", lambda self: [])


# Following


@fault(
    "turns ignored",
    "an answer that is too late is acted on: a stop writes twice, or records of a leader of before",
    plays.stop_after_elections,
)
def turns_ignored(patch: pytest.MonkeyPatch) -> None:
    def rejuvenate(real: Callable[..., Any], self: PartitionMirror, event: Any, *rest: Any) -> Any:
        if hasattr(event, "turn"):
            event = replace(event, turn=self.turn)
        return real(self, event, *rest)

    around(patch, PartitionMirror, "on", rejuvenate)


@fault(
    "stale leader accepted",
    "a leader that took over in between is read on without comparing: two histories in one log",
    plays.level_over_restarts_of_one_broker,
)
def stale_leader_accepted(patch: pytest.MonkeyPatch) -> None:
    around(
        patch,
        Following,
        "fetch",
        lambda real, self: replace(real(self), leader_epoch=LeaderEpoch(-1)),
    )
    patch.setattr(Following, "source_epoch", property(lambda self: -1, lambda self, value: None))


@fault(
    "epoch of a batch not checked",
    "consumers meet an epoch above the one in the metadata, and refetch that for ever",
    plays.level_once_faults_end,
)
def epoch_of_a_batch_not_checked(patch: pytest.MonkeyPatch) -> None:
    around(
        patch,
        Following,
        "take",
        lambda real, self, fetched, own_epoch, now_ms: real(self, fetched, NO_BOUND, now_ms),
    )


@fault(
    "log start not raised",
    "what the source has deleted stays readable here",
    plays.level_once_faults_end,
)
def log_start_not_raised(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Following, "_raise_start", lambda self, start: [])


@fault(
    "fetching goes on",
    "records of the source come in after a pause or between those of a stop",
    plays.stop_without_the_source,
)
def fetching_goes_on(patch: pytest.MonkeyPatch) -> None:
    def keep(real: Callable[..., Any], self: PartitionMirror) -> Any:
        following, turn = self._following, self.turn
        effects = real(self)
        if following is not None:
            self._following, self.turn = following, turn
        return effects

    around(patch, PartitionMirror, "_leave", keep)


# States


@fault(
    "acted on before it is committed",
    "a kill leaves records in a log of which nobody knows whose they are",
    plays.level_once_faults_end,
)
def acted_on_before_it_is_committed(patch: pytest.MonkeyPatch) -> None:
    def hurry(real: Callable[..., Any], self: PartitionMirror, state: MirrorState) -> Any:
        effects = real(self, state)
        return effects + self._saved(state, self.standing.state_epoch + 1)

    around(patch, PartitionMirror, "_save", hurry)


@fault(
    "illegal step allowed",
    "a partition is writable before its stop has written anything",
    plays.stop_without_the_source,
)
def illegal_step_allowed(patch: pytest.MonkeyPatch) -> None:
    around(
        patch,
        standing,
        "next_target",
        lambda real, actual, desired: (
            MirrorState.STOPPED if desired == DesiredState.STOPPED else real(actual, desired)
        ),
    )
    for module in (shard, partition):
        patch.setattr(module, "may_step", lambda before, after: True)


@fault(
    "state epoch not expected",
    "a leader overwrites a state that it does not know",
    plays.level_once_faults_end,
)
def state_epoch_not_expected(patch: pytest.MonkeyPatch) -> None:
    around(
        patch,
        Standing,
        "leave_for",
        lambda real, self, state: replace(real(self, state), expected_state_epoch=shard.UNCHECKED),
    )


@fault(
    "deposed leader not fenced",
    "a broker that was replaced undoes what its successor wrote",
    plays.level_once_faults_end,
)
def deposed_leader_not_fenced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MirrorShard, "_check_leader_epoch", lambda self, of, epoch: None)


# Stopping


@fault(
    "no bump at the stop",
    "a failback cannot tell the records of a stop from the source's",
    plays.stop_at_the_source_s_own_epoch,
)
def no_bump_at_the_stop(patch: pytest.MonkeyPatch) -> None:
    def go_on(real: Callable[..., Any], self: Stopping, facts: LogFacts, own: LeaderEpoch) -> Any:
        step = real(self, facts, own)
        return real(self, facts, step.at_least) if isinstance(step, do.BumpEpoch) else step

    around(patch, Stopping, "next_step", go_on)


@fault(
    "last mirror epoch not awaited",
    "killed in between, a stop leaves no last mirror epoch: the failback starts from scratch",
    plays.stop_without_the_source,
)
def last_mirror_epoch_not_awaited(patch: pytest.MonkeyPatch) -> None:
    def hurry(real: Callable[..., Any], self: PartitionMirror, event: on.Event) -> Any:
        effects = real(self, event)
        for effect in tuple(effects):
            if isinstance(effect, do.SaveLastMirrorEpoch):
                saved = LastMirrorEpoch(
                    epoch=effect.epoch, log_end=effect.log_end, own_from=effect.own_from
                )
                effects = effects + self._on_stop_answer(on.LastMirrorEpochSaved(saved))
        return effects

    around(patch, PartitionMirror, "_on_stop_answer", hurry)


@fault(
    "wrong last mirror epoch",
    "a failback keeps records that the other side never had",
    plays.stop_without_the_source,
)
def wrong_last_mirror_epoch(patch: pytest.MonkeyPatch) -> None:
    around(patch, Stopping, "_epoch_of", lambda real, self, facts: real(self, facts) + 1)


@fault(
    "marker before the bump",
    "a failback takes the marker of a stop for the source's and keeps it",
    plays.stop_at_the_source_s_own_epoch,
)
def marker_before_the_bump(patch: pytest.MonkeyPatch) -> None:
    around(
        patch,
        Stopping,
        "next_step",
        lambda real, self, facts, own: (
            do.AppendAbortMarkers(self.turn)
            if facts.open_transactions and self.saved is not None
            else real(self, facts, own)
        ),
    )


@fault(
    "open transactions left",
    "read_committed consumers stand still for ever behind a transaction that nobody ends",
    plays.stop_without_the_source,
)
def open_transactions_left(patch: pytest.MonkeyPatch) -> None:
    around(
        patch,
        Stopping,
        "next_step",
        lambda real, self, facts, own: real(self, replace(facts, open_transactions=0), own),
    )


@fault(
    "no producer reset",
    "a producer here whose id the source used is told that its records are duplicates",
    plays.stop_without_the_source,
)
def no_producer_reset(patch: pytest.MonkeyPatch) -> None:
    around(
        patch,
        Stopping,
        "next_step",
        lambda real, self, facts, own: real(self, replace(facts, has_pid_reset=True), own),
    )


@fault(
    "producer reset written twice",
    "a stop that was killed and begun again never ends, or forgets producers that came meanwhile",
    plays.stop_without_the_source,
)
def producer_reset_written_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Stopping, "look", lambda self: do.ReadLog(None, self.turn))


@fault(
    "commit not awaited",
    "an election right after a stop takes away what the stop wrote",
    plays.stop_without_the_source,
)
def commit_not_awaited(patch: pytest.MonkeyPatch) -> None:
    def hurry(real: Callable[..., Any], self: Stopping, event: on.Event, own: LeaderEpoch) -> Any:
        step = real(self, event, own)
        if isinstance(step, do.AwaitCommit):
            return real(self, on.LogCommitted(self.turn), own)
        return step

    around(patch, Stopping, "on", hurry)


# Two clusters


@fault(
    "loop not seen",
    "two clusters mirror each other at once and cut off each other's records",
    plays.twins_take_turns,
)
def loop_not_seen(patch: pytest.MonkeyPatch) -> None:
    def overlook(real: Callable[..., Any], self: Alignment, event: Any) -> Any:
        if isinstance(event, on.SourceMirrorsRead):
            event = replace(event, problem=None)
        return real(self, event)

    around(patch, Alignment, "on", overlook)


@fault(
    "failed stop forgets where it came from",
    "records written here pass for the source's at the next start: two histories in one log",
    plays.twins_take_turns,
)
def failed_stop_forgets(patch: pytest.MonkeyPatch) -> None:
    def forget(real: Callable[..., Any], self: Standing, why: str, **named: Any) -> Any:
        if self.state == MirrorState.STOPPING:
            self.previous = MirrorState.STOPPING
        return real(self, why, **named)

    around(patch, Standing, "fail", forget)


# Groups


@fault(
    "group offset not clamped",
    "a consumer that goes over stands beyond the end, and misses what is written next",
    plays.level_once_faults_end,
)
def group_offset_not_clamped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(group_sync, "clamp", lambda committed, bounds: committed)


@fault(
    "group offset of a log that was not compared",
    "offsets of records that were written here are overwritten by those of another log",
    plays.start_again_after_a_stop,
)
def group_offset_of_a_log_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(standing, "ALIGNED", frozenset(MirrorState))
