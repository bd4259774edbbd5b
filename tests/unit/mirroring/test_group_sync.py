"""What brings a group's offsets in step with the source."""

from twinlog.mirroring.group_sync import (
    GroupPlan,
    LocalRange,
    SourceOffset,
    mark_of,
    plan_group,
)
from twinlog.model.ids import LeaderEpoch, Offset, TopicName, TopicPartition

A, B, C = (TopicPartition(TopicName("t"), partition) for partition in range(3))
RANGE = LocalRange(Offset(10), Offset(100), LeaderEpoch(2), LeaderEpoch(5))


def at(offset: int, epoch: int = 3, metadata: str = "m") -> SourceOffset:
    return SourceOffset(Offset(offset), LeaderEpoch(epoch), metadata)


def test_an_offset_is_committed_as_it_was_unless_it_is_here_already() -> None:
    plan = plan_group({A: at(50), B: at(60)}, {B: Offset(60)}, {A: RANGE, B: RANGE}, {})
    assert plan == GroupPlan({A: at(50)})


def test_another_word_at_the_same_offset_comes_over_unless_a_client_s_own_stands_there() -> None:
    here, mirrored = {A: Offset(50), B: Offset(50)}, {A: RANGE, B: RANGE}
    there = {A: at(50, metadata="new"), B: at(50, metadata="new")}
    assert plan_group(there, here, mirrored, {A}, {A: "old"}).commit == {A: there[A]}
    assert plan_group(there, here, mirrored, {A}, {A: "new"}) == GroupPlan()


def test_an_offset_is_never_beyond_what_is_mirrored_nor_below_its_start() -> None:
    plan = plan_group({A: at(500), B: at(3)}, {}, {A: RANGE, B: RANGE}, {})
    assert plan.commit == {A: at(100, 5, ""), B: at(10, 2, "")}


def test_partitions_that_are_not_mirrored_are_left_alone_one_by_one() -> None:
    plan = plan_group({A: at(50), B: at(50)}, {}, {B: RANGE}, {A})
    assert plan == GroupPlan({B: at(50)})


def test_an_offset_that_was_never_committed_is_none() -> None:
    assert plan_group({A: at(-1)}, {}, {A: RANGE}, {}) == GroupPlan()


def test_what_the_source_deleted_is_deleted_here_unless_it_is_somebody_else_s() -> None:
    mirrored = {A: RANGE, B: RANGE}
    here = {A: Offset(50), B: Offset(50), C: Offset(50)}
    assert plan_group({}, here, mirrored, {A, C}) == GroupPlan({}, frozenset({A}))


def test_what_is_gone_at_both_sides_is_not_deleted_again() -> None:
    assert plan_group({}, {}, {A: RANGE}, {A}) == GroupPlan()


def test_a_mirror_of_another_source_has_another_mark() -> None:
    assert mark_of("m", "one") != mark_of("m", "other")
