import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import count

import pytest

from support.http import http_exchange, http_get
from twinlog.network import metrics_http
from twinlog.network.metrics_http import CONNECTIONS_MAX, MetricsListener


class Asked:
    """What the listener is told by its broker."""

    def __init__(self) -> None:
        self.is_healthy = True
        self.page_bytes = 0
        self.numbers: Iterator[int] = count(1)

    def page(self) -> bytes:
        return f"asked {next(self.numbers)}\n".encode().ljust(self.page_bytes)


@asynccontextmanager
async def listening(asked: Asked) -> AsyncIterator[MetricsListener]:
    listener = MetricsListener(asked.page, lambda: asked.is_healthy, "text/plain; version=0.0.4")
    await listener.start("127.0.0.1", 0)
    try:
        yield listener
    finally:
        await listener.stop()
        await listener.stop()


async def test_the_page_is_given_and_for_a_moment_given_again() -> None:
    async with listening(Asked()) as listener:
        answer = await http_get(listener.port, "/metrics")
        assert (answer.status, answer.body) == (200, "asked 1\n")
        assert answer.headers["content-type"] == "text/plain; version=0.0.4"
        assert (await http_get(listener.port, "/metrics")).body == "asked 1\n"


async def test_health_is_a_status() -> None:
    asked = Asked()
    async with listening(asked) as listener:
        assert (await http_get(listener.port, "/healthz")).status == 200
        asked.is_healthy = False
        assert (await http_get(listener.port, "/healthz")).status == 503


async def test_what_is_not_there_is_refused() -> None:
    async with listening(Asked()) as listener:
        assert (await http_get(listener.port, "/")).status == 404
        assert (await http_get(listener.port, "/metrics", "POST")).status == 405
        assert b" 400 " in await http_exchange(listener.port, b"\x00\x01no http\r\n\r\n")
        too_long = b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n"
        assert b" 400 " in await http_exchange(listener.port, too_long)


async def test_a_page_that_cannot_be_made_fails_for_who_asked_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked = Asked()
    asked.numbers = iter([])
    async with listening(asked) as listener:
        assert (await http_get(listener.port, "/metrics")).status == 500
        assert "metrics cannot be told" in caplog.text
        assert (await http_get(listener.port, "/healthz")).status == 200


async def test_too_many_connections_are_turned_away_and_make_room_when_they_go() -> None:
    async with listening(Asked()) as listener:
        idle = [
            await asyncio.open_connection("127.0.0.1", listener.port)
            for _ in range(CONNECTIONS_MAX)
        ]
        await asyncio.sleep(0)
        ask = b"GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n"
        assert await http_exchange(listener.port, ask) == b""
        for _, writer in idle:
            writer.close()
            await writer.wait_closed()
        answers = [await http_exchange(listener.port, ask) for _ in range(20)]
        assert b"200 OK" in answers[-1]


async def test_who_says_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_http, "DEADLINE_S", 0.05)
    async with listening(Asked()) as listener:
        assert await http_exchange(listener.port, b"GET /metr") == b""


async def test_who_does_not_read_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_http, "DEADLINE_S", 0.1)
    asked = Asked()
    asked.page_bytes = 20 << 20
    async with listening(asked) as listener:
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, limit=1 << 10)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n")
        async with asyncio.timeout(60):
            while listener.connection_count == 0:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0)
            while listener.connection_count:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            with suppress(ConnectionResetError):
                assert len(await reader.read()) < asked.page_bytes
        writer.close()
