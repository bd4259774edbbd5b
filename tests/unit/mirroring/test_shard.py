"""The mirror coordinator: fencing, illegal steps, tombstones, and replay as the only writer."""

from dataclasses import replace
from uuid import UUID

import pytest

from twinlog.coordination.outcome import Outcome
from twinlog.mirroring.records import (
    LastMirrorEpoch,
    MirrorPartition,
    PartitionStart,
    RecordLoss,
)
from twinlog.mirroring.shard import LOSSES_KEPT_MAX, MirrorShard, WriteState
from twinlog.mirroring.states import MirrorState
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import LeaderEpoch

OF = MirrorPartition(mirror="m", topic_id=UUID(int=7), partition=0)
EPOCH = LeaderEpoch(3)
ALIGN = WriteState(OF, MirrorState.LOG_ALIGNMENT, EPOCH, expected_state_epoch=0)


def commit(shard: MirrorShard, outcome: Outcome[object]) -> None:
    for record in outcome.records:
        shard.replay(record.key, record.value)


def in_state(*states: MirrorState) -> MirrorShard:
    shard = MirrorShard()
    for state in states:
        commit(shard, shard.write_state(WriteState(OF, state, EPOCH)))
    return shard


STOPPING = (MirrorState.LOG_ALIGNMENT, MirrorState.MIRRORING, MirrorState.STOPPING)


def test_a_state_changes_only_when_its_record_is_replayed() -> None:
    shard = MirrorShard()
    outcome = shard.write_state(ALIGN)
    assert outcome.reply == 1
    assert shard.known(OF).mirror_state == MirrorState.UNKNOWN
    commit(shard, outcome)
    assert shard.known(OF).mirror_state == MirrorState.LOG_ALIGNMENT


def test_an_illegal_step_is_an_error_and_never_looks_like_success() -> None:
    shard = in_state(MirrorState.LOG_ALIGNMENT)
    with pytest.raises(ApiError, match="LOG_ALIGNMENT and cannot become PAUSED") as caught:
        shard.write_state(WriteState(OF, MirrorState.PAUSED, EPOCH))
    assert caught.value.code == ErrorCode.INVALID_CLUSTER_MIRROR_STATE


def test_an_older_leader_is_fenced() -> None:
    shard = in_state(MirrorState.LOG_ALIGNMENT)
    with pytest.raises(ApiError) as caught:
        shard.write_state(WriteState(OF, MirrorState.MIRRORING, LeaderEpoch(2)))
    assert caught.value.code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_leader_without_an_epoch_is_not_checked_and_lowers_nothing() -> None:
    shard = in_state(MirrorState.LOG_ALIGNMENT)
    commit(shard, shard.write_state(WriteState(OF, MirrorState.MIRRORING)))
    state = shard.known(OF).state
    assert state is not None
    assert state.leader_epoch == EPOCH


def test_a_writer_that_decided_from_an_older_state_is_fenced() -> None:
    shard = in_state(MirrorState.LOG_ALIGNMENT)
    with pytest.raises(ApiError) as caught:
        shard.write_state(replace(ALIGN, expected_state_epoch=0))
    assert caught.value.code == ErrorCode.FENCED_STATE_EPOCH


def test_the_last_mirror_epoch_belongs_to_stopping() -> None:
    shard = in_state(MirrorState.LOG_ALIGNMENT, MirrorState.MIRRORING)
    last = LastMirrorEpoch(epoch=2, log_end=50)
    with pytest.raises(ApiError, match="is MIRRORING"):
        shard.write_last_mirror_epoch(OF, EPOCH, last)
    commit(shard, shard.write_state(WriteState(OF, MirrorState.STOPPING, EPOCH)))
    commit(shard, shard.write_last_mirror_epoch(OF, EPOCH, last))
    assert shard.known(OF).last_mirror_epoch == last


def test_mirroring_again_deletes_the_last_mirror_epoch_in_the_same_batch() -> None:
    shard = in_state(*STOPPING)
    last = LastMirrorEpoch(epoch=2, log_end=50)
    commit(shard, shard.write_last_mirror_epoch(OF, EPOCH, last))
    for state in (MirrorState.STOPPED, MirrorState.LOG_ALIGNMENT):
        commit(shard, shard.write_state(WriteState(OF, state, EPOCH)))
    assert shard.known(OF).last_mirror_epoch == last
    outcome = shard.write_state(WriteState(OF, MirrorState.MIRRORING, EPOCH))
    assert [record.value is None for record in outcome.records] == [False, True]
    commit(shard, outcome)
    assert shard.known(OF).last_mirror_epoch is None


def test_a_failure_keeps_its_cause_and_time_and_another_state_drops_the_time() -> None:
    shard = in_state(MirrorState.LOG_ALIGNMENT)
    write = WriteState(
        OF, MirrorState.FAILED, EPOCH, error="why", retry_attempt=2, failed_at_ms=1_000
    )
    commit(shard, shard.write_state(write))
    state = shard.known(OF).state
    assert state is not None
    assert (state.error, state.retry_attempt, state.failed_at_ms) == ("why", 2, 1_000)
    again = replace(write, state=MirrorState.LOG_ALIGNMENT)
    commit(shard, shard.write_state(again))
    state = shard.known(OF).state
    assert state is not None
    assert state.failed_at_ms == 0


def test_reading_gives_every_partition_asked_for_in_order() -> None:
    shard = in_state(MirrorState.LOG_ALIGNMENT)
    other = MirrorPartition(mirror="m", topic_id=UUID(int=7), partition=1)
    reply = shard.read_states([other, OF]).reply
    assert isinstance(reply, tuple)
    assert [known.mirror_state for known in reply] == [
        MirrorState.UNKNOWN,
        MirrorState.LOG_ALIGNMENT,
    ]


def test_deleting_a_mirror_leaves_tombstones_of_both_records_and_of_no_other_mirror() -> None:
    shard = in_state(*STOPPING)
    commit(shard, shard.write_last_mirror_epoch(OF, EPOCH, LastMirrorEpoch(epoch=2, log_end=50)))
    other = MirrorPartition(mirror="other", topic_id=UUID(int=7), partition=0)
    commit(shard, shard.write_state(WriteState(other, MirrorState.LOG_ALIGNMENT, EPOCH)))
    outcome = shard.delete_mirror("m")
    assert outcome.reply == 1
    assert [record.value for record in outcome.records] == [None, None]
    commit(shard, outcome)
    everything = shard.read_all().reply
    assert isinstance(everything, tuple)
    assert [known.of for known in everything] == [other]


def test_what_is_known_of_a_topic_that_is_gone_goes_in_whatever_mirror_it_was() -> None:
    shard = in_state(*STOPPING, MirrorState.STOPPED)
    other_mirror = MirrorPartition(mirror="other", topic_id=OF.topic_id, partition=1)
    other_topic = MirrorPartition(mirror=OF.mirror, topic_id=UUID(int=99), partition=0)
    for of in (other_mirror, other_topic):
        commit(shard, shard.write_state(WriteState(of, MirrorState.LOG_ALIGNMENT, EPOCH)))
    commit(shard, shard.delete_topics(lambda topic_id: topic_id == OF.topic_id))
    everything = shard.read_all().reply
    assert isinstance(everything, tuple)
    assert [known.of for known in everything] == [other_topic]


def test_records_of_unknown_types_are_passed_over() -> None:
    shard = MirrorShard()
    shard.replay(b"\0\x63", b"")
    shard.on_loaded(0)
    assert shard.timers.next_ms is None
    assert shard.read_all().reply == ()


def loss(first: int, kind: str = "truncation", saved_to: str | None = None) -> RecordLoss:
    return RecordLoss(
        kind=kind, first=first, end=first + 5, cause="why", at_ms=first, saved_to=saved_to
    )


def test_losses_are_known_once_they_are_replayed_and_the_first_ones_go_first() -> None:
    shard = in_state(MirrorState.LOG_ALIGNMENT)
    outcome = shard.write_losses(OF, EPOCH, (loss(0), loss(1)))
    assert outcome.reply == (loss(0), loss(1))
    assert shard.known(OF).losses == ()
    commit(shard, outcome)
    assert shard.known(OF).losses == (loss(0), loss(1))
    for first in range(2, LOSSES_KEPT_MAX + 3):
        commit(shard, shard.write_losses(OF, EPOCH, (loss(first),)))
    assert [one.first for one in shard.known(OF).losses] == list(range(3, LOSSES_KEPT_MAX + 3))


def test_a_loss_that_is_told_again_after_a_kill_is_written_once() -> None:
    shard = in_state(MirrorState.LOG_ALIGNMENT)
    told = (loss(0, "gap"), loss(0, "restart", "file"))
    commit(shard, shard.write_losses(OF, EPOCH, told))
    again = shard.write_losses(OF, EPOCH, tuple(replace(one, at_ms=99) for one in told))
    assert (again.records, again.reply) == ((), ())
    other = loss(0, "restart", "another file")
    assert shard.write_losses(OF, EPOCH, (other,)).reply == (other,)


def test_an_older_leader_loses_nothing() -> None:
    shard = in_state(MirrorState.LOG_ALIGNMENT)
    with pytest.raises(ApiError) as caught:
        shard.write_losses(OF, LeaderEpoch(2), (loss(0),))
    assert caught.value.code == ErrorCode.FENCED_LEADER_EPOCH


def test_losses_outlive_a_stop_and_go_with_their_mirror() -> None:
    shard = in_state(*STOPPING)
    commit(shard, shard.write_losses(OF, EPOCH, (loss(0),)))
    commit(shard, shard.write_state(WriteState(OF, MirrorState.STOPPED, EPOCH)))
    assert shard.known(OF).losses == (loss(0),)
    commit(shard, shard.delete_mirror("m"))
    assert shard.read_all().reply == ()


BEGAN = PartitionStart(spec="latest", offset=300, skipped_from=100, leader_epoch=5)


def test_where_a_partition_began_is_known_once_it_is_replayed_and_can_be_deleted() -> None:
    shard = in_state(MirrorState.LOG_ALIGNMENT)
    commit(shard, shard.write_start(OF, EPOCH, BEGAN))
    assert shard.known(OF).start == BEGAN
    commit(shard, shard.write_start(OF, EPOCH, None))
    assert shard.known(OF).start is None


def test_an_older_leader_begins_nowhere() -> None:
    shard = in_state(MirrorState.LOG_ALIGNMENT)
    with pytest.raises(ApiError) as caught:
        shard.write_start(OF, LeaderEpoch(2), BEGAN)
    assert caught.value.code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_start_after_a_stop_is_another_one_in_the_same_batch() -> None:
    shard = in_state(MirrorState.LOG_ALIGNMENT)
    commit(shard, shard.write_start(OF, EPOCH, BEGAN))
    for state in (MirrorState.STOPPING, MirrorState.STOPPED):
        commit(shard, shard.write_state(WriteState(OF, state, EPOCH)))
        assert shard.known(OF).start == BEGAN
    outcome = shard.write_state(WriteState(OF, MirrorState.LOG_ALIGNMENT, EPOCH))
    assert len(outcome.records) == 2
    commit(shard, outcome)
    assert shard.known(OF).start == replace(BEGAN, is_over=True)
    commit(shard, shard.delete_mirror("m"))
    assert shard.known(OF).start is None
