"""Accepts the connections of clients on one address, and lets them go in good order.

A slow client can hold what it has sent (twice, while a big frame grows) and what it has not
read; both are bounded, per connection and, for big frames, per listener. Whoever makes no
progress for ``stalled_ms_max`` or is idle for ``idle_ms_max`` is closed.
"""

import asyncio
import logging
from typing import Final

from twinlog.network.budget import FrameBudget
from twinlog.network.connection import Limits, OnFrame, ServerConnection, Shared
from twinlog.network.frames import ReceiveBuffers

log = logging.getLogger(__name__)

BACKLOG: Final = 1024
SWEEP_S_MAX: Final = 5.0
ACCEPT_TURNS: Final = 3
"""Turns of the event loop until a connection that it has accepted is known here."""


class Listener:
    """A listening address.

    ``on_frame`` gets each request (without its length) and its peer, and gives the answer (a
    whole frame, from ``wire.frames.with_length``), an awaitable of it, or None for no answer.
    One request of a connection is answered at a time, in order. An awaitable is cancelled when
    its client goes: work that must be finished has an owner elsewhere. Awaitables run in
    ``tasks``.
    """

    def __init__(
        self,
        tasks: asyncio.TaskGroup,
        on_frame: OnFrame,
        *,
        limits: Limits | None = None,
        name: str = "PLAINTEXT",
    ) -> None:
        limits = limits or Limits()
        self._server: asyncio.Server | None = None
        self._port = 0
        self._sweeper: asyncio.TimerHandle | None = None
        self._all_lost: asyncio.Future[None] | None = None
        self._is_running = False
        self._shared = Shared(
            name=name,
            on_frame=on_frame,
            limits=limits,
            tasks=tasks,
            loop=asyncio.get_running_loop(),
            buffers=ReceiveBuffers(),
            budget=FrameBudget(limits.queued_bytes_max),
            on_lost=self._lost,
        )

    @property
    def connection_count(self) -> int:
        """How many connections are open."""
        return len(self._shared.connections)

    @property
    def accepted_count(self) -> int:
        """How many connections were ever let in."""
        return self._shared.accepted_count

    @property
    def refused_count(self) -> int:
        """How many connections were turned away because too many were open."""
        return self._shared.refused_count

    @property
    def broken_count(self) -> int:
        """How many connections were closed because their bytes were no requests."""
        return self._shared.broken_count

    @property
    def held_bytes(self) -> int:
        """Bytes of big requests that are being received or answered."""
        return self._shared.budget.taken_bytes

    @property
    def port(self) -> int:
        """The port listened on, also when the system chose it."""
        assert self._port, "the listener has not been started"
        return self._port

    async def start(self, host: str, port: int) -> None:
        """Listen on ``host`` (empty: every address) and ``port`` (0: the system chooses).

        Raises OSError when the address cannot be had.
        """
        self._server = await self._shared.loop.create_server(
            lambda: ServerConnection(self._shared), host or None, port, backlog=BACKLOG
        )
        self._port = self._server.sockets[0].getsockname()[1]
        self._is_running = True
        self._schedule_sweep()

    async def stop(self, drain_s: float) -> None:
        """Accept no more, let current requests finish for ``drain_s`` seconds, then close all."""
        if self._server is None or not self._is_running:
            return
        self._is_running = False
        if self._sweeper is not None:
            self._sweeper.cancel()
        await self._accept_no_more(self._server)
        for connection in tuple(self._shared.connections):
            connection.finish()
        if not await self._wait_until_empty(drain_s) and self._shared.connections:
            log.warning(
                "closing %d connections whose requests did not finish in %s s",
                len(self._shared.connections),
                drain_s,
            )
            for connection in tuple(self._shared.connections):
                connection.abort()
            await self._wait_until_empty(1.0)
        await self._server.wait_closed()

    async def _accept_no_more(self, server: asyncio.Server) -> None:
        """Close the address once all that was accepted there is known here.

        asyncio drops a connection that it has accepted, and leaves it open, when its server is
        closed before its transport is made.
        """
        for listening in server.sockets:
            self._shared.loop.remove_reader(listening.fileno())
        for _ in range(ACCEPT_TURNS):
            await asyncio.sleep(0)
        server.close()

    async def _wait_until_empty(self, timeout_s: float) -> bool:
        if not self._shared.connections:
            return True
        self._all_lost = self._shared.loop.create_future()
        try:
            async with asyncio.timeout(timeout_s):
                await self._all_lost
        except TimeoutError:
            return False
        return True

    def _lost(self) -> None:
        waiting = self._all_lost
        if waiting is not None and not waiting.done() and not self._shared.connections:
            waiting.set_result(None)

    def _schedule_sweep(self) -> None:
        limits = self._shared.limits
        idle_ms = limits.idle_ms_max if limits.idle_ms_max >= 0 else limits.stalled_ms_max
        every_s = min(SWEEP_S_MAX, idle_ms / 4000, limits.stalled_ms_max / 4000)
        self._sweeper = self._shared.loop.call_later(every_s, self._sweep)

    def _sweep(self) -> None:
        now_s = self._shared.loop.time()
        for connection in tuple(self._shared.connections):
            connection.sweep(now_s)
        self._schedule_sweep()
