"""Where a partition begins, and what of it is written down; the transcripts tell the whole."""

import pytest

from twinlog.config.mirror_start import start_timestamp_ms
from twinlog.mirroring.alignment import LogFacts, SourceFacts
from twinlog.mirroring.beginning import Beginning
from twinlog.mirroring.effects import SaveStart
from twinlog.mirroring.policy import StartSpec
from twinlog.mirroring.records import PartitionStart
from twinlog.mirroring.states import MirrorState
from twinlog.model.ids import LeaderEpoch, Offset

SOURCE = SourceFacts(LeaderEpoch(5), Offset(100), Offset(300))
NOTED = PartitionStart(spec="latest", offset=250, skipped_from=90, leader_epoch=4)


def spec(words: str) -> StartSpec:
    return StartSpec(words, start_timestamp_ms(words))


@pytest.mark.parametrize(
    ("words", "place"), [("earliest", 100), ("latest", 300), ("2026-01-31T00:00:00Z", None)]
)
def test_a_beginning_is_an_end_of_the_sources_log_or_has_to_be_asked_for(
    words: str, place: int | None
) -> None:
    assert Beginning().place(spec(words), SOURCE) == place


def test_what_is_written_down_counts_while_the_operator_wants_the_same() -> None:
    beginning = Beginning(NOTED)
    assert beginning.place(spec("latest"), SOURCE) == 250
    assert beginning.place(spec("earliest"), SOURCE) == 100
    again = beginning.note(spec("latest"), Offset(250), SOURCE, 1)
    assert again == SaveStart(NOTED, 1), "a write of a life before may have landed since"
    beginning.saved(NOTED)
    assert beginning.note(spec("latest"), Offset(250), SOURCE, 1) is None
    assert beginning.note(spec("earliest"), Offset(100), SOURCE, 1) == SaveStart(None, 1)


def test_a_source_that_lost_its_tail_is_followed_from_its_end() -> None:
    short = SourceFacts(LeaderEpoch(6), Offset(100), Offset(240))
    beginning = Beginning(NOTED)
    assert beginning.place(spec("latest"), short) == 240
    note = beginning.note(spec("latest"), Offset(240), short, 1)
    assert note is not None
    assert note.start == PartitionStart(spec="latest", offset=240, skipped_from=90, leader_epoch=4)


def test_everything_from_the_earliest_record_on_needs_no_note() -> None:
    assert Beginning().note(spec("earliest"), Offset(100), SOURCE, 1) is None


def test_the_true_begin_is_noted_once_when_a_batch_comes_whole() -> None:
    beginning = Beginning(NOTED)
    (note,) = beginning.begun_at(Offset(248), 1)
    assert note.start == PartitionStart(spec="latest", offset=248, skipped_from=90, leader_epoch=4)
    assert beginning.begun_at(Offset(248), 1) == []
    assert beginning.begun_at(Offset(260), 1) == []


def test_a_start_after_a_stop_is_another_one() -> None:
    beginning = Beginning(NOTED)
    beginning.step(MirrorState.FAILED, MirrorState.LOG_ALIGNMENT)
    assert beginning.place(spec("latest"), SOURCE) == 250
    beginning.step(MirrorState.STOPPED, MirrorState.LOG_ALIGNMENT)
    assert beginning.place(spec("latest"), SOURCE) == 300
    note = beginning.note(spec("latest"), Offset(300), SOURCE, 1)
    assert note is not None
    assert note.start == PartitionStart(spec="latest", offset=300, skipped_from=100, leader_epoch=5)


def test_what_the_source_never_had_of_our_log_is_kept_and_written_down_once() -> None:
    log = LogFacts(Offset(0), Offset(90))
    beginning = Beginning()
    note = beginning.keep_below(Offset(40), log, 1)
    assert note == SaveStart(PartitionStart(own_below=40), 1)
    beginning.noted = note.start
    assert beginning.own_below == 40
    assert beginning.keep_below(Offset(40), log, 1) is None
    for nothing in (None, Offset(0), Offset(91)):
        assert Beginning().keep_below(nothing, log, 1) is None
    assert beginning.note(spec("earliest"), Offset(100), SOURCE, 1) == SaveStart(None, 1)
