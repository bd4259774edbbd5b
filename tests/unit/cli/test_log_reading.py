"""A partition's batches are read in order from whoever leads it, within bounds."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from support.answering_broker import AnsweringBroker
from support.batches import batch
from twinlog.cli import log_reading
from twinlog.cli.cluster import Cluster
from twinlog.cli.failures import CliError
from twinlog.cli.log_reading import Bounds, LogReader, OvertakenError, bounds_of, leaders_of
from twinlog.network.addresses import Address
from twinlog.wire.messages import fetch, metadata, offsets

T = TypeVar("T")


def with_cluster(broker: AnsweringBroker, act: Callable[[Cluster], Awaitable[T]]) -> T:
    """Run ``act`` with a connection to the broker."""

    async def run() -> T:
        address = Address("127.0.0.1", broker.port)
        cluster = Cluster((address,), named_by="it", client_id="t", timeout_ms=60_000)
        await cluster.connect()
        try:
            return await act(cluster)
        finally:
            await cluster.close()

    return asyncio.run(run())


@pytest.fixture(autouse=True)
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_reading, "RETRY_DELAY_S", 0)


async def pieces_of(cluster: Cluster, position: int, end: int) -> list[tuple[int, ...]]:
    """Give the base offsets of each piece."""
    reader = LogReader(cluster, "t", 0, position, end)
    found = []
    while not reader.is_at_end:
        piece = await reader.next_piece()
        found.append(tuple(mark.header.base_offset for mark in piece.marks))
    return found


def answers(broker: AnsweringBroker, *given: Any) -> None:
    """Answer fetches with error codes, the last one for good; None is what the log has."""
    left = list(given)

    def answer(request: fetch.FetchRequest) -> fetch.FetchResponse:
        code = left.pop(0) if len(left) > 1 else left[0]
        if code is None:
            return broker._fetch(request)
        told = fetch.FetchedPartition(partition_index=0, error_code=code, high_watermark=-1)
        topic = fetch.FetchedTopic(topic="t", partitions=(told,))
        return fetch.FetchResponse(topics=(topic,))

    broker.on(fetch.FETCH, answer)


def test_batches_come_from_the_one_that_holds_the_position_up_to_the_end(
    broker: AnsweringBroker,
) -> None:
    for _ in range(4):
        broker.append("t", 0, batch(2))
    assert with_cluster(broker, lambda c: pieces_of(c, 3, 6)) == [(2, 4)]
    asked = broker.asked_for(fetch.FetchRequest)[0]
    assert asked.isolation_level == 0
    assert asked.topics[0].partitions[0].fetch_offset == 3


def test_a_new_leader_is_looked_for_within_bounds(broker: AnsweringBroker) -> None:
    broker.append("t", 0, batch(2))
    answers(broker, 6, 6, None)
    assert with_cluster(broker, lambda c: pieces_of(c, 0, 2)) == [(0,)]
    assert len(broker.asked_for(metadata.MetadataRequest)) == 3
    answers(broker, 6)
    with pytest.raises(CliError, match="offset 0 cannot be read: NOT_LEADER_OR_FOLLOWER"):
        with_cluster(broker, lambda c: pieces_of(c, 0, 2))


def test_records_that_never_come_are_given_up(broker: AnsweringBroker) -> None:
    broker.append("t", 0, batch(2))
    with pytest.raises(CliError, match="offset 2 cannot be read: nothing comes, though offsets"):
        with_cluster(broker, lambda c: pieces_of(c, 2, 9))


def test_what_was_deleted_what_is_corrupt_and_what_is_forbidden_are_told_apart(
    broker: AnsweringBroker,
) -> None:
    broker.append("t", 0, batch(2))
    answers(broker, 1)
    with pytest.raises(OvertakenError):
        with_cluster(broker, lambda c: pieces_of(c, 0, 2))
    answers(broker, 29)
    with pytest.raises(CliError, match="TOPIC_AUTHORIZATION_FAILED"):
        with_cluster(broker, lambda c: pieces_of(c, 0, 2))
    answers(broker, 2)
    piece = with_cluster(broker, lambda c: LogReader(c, "t", 0, 0, 2).next_piece())
    assert (piece.next_offset, piece.fault) == (0, "its broker says that it is corrupt")


def test_bounds_of_partitions_and_why_some_have_none(broker: AnsweringBroker) -> None:
    broker.append("t", 0, batch(2))
    found = with_cluster(broker, lambda c: bounds_of(c, [("t", 0), ("t", 3), ("u", 0)]))
    assert found["t", 0] == Bounds(0, 2)
    assert str(found["t", 3]).startswith("there is no t-3 (UNKNOWN_TOPIC_OR_PARTITION)")
    assert str(found["u", 0]).startswith("there is no u-0 (UNKNOWN_TOPIC_OR_PARTITION)")
    assert len(broker.asked_for(metadata.MetadataRequest)) == 2


def test_many_partitions_are_asked_for_in_parts(
    broker: AnsweringBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_reading, "PLACES_AT_ONCE", 2)
    places = [(topic, partition) for topic in "ab" for partition in (0, 1)] + [("c", 0)]
    for number, place in enumerate(places):
        broker.append(*place, batch(number + 1))
    found = with_cluster(broker, lambda c: bounds_of(c, places))
    assert [found[place] for place in places] == [Bounds(0, n + 1) for n in range(5)]
    assert len(broker.asked_for(offsets.ListOffsetsRequest)) == 6


def test_an_offset_is_asked_for_again_while_its_leader_moves(broker: AnsweringBroker) -> None:
    broker.append("t", 0, batch(2))
    plain, moves = broker._list_offsets, [6, 6]

    def answer(request: offsets.ListOffsetsRequest) -> offsets.ListOffsetsResponse:
        if not moves:
            return plain(request)
        row = offsets.ListedPartition(partition_index=0, error_code=moves.pop())
        topic = offsets.ListedTopic(name="t", partitions=(row,))
        return offsets.ListOffsetsResponse(topics=(topic,))

    broker.on(offsets.LIST_OFFSETS, answer)
    assert with_cluster(broker, lambda c: bounds_of(c, [("t", 0)])) == {("t", 0): Bounds(0, 2)}


def test_an_offset_that_is_refused_is_told_for_its_partition_only(broker: AnsweringBroker) -> None:
    broker.logs["t", 0] = broker.logs["t", 1] = b""

    def answer(request: offsets.ListOffsetsRequest) -> offsets.ListOffsetsResponse:
        rows = (
            offsets.ListedPartition(partition_index=0, offset=7),
            offsets.ListedPartition(partition_index=1, error_code=29),
        )
        topic = offsets.ListedTopic(name="t", partitions=rows)
        return offsets.ListOffsetsResponse(topics=(topic,))

    broker.on(offsets.LIST_OFFSETS, answer)
    found = with_cluster(broker, lambda c: bounds_of(c, [("t", 0), ("t", 1)]))
    assert found["t", 0] == Bounds(7, 7)
    assert str(found["t", 1]).startswith("TOPIC_AUTHORIZATION_FAILED")


def test_a_partition_without_a_leader_is_told(broker: AnsweringBroker) -> None:
    broker.logs["t", 0] = b""
    told = broker._metadata(metadata.MetadataRequest(topics=None))
    told.topics[0].partitions[0].leader_id = -1  # type: ignore[misc]
    broker.on(metadata.METADATA, told)
    found = with_cluster(broker, lambda c: leaders_of(c, [("t", 0)]))
    assert found == {("t", 0): "it has no leader; is a broker down?"}
