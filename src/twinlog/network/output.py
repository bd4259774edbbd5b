"""Sends the answers of one connection in order: buffers, and regions of files.

Buffers go through the transport. A file region goes with ``sendfile`` on a duplicate of the
socket, because no event loop lets us do it on the transport's own descriptor; that needs the
transport's buffer to be empty, and later answers wait for their turn meanwhile.
"""

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable
from typing import Final, cast

from twinlog.model.regions import FileRegion
from twinlog.wire.codec import Parts
from twinlog.wire.primitives import Buffer

HIGH_WATER_BYTES: Final = 512 * 1024
LOW_WATER_BYTES: Final = 128 * 1024
TURN_BYTES_MAX: Final = 4 * 1024 * 1024
"""What one connection may send from files before others get their turn."""
MESSAGE_BUFFERS_MAX: Final = 512  # below IOV_MAX
SMALL_REGION_BYTES: Final = 16 * 1024
"""Up to here reading a region and sending it with its neighbours costs less than ``sendfile``."""
SMALL_REGIONS_BYTES_MAX: Final = HIGH_WATER_BYTES


class Output:
    """What is still to be sent to one peer. ``on_room`` is called when it is not full any more."""

    __slots__ = (
        "_direct",
        "_draining",
        "_is_watched",
        "_loop",
        "_on_room",
        "_paused",
        "_queue",
        "_queued_bytes",
        "_transport",
        "failure",
        "is_closing",
        "written_bytes",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        on_room: Callable[[], None],
    ) -> None:
        transport.set_write_buffer_limits(high=HIGH_WATER_BYTES, low=LOW_WATER_BYTES)
        self._transport = transport
        self._loop = loop
        self._on_room = on_room
        self._queue: deque[Buffer | FileRegion] = deque()
        self._queued_bytes = 0
        self._direct: socket.socket | None = None
        self._is_watched = False
        self._draining = False
        self._paused = False
        self.is_closing = False
        self.failure: OSError | None = None
        self.written_bytes = 0

    @property
    def is_full(self) -> bool:
        """Tell whether no more answers should be made for now."""
        return self._paused or bool(self._queue)

    @property
    def unsent_bytes(self) -> int:
        """Bytes given to ``send`` that the kernel has not taken yet."""
        return self._queued_bytes + self._transport.get_write_buffer_size()

    def send(self, parts: Parts) -> None:
        """Send ``parts`` after all that was given before."""
        try:
            ready, has_region, size = _with_small_regions_read(parts)
        except OSError as error:
            self._fail(error)
            return
        self.written_bytes += size
        if not has_region and not self._queue:
            self._transport.writelines(cast("list[Buffer]", ready))
            return
        self._queue.extend(part for part in ready if len(part))
        self._queued_bytes += size
        if not self._is_watched and not self._draining:
            self._pump()

    def pause(self) -> None:
        """Note that the transport's buffer is above its high-water mark."""
        self._paused = True

    def resume(self) -> None:
        """Note that the transport's buffer has drained."""
        self._paused = False
        if self._draining:
            self._draining = False
            self._transport.set_write_buffer_limits(high=HIGH_WATER_BYTES, low=LOW_WATER_BYTES)
            self._pump()
        self._tell_room()

    def close_when_sent(self) -> None:
        """Close the transport once everything has been sent."""
        self.is_closing = True
        if not self._queue:
            self._transport.close()

    def abort(self) -> None:
        """Drop what is unsent, and close at once."""
        self.dispose()
        self._transport.abort()

    def dispose(self) -> None:
        """Let go of the duplicate socket and of all that is queued."""
        self.is_closing = True
        self._queue.clear()
        self._queued_bytes = 0
        self._draining = False
        self._watch(on=False)
        if self._direct is not None:
            self._direct.close()
            self._direct = None

    def _fail(self, error: OSError) -> None:
        self.failure = error
        self.abort()

    def _tell_room(self) -> None:
        if self.is_full:
            return
        if self.is_closing:
            self._transport.close()
        else:
            self._on_room()

    def _writable(self) -> None:
        """Go on where the socket had no room."""
        self._pump()
        self._tell_room()

    def _pump(self) -> None:
        """Send from the queue until it is empty or the socket is full."""
        if self._transport.get_write_buffer_size():
            # With both marks at 0 the transport calls back as soon as its buffer is empty.
            self._draining = True
            self._transport.set_write_buffer_limits(high=0, low=0)
            return
        try:
            self._watch(on=not self._send_queue())
        except OSError as error:
            self._fail(error)

    def _send_queue(self) -> bool:
        """Send what the socket takes in one turn; tell whether the queue is empty."""
        sock = self._direct or self._open_direct()
        turn_bytes = 0
        while self._queue and turn_bytes < TURN_BYTES_MAX:
            try:
                head = self._queue[0]
                if type(head) is FileRegion:
                    sent = self._send_region(sock, head)
                else:
                    sent = self._send_buffers(sock)
            except (BlockingIOError, InterruptedError):
                return False
            turn_bytes += sent
            self._queued_bytes -= sent
        return not self._queue

    def _send_region(self, sock: socket.socket, region: FileRegion) -> int:
        descriptor = region.file.fileno()
        sent = os.sendfile(sock.fileno(), descriptor, region.position, region.length)
        if sent == 0:
            raise _file_ends(region)
        if sent == region.length:
            self._queue.popleft()
        else:
            self._queue[0] = FileRegion(region.file, region.position + sent, region.length - sent)
        return sent

    def _send_buffers(self, sock: socket.socket) -> int:
        buffers: list[Buffer] = []
        for part in self._queue:
            if type(part) is FileRegion or len(buffers) == MESSAGE_BUFFERS_MAX:
                break
            buffers.append(cast("Buffer", part))
        sent = rest = sock.sendmsg(buffers)
        while rest:
            head = cast("Buffer", self._queue[0])
            if rest < len(head):
                self._queue[0] = memoryview(head)[rest:]
                break
            rest -= len(head)
            self._queue.popleft()
        return sent

    def _open_direct(self) -> socket.socket:
        descriptor = os.dup(self._transport.get_extra_info("socket").fileno())
        self._direct = socket.socket(fileno=descriptor)
        self._direct.setblocking(False)
        return self._direct

    def _watch(self, *, on: bool) -> None:
        if on == self._is_watched or self._direct is None:
            return
        self._is_watched = on
        if on:
            self._loop.add_writer(self._direct.fileno(), self._writable)
        else:
            self._loop.remove_writer(self._direct.fileno())


def _with_small_regions_read(parts: Parts) -> tuple[list[Buffer | FileRegion], bool, int]:
    """Give ``parts`` with small regions as bytes, whether large ones are left, and the size."""
    has_region = False
    size = read_bytes = 0
    ready = cast("list[Buffer | FileRegion]", parts)
    for index, part in enumerate(ready):
        size += len(part)
        if type(part) is not FileRegion:
            continue
        if part.length > SMALL_REGION_BYTES or read_bytes > SMALL_REGIONS_BYTES_MAX:
            has_region = True
            continue
        if ready is parts:
            ready = list(ready)
        ready[index] = piece = os.pread(part.file.fileno(), part.length, part.position)
        read_bytes += part.length
        if len(piece) != part.length:
            raise _file_ends(part)
    return ready, has_region, size


def _file_ends(region: FileRegion) -> OSError:
    # The frame's length says otherwise: there is no way back but to close.
    return OSError(f"the file ends before byte {region.position + region.length}")
