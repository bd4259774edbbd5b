import asyncio
from collections.abc import AsyncIterator, Sequence
from uuid import UUID

import pytest

from twinlog.broker.facts import Facts
from twinlog.broker.waiting import Waiting
from twinlog.cluster.changes import (
    Change,
    ClusterNamed,
    ProducerIdsTaken,
    TopicConfigSet,
    TopicDeleted,
    TopicMirrorSet,
    TopicSet,
)
from twinlog.cluster.facts import DesiredState, MirrorTopicFact, TopicFact
from twinlog.cluster.image import ClusterImage
from twinlog.cluster.records import ROOT
from twinlog.metastore.local import LocalStore, Written
from twinlog.metastore.memory import open_memory_store
from twinlog.metastore.store import ChangeBatch, StoreError
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import TopicId, TopicName, TopicPartition


async def follow(facts: Facts, store: LocalStore) -> None:
    async for batch in store.watch(ROOT, facts.revision):
        assert isinstance(batch, ChangeBatch)
        facts.advance(batch)
        facts.announce(batch.revision)


@pytest.fixture
async def store() -> LocalStore:
    return open_memory_store(lambda: 0)


@pytest.fixture
async def facts(store: LocalStore) -> AsyncIterator[Facts]:
    facts = Facts(store, Waiting())
    await facts.load()
    watch = asyncio.ensure_future(follow(facts, store))
    yield facts
    watch.cancel()
    await asyncio.gather(watch, return_exceptions=True)


def take_one(image: ClusterImage) -> Sequence[Change]:
    return [ProducerIdsTaken(image.next_producer_id + 1)]


async def test_a_change_is_seen_when_it_returns_and_after_a_restart(
    facts: Facts, store: LocalStore
) -> None:
    image = await facts.change(lambda _: [ClusterNamed("abc")])
    assert image.cluster_id == facts.image.cluster_id == "abc"
    again = Facts(store, Waiting())
    await again.load()
    assert again.image == facts.image


async def test_two_brokers_that_change_the_same_fact_both_have_their_way(
    facts: Facts, store: LocalStore
) -> None:
    other = Facts(store, Waiting())
    await other.load()
    watch = asyncio.ensure_future(follow(other, store))
    await asyncio.gather(*(side.change(take_one) for side in (facts, other) * 5))
    assert facts.image.next_producer_id == 10
    watch.cancel()
    await asyncio.gather(watch, return_exceptions=True)


async def test_a_refusal_changes_nothing(facts: Facts) -> None:
    def refuse(_: ClusterImage) -> Sequence[Change]:
        raise ApiError(ErrorCode.INVALID_REQUEST, "no")

    before = facts.image
    with pytest.raises(ApiError):
        await facts.change(refuse)
    assert facts.image is before


async def test_a_wait_for_the_image_has_an_end(facts: Facts) -> None:
    with pytest.raises(ApiError, match="REQUEST_TIMED_OUT"):
        await facts.wait_until(lambda: False, timeout_s=0.01)


async def test_a_partition_that_is_nowhere_is_told_from_one_that_is_elsewhere(
    facts: Facts,
) -> None:
    error = facts.why_absent(TopicPartition(TopicName("t"), 0))
    assert error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_store_that_fails_is_an_answer_to_the_client_and_changes_nothing(
    facts: Facts, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> Written:
        raise StoreError("metadata.db: nothing was written: disk is full")

    monkeypatch.setattr(store, "_write", fail)
    with pytest.raises(ApiError, match="disk is full") as refused:
        await facts.change(take_one)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    monkeypatch.undo()
    assert (await facts.change(take_one)).next_producer_id == 1


async def test_the_revision_at_which_a_topic_was_last_asked_something_is_known(
    facts: Facts, store: LocalStore
) -> None:
    name = TopicName("t")
    made = TopicFact(name, TopicId(UUID(int=1)), ())

    async def at(change: Change) -> tuple[int, int]:
        await facts.change(lambda _: [change])
        return facts.mirrored_since(name), facts.image_revision

    assert facts.mirrored_since(name) == 0
    since, now = await at(TopicSet(made))
    assert since == now
    since, now = await at(TopicMirrorSet(name, MirrorTopicFact("m", DesiredState.MIRRORING)))
    assert since == now == facts.revision
    later = await at(TopicConfigSet(name, {"retention.ms": "5"}))
    assert later == (since, now + 1)
    again = Facts(store, Waiting())
    await again.load()
    assert since <= again.mirrored_since(name) <= again.image_revision
    assert await at(TopicDeleted(name)) == (0, now + 2)
