import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from support.listening import eventually, listening
from support.scripted_broker import ScriptedBroker, serving
from twinlog.network.addresses import Address
from twinlog.network.exchange import PeerUnavailable
from twinlog.network.links import Links, LinkSettings

QUICK = LinkSettings(backoff_ms_min=1, backoff_ms_max=8, connect_timeout_ms=2_000)


class Most(Random):
    """Draws the largest number there is, and remembers what it was."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[float] = []

    def uniform(self, a: float, b: float) -> float:
        self.drawn.append(b)
        return b


@asynccontextmanager
async def links_with(
    settings: LinkSettings = QUICK, random: Random | None = None
) -> AsyncIterator[Links]:
    links = Links(settings, random or Most())
    try:
        yield links
    finally:
        await links.close()


def unused_address() -> Address:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return Address("127.0.0.1", free.getsockname()[1])


async def test_one_connection_is_opened_however_many_ask_at_once() -> None:
    async with serving(ScriptedBroker()) as broker, links_with() as links:
        asked = [links.connection_to(broker.address) for _ in range(20)]
        connections = await asyncio.gather(*asked)
        assert {id(c) for c in connections} == {id(connections[0])}
        assert broker.connection_count() == 1
        assert await links.connection_to(broker.address) is connections[0]
        assert links.is_open(broker.address)


async def test_a_lost_connection_is_opened_again_after_a_back_off() -> None:
    async with serving(ScriptedBroker()) as broker, links_with() as links:
        first = await links.connection_to(broker.address)
        await first.close()
        assert not links.is_open(broker.address)
        second = await links.connection_to(broker.address)
        assert second is not first
        assert second.is_open


async def test_the_back_off_doubles_up_to_its_bound() -> None:
    random = Most()
    address = unused_address()
    async with links_with(random=random) as links:
        assert links.wait_of(address) == 0
        for _ in range(6):
            with pytest.raises(PeerUnavailable, match="refused"):
                await links.connection_to(address)
    assert random.drawn == [1, 2, 4, 8, 8, 8]


async def test_an_address_that_failed_is_left_alone_for_a_while() -> None:
    async with links_with(LinkSettings(backoff_ms_min=60_000, backoff_ms_max=60_000)) as links:
        address = unused_address()
        with pytest.raises(PeerUnavailable, match="refused"):
            await links.connection_to(address)
        assert 30 < links.wait_of(address) <= 60.1


async def test_those_who_ask_while_an_opening_fails_share_its_failure() -> None:
    random = Most()
    async with links_with(random=random) as links:
        address = unused_address()
        asked = [links.connection_to(address) for _ in range(10)]
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        assert all(isinstance(outcome, PeerUnavailable) for outcome in outcomes)
    assert random.drawn == [1]


async def test_no_more_than_a_few_connections_are_opened_at_once() -> None:
    begun = 0

    def note(frame: object, peer: object) -> None:
        nonlocal begun
        begun += 1

    async with (
        listening(note) as one,
        listening(note) as two,
        listening(note) as three,
        links_with(LinkSettings(opening_max=2)) as links,
    ):
        asked = [
            asyncio.ensure_future(links.connection_to(Address("127.0.0.1", each.port)))
            for each in (one, two, three)
        ]
        await eventually(lambda: begun == 2)
        assert three.connection_count == 0
        asked[0].cancel()
        await eventually(lambda: begun == 3)
        for each in asked:
            each.cancel()
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
        await eventually(lambda: one.connection_count == 0)


async def test_connections_to_addresses_that_are_gone_are_closed() -> None:
    async with (
        serving(ScriptedBroker()) as one,
        serving(ScriptedBroker()) as two,
        links_with() as links,
    ):
        for broker in (one, two):
            await links.connection_to(broker.address)
        await links.forget_all_but([two.address])
        await eventually(lambda: one.connection_count() == 0)
        assert two.connection_count() == 1


async def test_after_close_nothing_is_opened() -> None:
    async with serving(ScriptedBroker()) as broker, links_with() as links:
        opening = asyncio.ensure_future(links.connection_to(broker.address))
        await asyncio.sleep(0)
        await links.close()
        with pytest.raises(PeerUnavailable, match="closed by us"):
            await opening
        with pytest.raises(PeerUnavailable, match="closed by us"):
            await links.connection_to(broker.address)
        await eventually(lambda: broker.connection_count() == 0)
