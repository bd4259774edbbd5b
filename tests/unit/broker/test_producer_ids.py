import asyncio
from collections.abc import AsyncIterator

import pytest

from twinlog.broker.facts import Facts
from twinlog.broker.producer_ids import ProducerIdBlocks
from twinlog.broker.waiting import Waiting
from twinlog.cluster.producer_ids import BLOCK_SIZE
from twinlog.cluster.records import ROOT
from twinlog.metastore.local import LocalStore
from twinlog.metastore.memory import open_memory_store
from twinlog.metastore.store import ChangeBatch


async def follow(facts: Facts, store: LocalStore) -> None:
    async for batch in store.watch(ROOT, facts.revision):
        assert isinstance(batch, ChangeBatch)
        facts.advance(batch)
        facts.announce(batch.revision)


@pytest.fixture
async def facts() -> AsyncIterator[Facts]:
    store = open_memory_store(lambda: 0)
    facts = Facts(store, Waiting())
    await facts.load()
    watch = asyncio.ensure_future(follow(facts, store))
    yield facts
    watch.cancel()
    await asyncio.gather(watch, return_exceptions=True)


async def test_many_producers_at_once_take_one_block_and_get_ids_of_their_own(
    facts: Facts,
) -> None:
    blocks = ProducerIdBlocks()
    given = await asyncio.gather(*(blocks.give(facts) for _ in range(BLOCK_SIZE)))
    assert sorted(given) == list(range(BLOCK_SIZE))
    assert facts.image.next_producer_id == BLOCK_SIZE
    assert await blocks.give(facts) == BLOCK_SIZE


async def test_a_broker_that_starts_again_gives_no_id_a_second_time(facts: Facts) -> None:
    assert await ProducerIdBlocks().give(facts) == 0
    assert await ProducerIdBlocks().give(facts) == BLOCK_SIZE
