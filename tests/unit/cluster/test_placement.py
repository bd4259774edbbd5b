from collections import Counter

import pytest

from twinlog.cluster.facts import BrokerFact
from twinlog.cluster.placement import place
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import BrokerId


def brokers(*racks: str | None) -> dict[BrokerId, BrokerFact]:
    return {
        BrokerId(number): BrokerFact(BrokerId(number), "host", 9092, rack)
        for number, rack in enumerate(racks)
    }


def test_leaders_go_round_the_brokers_from_the_first_on() -> None:
    placed = place(brokers(None, None, None), partition_count=4, replication_factor=1, first=2)
    assert placed == ((2,), (0,), (1,), (2,))


def test_every_broker_leads_and_copies_equally_often() -> None:
    placed = place(brokers(*[None] * 5), partition_count=10, replication_factor=3, first=1)
    assert set(Counter(replicas[0] for replicas in placed).values()) == {2}
    assert set(Counter(b for replicas in placed for b in replicas).values()) == {6}
    assert all(len(set(replicas)) == 3 for replicas in placed)


def test_copies_are_in_different_racks_where_there_are_enough() -> None:
    serving = brokers("a", "a", "b", "b", "c", "c")
    for replicas in place(serving, partition_count=12, replication_factor=3, first=0):
        assert len({serving[broker].rack for broker in replicas}) == 3


def test_more_copies_than_brokers_are_refused() -> None:
    with pytest.raises(ApiError, match=r"only 1 broker\(s\)") as refused:
        place(brokers(None), partition_count=1, replication_factor=2, first=0)
    assert refused.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
