"""Listeners on loopback, and plain clients that speak to them in frames."""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import cast

from twinlog.network.connection import Limits, OnFrame
from twinlog.network.listener import Listener
from twinlog.network.peer import Peer
from twinlog.wire.codec import Parts
from twinlog.wire.primitives import Buffer

WAIT_S = 60.0


def framed(body: bytes) -> bytes:
    """Give ``body`` with its length before it."""
    return struct.pack(">i", len(body)) + body


def echo(frame: Buffer, peer: Peer) -> Parts:
    """Answer a request with itself."""
    return [framed(bytes(frame))]


@asynccontextmanager
async def listening(on_frame: OnFrame, limits: Limits | None = None) -> AsyncIterator[Listener]:
    """Give a listener on a port of its own; stop it in the end."""
    async with asyncio.TaskGroup() as tasks:
        listener = Listener(tasks, on_frame, limits=limits)
        await listener.start("127.0.0.1", 0)
        try:
            yield listener
        finally:
            await listener.stop(0.0)


class FrameClient:
    """A client that sends bytes and reads frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @property
    def own_port(self) -> int:
        """The port on this side of the connection."""
        port: int = self.writer.get_extra_info("sockname")[1]
        return port

    def pause_reading(self) -> None:
        """Let everything lie in the kernel's buffers."""
        cast("asyncio.Transport", self.writer.transport).pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        cast("asyncio.Transport", self.writer.transport).resume_reading()

    async def send(self, *bodies: bytes) -> None:
        """Send frames."""
        await self.send_raw(b"".join(framed(body) for body in bodies))

    async def send_raw(self, piece: bytes) -> None:
        """Send bytes as they are."""
        self.writer.write(piece)
        await self.writer.drain()

    async def receive(self) -> bytes:
        """Give the next frame without its length."""
        async with asyncio.timeout(WAIT_S):
            (size,) = struct.unpack(">i", await self.reader.readexactly(4))
            return await self.reader.readexactly(size)

    async def receive_rest(self) -> bytes:
        """Give all bytes until the other side closes."""
        async with asyncio.timeout(WAIT_S):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[FrameClient]:
    """Give a client that is connected to ``port`` of this machine."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 16)
    try:
        yield FrameClient(reader, writer)
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def eventually(claim: Callable[[], bool]) -> None:
    """Let the loop turn until ``claim()`` is true; fail after a minute."""
    async with asyncio.timeout(WAIT_S):
        while not claim():  # noqa: ASYNC110 - what is waited for is inside the kernel
            await asyncio.sleep(0.001)
