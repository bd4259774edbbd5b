"""The steps of a stop, each decided from what is durable; the transcripts tell the whole."""

from twinlog.mirroring.alignment import LogFacts
from twinlog.mirroring.effects import (
    AppendAbortMarkers,
    AppendPidReset,
    BumpEpoch,
    Effect,
    SaveLastMirrorEpoch,
)
from twinlog.mirroring.events import (
    LastMirrorEpochSaved,
    LogCommitted,
    StepDone,
    StepFailed,
    TimeCame,
)
from twinlog.mirroring.records import LastMirrorEpoch, PartitionStart
from twinlog.mirroring.stopping import AllWritten, LookAgain, StopFailed, Stopping
from twinlog.model.epochs import EpochStart
from twinlog.model.ids import NO_EPOCH, LeaderEpoch, Offset

SAVED = LastMirrorEpoch(epoch=3, log_end=100)


def step(
    saved: LastMirrorEpoch | None, own: int, *, open_count: int = 0, has_reset: bool = False
) -> Effect | None:
    epochs = (EpochStart(LeaderEpoch(3), Offset(0)),)
    facts = LogFacts(Offset(0), Offset(100), epochs, open_count, has_reset)
    return Stopping(1, saved, was_mirroring=True).next_step(facts, LeaderEpoch(own))


def test_the_steps_come_in_their_order() -> None:
    saving = SaveLastMirrorEpoch(LeaderEpoch(3), Offset(100), LeaderEpoch(4))
    assert step(None, 3, open_count=1) == saving
    assert step(SAVED, 3, open_count=1) == BumpEpoch(LeaderEpoch(4))
    assert step(SAVED, 4, open_count=1) == AppendAbortMarkers(1)
    assert step(SAVED, 4) == AppendPidReset(1)
    assert step(SAVED, 4, has_reset=True) is None


def test_a_last_mirror_epoch_beyond_the_log_is_written_anew() -> None:
    beyond = LastMirrorEpoch(epoch=3, log_end=200)
    saving = SaveLastMirrorEpoch(LeaderEpoch(3), Offset(100), LeaderEpoch(5))
    assert step(beyond, 4) == saving


def test_two_copies_that_are_stopped_at_once_do_not_go_on_in_one_epoch() -> None:
    facts = LogFacts(Offset(0), Offset(100), (EpochStart(LeaderEpoch(3), Offset(0)),))
    own = LeaderEpoch(13)
    saved = [
        Stopping(1, None, was_mirroring=True, chance=chance).next_step(facts, own)
        for chance in (0.25, 0.75)
    ]
    assert [one.own_from for one in saved if isinstance(one, SaveLastMirrorEpoch)] == [2514, 7514]


def test_a_stop_that_was_killed_goes_on_in_the_epoch_it_had_chosen() -> None:
    chosen = LastMirrorEpoch(epoch=3, log_end=100, own_from=2514)
    assert step(chosen, 14) == BumpEpoch(LeaderEpoch(2514)), "its start alone is not the leap"
    assert step(chosen, 2514) == AppendPidReset(1)


def test_what_was_done_is_looked_at_again_with_what_is_durable_by_then() -> None:
    stopping = Stopping(1, None, was_mirroring=True)
    own = LeaderEpoch(4)
    assert stopping.on(LastMirrorEpochSaved(SAVED), own) == LookAgain(SAVED)
    assert stopping.on(StepDone(1), own) == LookAgain(None)
    assert stopping.on(StepFailed("the disk is full", 1), own) == StopFailed("the disk is full")
    assert stopping.on(LogCommitted(1), own) == AllWritten()
    assert stopping.on(TimeCame(), own) is None


def test_what_began_where_the_source_ended_and_got_nothing_agrees_with_it_up_to_there() -> None:
    began = PartitionStart(spec="latest", offset=300, skipped_from=0, leader_epoch=5)
    empty = LogFacts(Offset(300), Offset(300))
    own = LeaderEpoch(9)
    stopping = Stopping(1, None, was_mirroring=True, began=began)
    leap = LeaderEpoch(10)
    assert stopping.next_step(empty, own) == SaveLastMirrorEpoch(LeaderEpoch(5), Offset(300), leap)
    elsewhere = LogFacts(Offset(310), Offset(310))
    assert stopping.next_step(elsewhere, own) == SaveLastMirrorEpoch(NO_EPOCH, Offset(310), leap)
    never = Stopping(1, None, was_mirroring=False, began=began)
    assert never.next_step(empty, own) == SaveLastMirrorEpoch(NO_EPOCH, Offset(300), leap)
