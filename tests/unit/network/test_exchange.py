import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

import pytest

from support.listening import echo, eventually, framed, listening
from twinlog.network.addresses import Address
from twinlog.network.exchange import ABANDONED_MAX, IN_FLIGHT_MAX, Exchange, PeerUnavailable
from twinlog.network.frames import ReceiveBuffers
from twinlog.network.peer import Peer
from twinlog.wire.codec import Parts
from twinlog.wire.primitives import Buffer


@asynccontextmanager
async def exchanging(port: int) -> AsyncIterator[Exchange]:
    _, exchange = await asyncio.get_running_loop().create_connection(
        lambda: Exchange(Address("127.0.0.1", port), ReceiveBuffers()), "127.0.0.1", port
    )
    try:
        yield exchange
    finally:
        await exchange.close()


def request(correlation_id: int, body: bytes = b"body") -> Parts:
    return [framed(struct.pack(">i", correlation_id) + body)]


async def ask(exchange: Exchange, body: bytes = b"body", *, timeout_s: float = 5) -> bytes:
    correlation_id = exchange.next_id()
    frame = request(correlation_id, body)
    return bytes(await exchange.ask(correlation_id, frame, timeout_s=timeout_s))[4:]


async def test_each_request_gets_its_own_answer() -> None:
    async with listening(echo) as listener, exchanging(listener.port) as exchange:
        bodies = [b"body %04d" % number for number in range(3 * IN_FLIGHT_MAX)]
        answers = await asyncio.gather(*[ask(exchange, body) for body in bodies])
        assert answers == bodies
        assert exchange.in_flight_count == 0


async def test_big_requests_and_answers_pass() -> None:
    async with listening(echo) as listener, exchanging(listener.port) as exchange:
        bodies = [bytes([number]) * 3_000_000 for number in range(8)]
        assert await asyncio.gather(*[ask(exchange, body) for body in bodies]) == bodies


async def test_a_request_does_not_overtake_one_that_waits_for_room() -> None:
    seen: list[bytes] = []

    def noting(frame: Buffer, peer: Peer) -> Parts:
        seen.append(bytes(frame)[4:])
        return [framed(bytes(frame))]

    async with (
        listening(noting) as listener,
        exchanging(listener.port) as exchange,
        asyncio.TaskGroup() as tasks,
    ):
        exchange.pause_writing()
        tasks.create_task(ask(exchange, b"first"))
        await asyncio.sleep(0)
        tasks.create_task(ask(exchange, b"second"))
        exchange.resume_writing()
    assert seen == [b"first", b"second"]


async def test_no_more_than_a_bounded_number_of_requests_is_in_flight() -> None:
    wait: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def later(frame: Buffer) -> Parts:
        await wait
        return [framed(bytes(frame))]

    async with (
        listening(lambda frame, peer: later(frame)) as listener,
        exchanging(listener.port) as exchange,
        asyncio.TaskGroup() as tasks,
    ):
        asked = [tasks.create_task(ask(exchange)) for _ in range(IN_FLIGHT_MAX + 10)]
        await eventually(lambda: exchange.in_flight_count == IN_FLIGHT_MAX)
        wait.set_result(None)
        assert {await task for task in asked} == {b"body"}


async def test_a_request_without_answer_closes_the_connection_for_all() -> None:
    async def never() -> Parts:
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nothing was waited for")

    async with (
        listening(lambda frame, peer: never()) as listener,
        exchanging(listener.port) as exchange,
        asyncio.TaskGroup() as tasks,
    ):
        patient = tasks.create_task(ask_for_trouble(exchange))
        with pytest.raises(PeerUnavailable, match=r"127\.0\.0\.1:\d+: no answer within 0.01 s"):
            await ask(exchange, timeout_s=0.01)
        assert await patient == "no answer within 0.01 s"
        assert not exchange.is_open
        assert await ask_for_trouble(exchange) == "no answer within 0.01 s"


async def ask_for_trouble(exchange: Exchange) -> str:
    with pytest.raises(PeerUnavailable) as failure:
        await ask(exchange)
    return failure.value.why


async def test_the_answer_to_a_cancelled_request_is_dropped() -> None:
    waits: list[asyncio.Future[Parts]] = []

    def park(frame: Buffer, peer: Peer) -> Awaitable[Parts]:
        waits.append(asyncio.get_running_loop().create_future())
        return waits[-1]

    async with (
        listening(park) as listener,
        exchanging(listener.port) as exchange,
        asyncio.TaskGroup() as tasks,
    ):
        first = tasks.create_task(ask(exchange))
        second = tasks.create_task(ask(exchange))
        await eventually(lambda: len(waits) == 1)
        first.cancel()
        waits[0].set_result(request(1, b"late"))
        await eventually(lambda: len(waits) == 2)
        waits[1].set_result(request(2, b"in time"))
        assert await second == b"in time"


async def test_requests_that_nobody_waits_for_any_more_are_bounded() -> None:
    def silent(frame: Buffer, peer: Peer) -> None:
        return None

    async with listening(silent) as listener, exchanging(listener.port) as exchange:
        for _ in range(ABANDONED_MAX // 100 + 1):
            tasks = [asyncio.ensure_future(ask(exchange)) for _ in range(100)]
            await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        assert not exchange.is_open


async def test_a_close_by_the_other_side_fails_all_who_wait() -> None:
    async def never() -> Parts:
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nothing was waited for")

    async with (
        listening(lambda frame, peer: never()) as listener,
        exchanging(listener.port) as exchange,
        asyncio.TaskGroup() as tasks,
    ):
        asked = [tasks.create_task(ask_for_trouble(exchange)) for _ in range(3)]
        await eventually(lambda: exchange.in_flight_count == 3)
        await listener.stop(0.0)
        for task in asked:
            assert "connection" in await task
        assert exchange.was_cut


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (struct.pack(">i", -1), "negative"),
        (framed(struct.pack(">ii", 77, 0)), "request 77, which was not asked"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n" * 3, "this is HTTP"),
        (b"\x15\x03\x01\x00\x02\x02\x46\x00", "these are TLS bytes"),
    ],
)
async def test_a_garbled_answer_closes_the_connection(answer: bytes, why: str) -> None:
    async with (
        listening(lambda frame, peer: [answer]) as listener,
        exchanging(listener.port) as exchange,
    ):
        with pytest.raises(PeerUnavailable, match=f"broke the protocol: .*({why})"):
            await ask(exchange, timeout_s=60)
        assert not exchange.is_open
        assert not exchange.was_cut


async def test_after_close_nothing_can_be_asked() -> None:
    async with listening(echo) as listener, exchanging(listener.port) as exchange:
        await exchange.close()
        assert await ask_for_trouble(exchange) == "the connection was closed by us"
        await eventually(lambda: listener.connection_count == 0)
