"""One pass of bringing the log in step; the transcripts tell the whole."""

import pytest

from twinlog.mirroring.aligning import Alignment
from twinlog.mirroring.alignment import LogFacts
from twinlog.mirroring.conclusions import Aligned, Doubtful, EpochRaised, Refused
from twinlog.mirroring.effects import (
    AskEpochEnd,
    AskSourceRange,
    BumpEpoch,
    FindSourceLeader,
    NoteGap,
    ReadLog,
    ReadSourceMirrors,
    RestartAt,
    TruncateTo,
)
from twinlog.mirroring.events import (
    EpochEndFound,
    Event,
    LeaderEpochSeen,
    LogRead,
    SourceLeaderFound,
    SourceMirrorsRead,
    SourceRangeFound,
    StepDone,
    TimeCame,
)
from twinlog.mirroring.policy import MirrorPolicy
from twinlog.mirroring.records import LastMirrorEpoch
from twinlog.mirroring.states import MirrorState
from twinlog.model.epochs import EpochStart
from twinlog.model.ids import BrokerId, LeaderEpoch, Offset


def alignment(purpose: MirrorState, *, own: int = 20, doubted: Doubtful | None = None) -> Alignment:
    return Alignment(purpose, 1, MirrorPolicy(), LeaderEpoch(own), doubted=doubted)


def facts(start: int, end: int, *epochs: tuple[int, int]) -> LogFacts:
    starts = tuple(EpochStart(LeaderEpoch(e), Offset(at)) for e, at in epochs)
    return LogFacts(Offset(start), Offset(end), starts)


LEADER = SourceLeaderFound(BrokerId(1), LeaderEpoch(5), 1)


def play(machine: Alignment, *events: Event) -> object:
    """Begin a pass and give it answers; a source that says nothing of mirrors may be left out."""
    step: object = machine.begin()
    if step == [ReadSourceMirrors(1)] and not isinstance(events[0], SourceMirrorsRead):
        machine.on(SourceMirrorsRead(None, None, 1))
    for event in events:
        step = machine.on(event)
    return step


def read(start: int, end: int, *epochs: tuple[int, int]) -> LogRead:
    return LogRead(facts(start, end, *epochs), 1)


def in_range(start: int, end: int) -> SourceRangeFound:
    return SourceRangeFound(Offset(start), Offset(end), 1)


def test_epoch_fencing_ends_when_our_epoch_is_seen_to_be_high_enough() -> None:
    machine = alignment(MirrorState.EPOCH_FENCING, own=5)
    machine.fencing_epoch = LeaderEpoch(9)
    assert play(machine, LEADER) == [BumpEpoch(LeaderEpoch(19))]
    assert machine.again() == [BumpEpoch(LeaderEpoch(19))]
    assert machine.on(LeaderEpochSeen(LeaderEpoch(18))) == []
    assert machine.on(LeaderEpochSeen(LeaderEpoch(19))) == EpochRaised()
    assert machine.again() == []


def test_a_start_asks_for_the_sources_mirrors_first_and_heeds_a_loop() -> None:
    machine = alignment(MirrorState.LOG_ALIGNMENT)
    problem = SourceMirrorsRead(None, "loop", 1)
    assert play(machine, problem) == Refused("loop", is_retryable=True)
    agreed = SourceMirrorsRead(LastMirrorEpoch(epoch=3, log_end=9), None, 1)
    assert machine.on(agreed) == [FindSourceLeader(1)]
    assert machine.agreed == LastMirrorEpoch(epoch=3, log_end=9)


@pytest.mark.parametrize(
    ("own", "at_source", "later"),
    [
        (None, (3, 9), (3, 9)),
        ((8, 150), None, (8, 150)),
        ((8, 150), (5, 100), (8, 150)),
        ((5, 100), (8, 150), (8, 150)),
        ((5, 100), (5, 120), (5, 120)),
    ],
)
def test_of_the_stops_on_both_sides_the_later_one_counts(
    own: tuple[int, int] | None, at_source: tuple[int, int] | None, later: tuple[int, int]
) -> None:
    """A mirror stopped and started again asks its source, which last followed us long before."""

    def agreement(told: tuple[int, int] | None) -> LastMirrorEpoch | None:
        return None if told is None else LastMirrorEpoch(epoch=told[0], log_end=told[1])

    machine = alignment(MirrorState.LOG_ALIGNMENT)
    machine.agreed = agreement(own)
    play(machine, SourceMirrorsRead(agreement(at_source), None, 1))
    assert machine.agreed == agreement(later)


def test_an_empty_log_begins_where_the_source_does_without_a_second_look() -> None:
    machine = alignment(MirrorState.LOG_ALIGNMENT)
    step = play(machine, LEADER, read(0, 0), in_range(70, 90))
    assert isinstance(step, list)
    assert isinstance(step[0], RestartAt)
    assert step[0].start == 70


def test_what_did_not_come_from_the_source_is_told_apart_from_what_the_source_deleted() -> None:
    gap = Doubtful("gap", Offset(70))
    following = alignment(MirrorState.MIRRORING, doubted=gap)
    step = play(following, LEADER, read(0, 50, (5, 0)), in_range(70, 90))
    assert isinstance(step, list)
    assert isinstance(step[1], RestartAt)
    assert step[1].ours_from is None
    failing_back = alignment(MirrorState.LOG_ALIGNMENT, doubted=gap)
    failing_back.agreed = LastMirrorEpoch(epoch=3, log_end=40)
    step = play(failing_back, LEADER, read(0, 50, (3, 0), (6, 40)), in_range(70, 90))
    assert isinstance(step, list)
    assert isinstance(step[1], RestartAt)
    assert step[1].ours_from == 40
    scratch = alignment(MirrorState.LOG_ALIGNMENT, doubted=Doubtful("scratch", Offset(70)))
    step = play(scratch, LEADER, read(20, 50, (6, 20)), in_range(70, 90))
    assert isinstance(step, list)
    assert isinstance(step[0], RestartAt)
    assert step[0].ours_from == 20


def test_an_agreement_beyond_the_log_that_was_trimmed_since_restarts_it() -> None:
    """It has everything that the source has, or a failback from here would delete that there."""
    machine = alignment(MirrorState.LOG_ALIGNMENT, doubted=Doubtful("cut", Offset(80)))
    machine.agreed = LastMirrorEpoch(epoch=3, log_end=80)
    step = play(machine, LEADER, read(90, 100, (6, 90)), in_range(0, 200))
    assert isinstance(step, list)
    assert isinstance(step[0], RestartAt)
    assert step[0].start == 0


def test_what_the_source_no_longer_remembers_is_saved_before_a_gap_takes_it() -> None:
    """It lost power while it mirrored us, wrote other records there, and deleted those."""
    machine = alignment(MirrorState.LOG_ALIGNMENT, doubted=Doubtful("gap", Offset(90)))
    machine.agreed = LastMirrorEpoch(epoch=3, log_end=16)
    told = SourceMirrorsRead(LastMirrorEpoch(epoch=3, log_end=14), None, 1)
    log = read(0, 60, (3, 0), (6, 16))
    assert play(machine, told, LEADER, log, in_range(90, 200)) == [
        NoteGap(Offset(16), Offset(90), "the source's log starts at 90, ours ended at 16"),
        RestartAt(Offset(90), "the source's log starts at 90, ours ended at 16", 1, Offset(14)),
    ]


def test_an_epoch_in_which_records_were_written_here_is_over_before_they_are_cut() -> None:
    """Whoever mirrors us has them: others in the same epoch would pass for the same ones."""
    machine = alignment(MirrorState.LOG_ALIGNMENT, own=20)
    machine.agreed = LastMirrorEpoch(epoch=5, log_end=50)
    assert play(machine, LEADER, read(0, 90, (5, 0), (20, 50))) == [BumpEpoch(LeaderEpoch(21))]
    assert machine.again() == [BumpEpoch(LeaderEpoch(21))]
    assert machine.on(LeaderEpochSeen(LeaderEpoch(21))) == [ReadLog(None, 1)]
    assert machine.on(read(0, 90, (5, 0), (20, 50))) == [
        AskSourceRange(BrokerId(1), LeaderEpoch(5), 1)
    ]
    # Only a start cuts what was written here.
    follower = alignment(MirrorState.MIRRORING, own=20)
    assert isinstance(play(follower, LEADER, read(0, 90, (5, 0), (20, 50))), list)
    assert not follower.is_waiting_for_epoch


def test_what_would_cost_records_is_doubted_first() -> None:
    machine = alignment(MirrorState.MIRRORING)
    assert play(machine, LEADER, read(0, 50, (5, 0)), in_range(70, 90)) == Doubtful(
        "gap", Offset(70)
    )


def test_an_empty_log_at_the_sources_end_is_aligned() -> None:
    machine = alignment(MirrorState.MIRRORING)
    step = play(machine, LEADER, read(90, 90), in_range(70, 90))
    assert isinstance(step, Aligned)
    assert (step.node, step.local.end) == (1, 90)


def test_events_that_answer_nothing_change_nothing() -> None:
    machine = alignment(MirrorState.MIRRORING)
    assert play(machine, TimeCame()) == []
    assert machine.on(LeaderEpochSeen(LeaderEpoch(30))) == []
    assert play(machine, LEADER) == [ReadLog(None, 1)]


def test_of_two_answers_the_one_that_costs_less_is_acted_on() -> None:
    machine = alignment(MirrorState.MIRRORING, doubted=Doubtful("gap", Offset(60)))
    step = play(machine, LEADER, read(0, 50, (5, 0)), in_range(70, 90))
    assert isinstance(step, list)
    assert [type(effect) for effect in step] == [NoteGap, RestartAt]
    assert isinstance(step[1], RestartAt)
    assert step[1].start == 60
    cut = alignment(MirrorState.ULE_RECOVERY, doubted=Doubtful("cut", Offset(45)))
    ended = EpochEndFound(LeaderEpoch(4), LeaderEpoch(4), Offset(40), 1)
    step = play(cut, LEADER, read(0, 50, (4, 0)), in_range(0, 90), ended)
    assert isinstance(step, list)
    assert isinstance(step[0], TruncateTo)
    assert step[0].end == 45


def test_a_source_that_tells_no_leader_epochs_has_not_gone_back() -> None:
    machine = alignment(MirrorState.MIRRORING)
    nobody = SourceLeaderFound(BrokerId(1), LeaderEpoch(-1), 1)
    ended = EpochEndFound(LeaderEpoch(4), LeaderEpoch(-1), Offset(-1), 1)
    step = play(machine, nobody, read(0, 50, (4, 0)), in_range(0, 90), ended)
    assert isinstance(step, Aligned)


def test_an_answer_counts_once_and_only_while_it_is_waited_for() -> None:
    machine = alignment(MirrorState.ULE_RECOVERY, doubted=Doubtful("cut", Offset(40)))
    log = read(0, 100, (4, 0), (5, 50))
    asked = AskEpochEnd(BrokerId(1), LeaderEpoch(5), LeaderEpoch(5), 1)
    assert play(machine, LEADER, log, in_range(0, 90)) == [asked]
    for late in (LEADER, log, in_range(0, 90), SourceMirrorsRead(None, None, 1), StepDone(1)):
        assert machine.on(late) == []
    assert machine.on(EpochEndFound(LeaderEpoch(4), LeaderEpoch(4), Offset(40), 1)) == []
    found = EpochEndFound(LeaderEpoch(5), LeaderEpoch(5), Offset(40), 1)
    step = machine.on(found)
    assert isinstance(step, list)
    assert isinstance(step[0], RestartAt | TruncateTo)
    assert machine.on(found) == []


def test_a_source_below_the_epoch_that_an_emptied_log_remembers_can_be_followed() -> None:
    emptied = LogRead(LogFacts(Offset(1), Offset(1), (EpochStart(LeaderEpoch(9), Offset(1)),)), 1)
    machine = alignment(MirrorState.MIRRORING)
    assert isinstance(play(machine, LEADER, emptied, in_range(0, 44)), Aligned)
