import asyncio
import gc
import socket
from collections.abc import Awaitable
from contextlib import suppress

import pytest

from support.listening import connected, echo, eventually, framed, listening
from twinlog.network.connection import Limits
from twinlog.network.listener import Listener
from twinlog.network.peer import Peer
from twinlog.wire.codec import Parts
from twinlog.wire.primitives import Buffer


async def test_a_port_in_use_is_an_error_at_the_start() -> None:
    async with listening(echo) as listener, asyncio.TaskGroup() as tasks:
        second = Listener(tasks, echo)
        with pytest.raises(OSError, match=r"[Aa]ddress"):
            await second.start("127.0.0.1", listener.port)


async def test_connections_over_the_bound_are_refused_and_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with listening(echo, Limits(connections_max=2)) as listener:
        async with connected(listener.port) as one, connected(listener.port):
            await eventually(lambda: listener.connection_count == 2)
            async with connected(listener.port) as third:
                assert await third.receive_rest() == b""
            await one.send(b"still here")
            assert await one.receive() == b"still here"
        await eventually(lambda: listener.connection_count == 0)
        async with connected(listener.port) as fourth:
            await fourth.send(b"room again")
            assert await fourth.receive() == b"room again"
        assert (listener.accepted_count, listener.refused_count) == (3, 1)
    assert "max.connections=2 are open" in caplog.text


async def test_stop_lets_current_requests_finish_and_takes_no_more() -> None:
    wait: asyncio.Future[Parts] = asyncio.get_running_loop().create_future()

    begun = asyncio.Event()

    def park(frame: Buffer, peer: Peer) -> Awaitable[Parts]:
        begun.set()
        return wait

    async with (
        listening(park) as listener,
        connected(listener.port) as busy,
        connected(listener.port) as idle,
        asyncio.TaskGroup() as tasks,
    ):
        port = listener.port
        await busy.send(b"the last request")
        await begun.wait()
        await eventually(lambda: listener.connection_count == 2)
        stopping = tasks.create_task(listener.stop(10.0))
        assert await idle.receive_rest() == b""
        assert not stopping.done()
        with pytest.raises(OSError, match=r"[Cc]onnect"):
            await asyncio.open_connection("127.0.0.1", port)
        wait.set_result([framed(b"the last answer")])
        assert await busy.receive() == b"the last answer"
        assert await busy.receive_rest() == b""
        await stopping
        assert listener.connection_count == 0


async def test_stop_closes_what_does_not_finish_in_time(caplog: pytest.LogCaptureFixture) -> None:
    async def never() -> Parts:
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nothing was waited for")

    async with (
        listening(lambda frame, peer: never()) as listener,
        connected(listener.port) as client,
    ):
        await client.send(b"a long poll")
        await eventually(lambda: listener.connection_count == 1)
        await asyncio.sleep(0)
        await listener.stop(0.01)
        assert await client.receive_rest() == b""
        assert listener.connection_count == 0
        await listener.stop(0.01)


@pytest.mark.slow
async def test_a_thousand_connections_come_and_go_and_leave_nothing() -> None:
    async def one(port: int, number: int) -> None:
        async with connected(port) as client:
            await client.send(b"request %06d" % number)
            assert await client.receive() == b"request %06d" % number

    async with listening(echo) as listener:
        for start in range(0, 1000, 200):
            await asyncio.gather(*[one(listener.port, start + n) for n in range(200)])
        await eventually(lambda: listener.connection_count == 0)
        assert listener.accepted_count == 1000


@pytest.mark.parametrize("turns", range(5))
async def test_a_connection_that_comes_while_it_stops_is_closed(turns: int) -> None:
    async with asyncio.TaskGroup() as tasks:
        listener = Listener(tasks, echo)
        await listener.start("127.0.0.1", 0)
        client = socket.socket()
        client.setblocking(False)
        with suppress(BlockingIOError):
            client.connect(("127.0.0.1", listener.port))
        for _ in range(turns):
            await asyncio.sleep(0)
        await listener.stop(1.0)
        assert listener.connection_count == 0
        client.close()
    gc.collect()  # tells of what was left open
