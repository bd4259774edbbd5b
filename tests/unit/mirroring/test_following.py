"""From a fetched answer to what is written; the transcripts tell the rest."""

from dataclasses import replace

from support.mirror_player import batch
from twinlog.mirroring.alignment import LogFacts, SourceFacts
from twinlog.mirroring.batches import identity_of
from twinlog.mirroring.beginning import Beginning
from twinlog.mirroring.conclusions import Aligned
from twinlog.mirroring.effects import Append, BumpEpoch, Effect, FetchFrom, RaiseLogStart
from twinlog.mirroring.events import Fetched
from twinlog.mirroring.following import BadBatch, EpochTooHigh, Following, MetadataIsOld
from twinlog.mirroring.lag import LagInputs
from twinlog.model.epochs import EpochStart
from twinlog.model.ids import NO_EPOCH, BrokerId, LeaderEpoch, Offset


def following(*, end: int = 10, source_epoch: int = 5) -> Following:
    return Following(
        node=BrokerId(1),
        source_epoch=LeaderEpoch(source_epoch),
        turn=1,
        log_start=Offset(0),
        log_end=Offset(end),
        last_epoch=LeaderEpoch(0),
        lag=LagInputs(),
    )


def fetched(raw: bytes, *, offset: int = 10, start: int = 0) -> Fetched:
    return Fetched(Offset(offset), Offset(100), Offset(start), raw, 1)


def taken(machine: Following, answer: Fetched, *, own: int = 20) -> list[Effect]:
    effects = machine.take(answer, LeaderEpoch(own), 0)
    assert isinstance(effects, list)
    return effects


def test_bytes_are_passed_on_without_a_copy() -> None:
    raw = memoryview(batch(10, 19, 1))
    effects = following().take(fetched(raw), LeaderEpoch(20), 0)  # type: ignore[arg-type]
    assert isinstance(effects, list)
    append, fetch = effects
    assert isinstance(append, Append)
    assert append.batches is raw
    assert fetch == FetchFrom(BrokerId(1), LeaderEpoch(5), Offset(20), LeaderEpoch(1), 1)


def test_a_cut_batch_is_left_out_of_what_is_written() -> None:
    whole = batch(10, 19, 1)
    effects = following().take(fetched(whole + batch(20, 29, 1)[:-3]), LeaderEpoch(20), 0)
    assert isinstance(effects, list)
    assert isinstance(effects[0], Append)
    assert bytes(effects[0].batches) == whole


def test_a_batch_of_an_epoch_below_the_last_one_here_is_of_another_history() -> None:
    machine = following()
    machine.last_epoch = LeaderEpoch(3)
    obstacle = machine.take(fetched(batch(10, 19, 2)), LeaderEpoch(20), 0)
    assert isinstance(obstacle, BadBatch)
    assert obstacle.offset == 10
    assert "leader epoch 2 is below 3" in obstacle.why


def test_an_answer_to_an_older_position_is_passed_over() -> None:
    assert following().take(fetched(batch(0, 9, 1), offset=0), LeaderEpoch(20), 0) == []


def test_the_log_start_follows_the_source_but_not_beyond_what_is_here() -> None:
    machine = following()
    assert RaiseLogStart(Offset(7)) in taken(machine, fetched(b"", start=7))
    assert machine.log_start == 7
    assert machine.take(fetched(b"", start=50), LeaderEpoch(20), 0) == [machine.fetch()]


def test_our_epoch_is_raised_ahead_once_and_asked_for_again_only_for_more() -> None:
    machine = following(source_epoch=9)
    first = taken(machine, fetched(batch(10, 19, 8)), own=10)
    again = taken(machine, fetched(batch(20, 29, 8), offset=20), own=10)
    assert BumpEpoch(LeaderEpoch(18)) in first
    assert not any(isinstance(effect, BumpEpoch) for effect in again)


def test_nothing_is_written_past_an_obstacle() -> None:
    machine = following()
    assert machine.take(fetched(batch(10, 19, 21)), LeaderEpoch(20), 0) == EpochTooHigh(
        LeaderEpoch(21)
    )
    assert isinstance(machine.take(fetched(batch(10, 19, 6)), LeaderEpoch(20), 0), MetadataIsOld)
    early = machine.take(fetched(batch(5, 12, 1)), LeaderEpoch(20), 0)
    assert isinstance(early, BadBatch)
    assert machine.log_end == 10


def test_a_source_that_tells_no_leader_epochs_is_followed_all_the_same() -> None:
    machine = following(source_epoch=-1)
    assert isinstance(taken(machine, fetched(batch(10, 19, 8)))[0], Append)


def test_what_the_source_has_deleted_goes_before_anything_comes() -> None:
    """It may be of a history that the source has lost: it never stands beside the present one."""
    machine = following(end=48, source_epoch=6)
    effects = taken(machine, fetched(batch(48, 55, 6), offset=48, start=48))
    assert [type(effect) for effect in effects] == [RaiseLogStart, Append, FetchFrom]


def test_a_log_that_was_emptied_is_not_compared_by_the_epoch_it_remembers() -> None:
    """The source would call them parted, and the next comparison would not, for ever."""
    facts = LogFacts(Offset(21), Offset(21), (EpochStart(LeaderEpoch(12), Offset(21)),))
    source = SourceFacts(LeaderEpoch(22), Offset(21), Offset(46))
    machine = Following.of(Aligned(BrokerId(1), source, facts), 1, LagInputs(), Beginning(), 9)
    assert machine.fetch().last_fetched_epoch == NO_EPOCH
    assert (machine.lag.records, machine.lag.answered_at_ms) == (25, 9)


OURS = batch(4, 9, 0)


def to_meet(raw: bytes = OURS) -> Following:
    """Give one whose log ends at 10, with that batch, and was not seen at the source yet."""
    machine = following()
    machine.to_meet = identity_of(raw)
    return machine


def test_the_last_batch_here_is_fetched_once_more_and_not_written_again() -> None:
    machine = to_meet()
    assert machine.fetch().offset == 9
    new = batch(10, 19, 1)
    append, fetch = taken(machine, fetched(OURS + new, offset=9))
    assert isinstance(append, Append)
    assert bytes(append.batches) == new
    assert isinstance(fetch, FetchFrom)
    assert (fetch.offset, fetch.last_fetched_epoch) == (20, 1)
    assert machine.lag.destination_offset == 20


def test_a_level_log_goes_on_at_its_end_once_its_last_batch_was_met() -> None:
    machine = to_meet()
    assert taken(machine, fetched(OURS, offset=9)) == [machine.fetch()]
    assert machine.fetch().offset == 10


def test_the_header_is_enough_to_know_a_batch_by() -> None:
    machine = to_meet()
    assert taken(machine, fetched(OURS[:61], offset=9)) == [machine.fetch()]
    assert machine.fetch().offset == 10


def test_another_batch_where_the_log_ends_is_another_topic_s() -> None:
    for other in (batch(4, 10, 0), batch(4, 9, 1), batch(6, 9, 0), batch(9, 15, 0)):
        machine = to_meet()
        obstacle = machine.take(fetched(other + batch(16, 19, 1), offset=9), LeaderEpoch(20), 0)
        assert isinstance(obstacle, BadBatch)
        for words in ("ends with offsets 4 to 9", "recreated", "delete the topic here"):
            assert words in obstacle.why
        assert machine.log_end == 10


def test_a_batch_that_a_cleaner_has_removed_is_not_waited_for() -> None:
    machine = to_meet()
    append, _ = taken(machine, fetched(batch(12, 19, 1), offset=9))
    assert isinstance(append, Append)
    assert machine.log_end == 20


def test_it_is_asked_for_again_while_the_source_does_not_show_it() -> None:
    machine = to_meet()
    answer = replace(fetched(OURS[:60], offset=9, start=3), high_watermark=Offset(9))
    assert taken(machine, answer) == [RaiseLogStart(Offset(3)), machine.fetch()]
    assert machine.fetch().offset == 9
    assert machine.lag.source_offset == 9


def test_an_old_message_format_is_named_also_where_the_last_batch_should_be() -> None:
    obstacle = to_meet().take(fetched(batch(9, 9, 0, magic=1), offset=9), LeaderEpoch(20), 0)
    assert isinstance(obstacle, BadBatch)
    assert "message format v1" in obstacle.why


def test_a_last_batch_that_the_source_has_deleted_cannot_be_met() -> None:
    facts = LogFacts(Offset(0), Offset(10), last_batch=identity_of(OURS))
    for start, position in ((9, 9), (10, 10)):
        source = SourceFacts(LeaderEpoch(5), Offset(start), Offset(20))
        aligned = Aligned(BrokerId(1), source, facts)
        machine = Following.of(aligned, 1, LagInputs(), Beginning(), 9)
        assert machine.fetch().offset == position
