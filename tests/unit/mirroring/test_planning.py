"""Which partitions go into the next fetch."""

from twinlog.mirroring.effects import FetchFrom
from twinlog.mirroring.planning import FetchPlan
from twinlog.model.ids import BrokerId, LeaderEpoch, Offset, TopicName, TopicPartition


def of(partition: int) -> TopicPartition:
    return TopicPartition(TopicName("t"), partition)


def order(offset: int) -> FetchFrom:
    return FetchFrom(BrokerId(1), LeaderEpoch(0), Offset(offset), LeaderEpoch(0), 1)


def planned(count: int) -> FetchPlan:
    plan = FetchPlan()
    for partition in range(count):
        plan.put(of(partition), order(0))
    return plan


def test_a_partition_that_gave_records_goes_behind_the_others() -> None:
    plan = planned(3)
    plan.move_back(of(0))
    plan.put(of(0), order(5))
    assert [one.partition for one, _ in plan.next()] == [1, 2, 0]
    assert dict(plan.next())[of(0)].offset == 5


def test_a_long_plan_is_served_in_turns() -> None:
    plan = planned(5)
    turns = [[one.partition for one, _ in plan.next(2)] for _ in range(3)]
    assert turns == [[0, 1], [2, 3], [4, 0]]


def test_what_is_dropped_is_fetched_no_more() -> None:
    plan = planned(2)
    plan.drop(of(0))
    plan.drop(of(9))
    plan.move_back(of(0))
    assert [one.partition for one, _ in plan.next()] == [1]
    assert len(plan) == 1


def test_an_order_stands_until_another_takes_its_place() -> None:
    plan = FetchPlan()
    first = order(0)
    plan.put(of(0), first)
    assert plan.is_current(of(0), first)
    plan.put(of(0), order(0))
    assert not plan.is_current(of(0), first)
