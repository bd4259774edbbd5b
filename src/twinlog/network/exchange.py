"""Requests out and answers in over one connection to a broker, matched by correlation id."""

import asyncio
import ssl
from contextlib import suppress
from typing import Any, Final, cast

from twinlog.model.errors import WireError
from twinlog.network.addresses import Address
from twinlog.network.frames import FrameReader, ReceiveBuffers
from twinlog.network.keep_alive import keep_alive
from twinlog.wire.codec import Parts
from twinlog.wire.headers import decode_correlation_id
from twinlog.wire.primitives import Buffer

ANSWER_BYTES_MAX: Final = 256 * 1024 * 1024
"""Far above any answer we ask for, and below what the first bytes of TLS and HTTP read as."""
IN_FLIGHT_MAX: Final = 128
ABANDONED_MAX: Final = 1024
WRITE_BUFFER_BYTES: Final = 1024 * 1024
CLOSE_S_MAX: Final = 1.0


class PeerUnavailable(ConnectionError):  # noqa: N818 - it is a state of the peer
    """A broker cannot be reached, has gone away, or does not speak the protocol."""

    def __init__(self, address: Address | str, why: str) -> None:
        super().__init__(f"{address}: {why}")
        self.address = address
        self.why = why


class Exchange(asyncio.BufferedProtocol):
    """The byte side of a connection to a broker; it knows nothing of what is asked."""

    _transport: asyncio.Transport

    def __init__(self, address: Address, buffers: ReceiveBuffers) -> None:
        self._address = address
        self._loop = asyncio.get_running_loop()
        self._reader = FrameReader(buffers, ANSWER_BYTES_MAX)
        self._pending: dict[int, asyncio.Future[Buffer]] = {}
        self._abandoned: set[int] = set()
        self._slots = asyncio.Semaphore(IN_FLIGHT_MAX)
        self._writing = asyncio.Lock()
        self._can_write = asyncio.Event()
        self._can_write.set()
        self._may_ask = asyncio.Event()
        self._may_ask.set()
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self._why: str | None = None
        self._last_id = 0
        self.was_cut = False  # by the other side, while we had no complaint

    @property
    def is_open(self) -> bool:
        """Tell whether requests can be sent."""
        return self._why is None

    @property
    def in_flight_count(self) -> int:
        """How many requests wait for their answer."""
        return len(self._pending)

    def next_id(self) -> int:
        """Give the correlation id of the next request."""
        self._last_id = (self._last_id + 1) & 0x7FFF_FFFF
        return self._last_id

    async def ask(self, correlation_id: int, frame: Parts, *, timeout_s: float) -> Buffer:
        """Send a request and give the frame that answers it.

        Raises PeerUnavailable. A request that is not answered in time closes the connection, as
        all that comes after it would have to wait, too.
        """
        try:
            async with asyncio.timeout(timeout_s):
                async with self._slots:
                    # Who comes when there is room again goes behind those who waited for it.
                    async with self._writing:
                        await self._can_write.wait()
                        await self._may_ask.wait()
                        answer = self._send(correlation_id, frame)
                    return await self._answer_to(correlation_id, answer)
        except TimeoutError:
            why = f"no answer within {timeout_s:g} s"
            self.fail(why)
            raise PeerUnavailable(self._address, why) from None

    async def ask_first(self, correlation_id: int, frame: Parts, *, timeout_s: float) -> Buffer:
        """Send a request ahead of all that are held back; otherwise as ``ask``."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._answer_to(correlation_id, self._send(correlation_id, frame))
        except TimeoutError:
            why = f"no answer within {timeout_s:g} s"
            self.fail(why)
            raise PeerUnavailable(self._address, why) from None

    def hold_back(self) -> None:
        """Send nothing but what ``ask_first`` sends, until ``let_go``."""
        if self._why is None:
            self._may_ask.clear()

    def let_go(self) -> None:
        """Send what was held back."""
        self._may_ask.set()

    def _send(self, correlation_id: int, frame: Parts) -> asyncio.Future[Buffer]:
        if self._why is not None:
            raise PeerUnavailable(self._address, self._why)
        answer: asyncio.Future[Buffer] = self._loop.create_future()
        self._pending[correlation_id] = answer
        self._transport.writelines(cast("list[Buffer]", frame))
        return answer

    async def _answer_to(self, correlation_id: int, answer: asyncio.Future[Buffer]) -> Buffer:
        try:
            return await answer
        except asyncio.CancelledError:
            if self._pending.pop(correlation_id, None) is not None:
                self._abandoned.add(correlation_id)
            if len(self._abandoned) > ABANDONED_MAX:
                self.fail(f"no answer to {ABANDONED_MAX} requests that nobody waits for")
            raise

    async def close(self) -> None:
        """Close the connection; whoever waits for an answer gets PeerUnavailable."""
        self._give_up("the connection was closed by us")
        self._transport.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S_MAX):
                await asyncio.shield(self._closed)
        if not self._closed.done():
            self._transport.abort()

    def fail(self, why: str) -> None:
        """Close at once, since the peer cannot be relied on."""
        self._give_up(why)
        self._transport.abort()

    def _give_up(self, why: str) -> None:
        if self._why is None:
            self._why = why
        pending, self._pending = self._pending, {}
        for answer in pending.values():
            if not answer.done():
                answer.set_exception(PeerUnavailable(self._address, self._why))
                answer.exception()  # whoever waited may have been cancelled in this same turn
        self._can_write.set()
        self._may_ask.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        keep_alive(self._transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Tell where the next bytes go."""
        return self._reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Hand out the answers that are whole now."""
        if self._why is not None:
            return
        try:
            for frame in self._reader.take(nbytes):
                self._hand_out(frame)
        except WireError as error:
            self.fail(f"broke the protocol: {error}")

    def pause_writing(self) -> None:
        """Let later requests wait."""
        if self._why is None:
            self._can_write.clear()

    def resume_writing(self) -> None:
        """Let requests go on."""
        self._can_write.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell all who wait that there will be no answer."""
        # TLS gives a reason with its alert, for example that it misses our certificate.
        self.was_cut = self._why is None and not isinstance(exc, ssl.SSLError)
        self._give_up("closed the connection" if exc is None else _why_lost(exc))
        if not self._closed.done():
            self._closed.set_result(None)

    def _hand_out(self, frame: Buffer) -> None:
        correlation_id = decode_correlation_id(frame)
        answer: asyncio.Future[Any] | None = self._pending.pop(correlation_id, None)
        if answer is None:
            if correlation_id not in self._abandoned:
                raise WireError(f"an answer to request {correlation_id}, which was not asked")
            self._abandoned.discard(correlation_id)
        elif not answer.done():
            answer.set_result(frame)


def _why_lost(error: Exception) -> str:
    if not isinstance(error, ssl.SSLError):
        return f"connection lost: {error}"
    reason = error.reason or str(error)
    hint = "; does it want another certificate of ours?" if "CERTIFICATE" in reason else ""
    return f"TLS failed: {reason}{hint}"
