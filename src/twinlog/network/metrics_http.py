"""Tells metrics and health over HTTP, to Prometheus and to whoever watches that the broker lives.

One request a connection, few connections at a time, all of it within a deadline: what happens here
costs the broker little, and a failure here costs it nothing.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from aiohttp import web

log = logging.getLogger(__name__)

# Of a request that is none aiohttp would tell with a stack, as often as somebody sends one.
_quiet = logging.getLogger("twinlog.network.metrics_http.requests")
_quiet.setLevel(logging.CRITICAL)

CONNECTIONS_MAX: Final = 16
DEADLINE_S: Final = 10.0
"""How long a connection may live, from its first byte to the last of its answer."""
PAGE_KEPT_S: Final = 0.25
"""Whoever asks again so soon gets the same page."""
STOP_S: Final = 1.0
HEAD_BYTES_MAX: Final = 8_190


class MetricsListener:
    """Answers ``/metrics`` with a page, and ``/healthz`` with 200 or 503."""

    def __init__(
        self, page: Callable[[], bytes], is_healthy: Callable[[], bool], content_type: str
    ) -> None:
        self._page: Final = page
        self._is_healthy: Final = is_healthy
        self._content_type: Final = content_type
        self._kept: bytes | None = None
        self._kept_until_s = 0.0
        self._runner: web.ServerRunner | None = None
        self._server: asyncio.Server | None = None
        self._port = 0

    @property
    def connection_count(self) -> int:
        """How many connections are open."""
        server = None if self._runner is None else self._runner.server
        return 0 if server is None else len(server.connections)

    @property
    def port(self) -> int:
        """The port listened on, also when the system chose it."""
        assert self._port, "the metrics listener has not been started"
        return self._port

    async def start(self, host: str, port: int) -> None:
        """Listen on ``host`` (empty: every address) and ``port`` (0: the system chooses).

        Raises OSError when the address cannot be had.
        """
        # Imported late: it takes memory and time that a broker without metrics does not spend.
        from aiohttp import web

        server = web.Server(
            self._answer,
            access_log=None,
            logger=_quiet,
            max_line_size=HEAD_BYTES_MAX,
            max_field_size=HEAD_BYTES_MAX,
            keepalive_timeout=DEADLINE_S,
            lingering_time=0,
        )
        self._runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=STOP_S)
        await self._runner.setup()
        loop = asyncio.get_running_loop()

        def accept() -> asyncio.BaseProtocol:
            if self.connection_count >= CONNECTIONS_MAX:
                return _Refused()
            handler = server()
            loop.call_later(DEADLINE_S, _abort, handler)
            return handler

        self._server = await loop.create_server(accept, host or None, port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Answer nobody any more."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        if self._runner is not None:
            await self._runner.cleanup()
        await server.wait_closed()

    async def _answer(self, request: "web.BaseRequest") -> "web.StreamResponse":
        from aiohttp import web

        response = web.Response(text="There is /metrics and /healthz.\n", status=404)
        if request.method not in ("GET", "HEAD"):
            response = web.Response(text="Only GET is answered.\n", status=405)
        elif request.path == "/metrics":
            page = self._fresh_page()
            headers = {"Content-Type": self._content_type}
            response = web.Response(body=page, headers=headers)
            if page is None:
                response = web.Response(text="The page cannot be made; see the log.\n", status=500)
        elif request.path == "/healthz":
            is_healthy = self._is_healthy()
            response = web.Response(
                text="serving\n" if is_healthy else "not serving\n",
                status=200 if is_healthy else 503,
            )
        response.force_close()
        return response

    def _fresh_page(self) -> bytes | None:
        now_s = asyncio.get_running_loop().time()
        if now_s >= self._kept_until_s:
            try:
                self._kept = self._page()
            except Exception:
                # Whatever is wrong with a number is no reason to end a broker that serves.
                log.exception("metrics cannot be told")
                self._kept = None
            self._kept_until_s = now_s + PAGE_KEPT_S
        return self._kept


def _abort(handler: "web.RequestHandler") -> None:
    """Close a connection as it is: a close in good order waits for who does not read."""
    transport = handler.transport
    if transport is not None:
        transport.abort()


class _Refused(asyncio.Protocol):
    """A connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Close it at once."""
        transport.close()
