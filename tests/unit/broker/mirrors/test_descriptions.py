"""What is told of a mirrored partition; whole answers are tested with the handler."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from twinlog.broker.mirror_board import MirrorStatus
from twinlog.broker.mirrors.descriptions import (
    describe_mirror,
    describe_partition,
    keys_of,
    state_of,
)
from twinlog.broker.partitions import Partitions
from twinlog.cluster.facts import MirrorFact, PartitionFact, TopicFact
from twinlog.mirroring.lag import LagInputs
from twinlog.mirroring.records import (
    LastMirrorEpoch,
    MirrorPartition,
    PartitionStart,
    PartitionState,
    RecordLoss,
)
from twinlog.mirroring.shard import Known
from twinlog.mirroring.states import MirrorState
from twinlog.model.ids import BrokerId, LeaderEpoch, Offset, TopicId, TopicName, TopicPartition
from twinlog.wire.messages.mirrors import (
    DescribedLoss,
    DescribedMirrorPartition,
    DescribedMirrorTask,
    DescribedStart,
)

ME = BrokerId(1)
TOPIC = TopicFact(
    TopicName("t"), TopicId(UUID(int=7)), (PartitionFact(ME, LeaderEpoch(0), (ME,), (ME,)),)
)
KEY = MirrorPartition(mirror="m", topic_id=UUID(int=7), partition=0)


class AtWork:
    """A partition that is mirrored here."""

    def __init__(self, state: MirrorState, trouble: str | None = None) -> None:
        self.state = state
        self.trouble = trouble
        self.is_aligned = state == MirrorState.MIRRORING
        self.lag = LagInputs()


@pytest.fixture
def broker() -> Any:
    clock = SimpleNamespace(now_ms=lambda: 2_500)
    return SimpleNamespace(partitions=Partitions(), clock=clock)


def told(
    broker: Any, at_work: AtWork | None, state: PartitionState | None = None
) -> DescribedMirrorPartition:
    status = MirrorStatus()
    status.task_errors |= {"topics": "cannot list", "fetch from source broker 1": "gone"}
    if at_work is not None:
        status.partitions[TopicPartition(TopicName("t"), 0)] = at_work
    known = None if state is None else Known(KEY, state, LastMirrorEpoch(epoch=3, log_end=9))
    return describe_partition(broker, TOPIC, known, status, 0)


def test_a_partition_nobody_knows_is_unknown(broker: Any) -> None:
    found = told(broker, None)
    assert (found.state_value, found.source_offset, found.destination_offset) == ("UNKNOWN", -1, -1)
    assert found.error_message is None


def test_offsets_are_those_of_the_last_answer(broker: Any) -> None:
    at_work = AtWork(MirrorState.MIRRORING)
    at_work.lag.answered(Offset(50), Offset(40), 0)
    found = told(broker, at_work, PartitionState(state=3))
    assert (found.source_offset, found.destination_offset) == (50, 40)
    assert (found.last_mirror_epoch, found.last_mirror_offset) == (3, 9)


def test_what_the_source_told_before_a_failure_is_told_until_it_is_asked_again(
    broker: Any,
) -> None:
    at_work = AtWork(MirrorState.MIRRORING)
    at_work.lag.appended(10, 500)
    at_work.lag.answered(Offset(50), Offset(50), 1_000)
    at_work.lag.doubt_source()
    offsets = {
        state: told(broker, at_work, PartitionState(state=state)).source_offset
        for state in (MirrorState.FAILED, MirrorState.LOG_ALIGNMENT, MirrorState.MIRRORING)
    }
    assert list(offsets.values()) == [50, -1, -1]
    assert told(broker, at_work, PartitionState(state=MirrorState.MIRRORING)).lag_bytes == -1
    at_work.lag.answered(Offset(70), Offset(50), 2_000)
    found = told(broker, at_work, PartitionState(state=MirrorState.MIRRORING))
    assert (found.source_offset, found.lag_bytes) == (70, 1_000)


def test_lag_is_told_in_bytes_and_time_once_it_is_known(broker: Any) -> None:
    at_work = AtWork(MirrorState.MIRRORING)
    found = told(broker, at_work)
    assert (found.lag_bytes, found.lag_ms) == (-1, -1)
    at_work.lag.appended(10, 500)
    at_work.lag.answered(Offset(50), Offset(40), 1_000)
    found = told(broker, at_work)
    assert (found.lag_bytes, found.lag_ms) == (500, 1_500)
    assert (told(broker, None).lag_bytes, told(broker, None).lag_ms) == (-1, -1)
    at_work.state = MirrorState.STOPPED
    assert told(broker, at_work).lag_ms == -1


def test_the_error_is_the_partitions_own_before_its_sources(broker: Any) -> None:
    failed = PartitionState(state=8, error="corrupt", retry_attempt=2)
    found = told(broker, AtWork(MirrorState.FAILED), failed)
    assert (found.error_message, found.retry_attempt) == ("corrupt", 2)
    waiting = AtWork(MirrorState.MIRRORING, trouble="no leader")
    assert told(broker, waiting, PartitionState(state=3)).error_message == "no leader"
    dark = AtWork(MirrorState.MIRRORING)
    assert told(broker, dark, PartitionState(state=3)).error_message == "gone"
    stopped = AtWork(MirrorState.STOPPED)
    assert told(broker, stopped, PartitionState(state=7)).error_message is None


def test_tasks_are_told_with_what_hinders_them_or_why_they_have_nothing_to_do(
    broker: Any,
) -> None:
    status = MirrorStatus()
    status.task_errors |= {"topics": None, "acls": None, "group offsets": "not allowed"}
    status.task_notes |= {"acls": "the source has no authorizer", "group offsets": "no more"}
    broker.facts = SimpleNamespace(image=SimpleNamespace(topics_of_mirror=lambda name: []))
    broker.mirrors = SimpleNamespace(status_of=lambda name: status)
    told_tasks = describe_mirror(broker, MirrorFact("m", {}, "c"), None, {}).tasks
    assert told_tasks == (
        DescribedMirrorTask(name="acls", note="the source has no authorizer"),
        DescribedMirrorTask(name="group offsets", error="not allowed"),
        DescribedMirrorTask(name="topics"),
    )


def test_states_are_found_by_key() -> None:
    assert list(keys_of("m", TOPIC)) == [KEY]
    known = {KEY: Known(KEY, PartitionState(state=6), None)}
    assert state_of(known, KEY) == MirrorState.STOPPING
    assert state_of({}, KEY) == MirrorState.UNKNOWN


def test_what_was_lost_is_told_with_where_it_lies(broker: Any) -> None:
    lost = RecordLoss(
        kind="truncation", first=3, end=9, cause="why", at_ms=7, saved_to="/file", saved_bytes=80
    )
    known = Known(KEY, PartitionState(state=6), None, (lost,))
    found = describe_partition(broker, TOPIC, known, None, 0)
    assert found.losses == (
        DescribedLoss(
            kind="truncation",
            first_offset=3,
            end_offset=9,
            cause="why",
            at_ms=7,
            saved_to="/file",
            saved_bytes=80,
        ),
    )


def test_where_a_partition_began_is_told_unless_it_was_the_earliest_record(broker: Any) -> None:
    begun = PartitionStart(spec="latest", offset=9, skipped_from=3, leader_epoch=5, at_ms=7)
    known = Known(KEY, PartitionState(state=3), None, start=begun)
    found = describe_partition(broker, TOPIC, known, None, 0)
    assert found.start == (DescribedStart(spec="latest", offset=9, skipped_from=3, at_ms=7),)
    everything = Known(KEY, PartitionState(state=3), None)
    assert describe_partition(broker, TOPIC, everything, None, 0).start == ()


def test_what_another_mirror_cut_off_the_same_log_is_told_too(broker: Any) -> None:
    """Failing back by a new mirror must not hide what the one before lost."""
    first, second, third = (
        RecordLoss(kind="truncation", first=offset, end=offset + 1, cause="why", at_ms=offset)
        for offset in (10, 20, 30)
    )
    before = MirrorPartition(mirror="m-before", topic_id=UUID(int=7), partition=0)
    other = MirrorPartition(mirror="m-before", topic_id=UUID(int=8), partition=0)
    broker.facts = SimpleNamespace(
        image=SimpleNamespace(topics_of_mirror=lambda name: [TOPIC] if name == "m" else [])
    )
    broker.mirrors = SimpleNamespace(status_of=lambda name: None)
    mirror = MirrorFact(name="m", config={}, source_cluster_id="c")
    known = {
        before: Known(before, PartitionState(state=7), None, (first, third)),
        other: Known(other, PartitionState(state=7), None, (first,)),
    }
    for own in ({}, {KEY: Known(KEY, PartitionState(state=3), None, (second,))}):
        (topic,) = describe_mirror(broker, mirror, None, {**known, **own}).topics
        (found,) = topic.partitions
        assert found.state_value == ("MIRRORING" if own else "UNKNOWN")
        offsets = [loss.first_offset for loss in found.losses]
        assert offsets == ([10, 20, 30] if own else [10, 30])
