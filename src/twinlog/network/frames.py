"""Cuts frames out of a byte stream, without copying the big ones.

Both ends of a connection use it from an ``asyncio.BufferedProtocol``. All connections of a loop
share one scratch buffer: a loop asks for the buffer right before it reads and tells right after
it how much came, so what is in it never outlives that pair of calls. A frame that arrives whole
is copied out of it once. A frame that does not is received straight into a buffer of its own,
which grows as its bytes arrive: a peer that announces 100 MB and sends little holds little.
"""

import struct
import sys
from typing import Final

from twinlog.model.bounds import FRAME_BYTES_MIN
from twinlog.model.errors import WireError
from twinlog.wire.primitives import Buffer

LENGTH_BYTES: Final = 4
SCRATCH_BYTES: Final = 256 * 1024
BIG_FRAME_BYTES: Final = 64 * 1024
"""From here on a frame that did not arrive at once stays where it was received."""
WRITABLE_FRAME_BYTES: Final = 4 * 1024
"""From here on a frame can be written to, so that a produced batch is stamped where it lies."""
FIRST_STEP_BYTES: Final = 64 * 1024
SIZE_STEP_BYTES: Final = 256 * 1024
KEPT_BYTES_MAX: Final = 16 * 1024 * 1024

_LENGTH: Final = struct.Struct(">i")
_TLS_BEGINNINGS: Final = (b"\x16\x03", b"\x15\x03")  # a handshake, an alert
_HTTP_BEGINNINGS: Final = (
    b"GET ",
    b"POST",
    b"HEAD",
    b"PUT ",
    b"OPTI",
    b"DELE",
    b"PATC",
    b"CONN",
    b"HTTP",
)


def _references(buffers: list[bytearray], index: int) -> int:
    return sys.getrefcount(buffers[index])


_REFERENCES_WHEN_FREE: Final = _references([bytearray()], 0)


class ReceiveBuffers:
    """The scratch buffer of a loop, and big buffers that are used again.

    A new 4 MB buffer costs as much as receiving into it: it is zeroed and its pages are faulted
    in. So big ones are kept, up to ``kept_bytes_max``, and one is free again when nobody but us
    refers to it: every ``memoryview`` into a frame counts as a reference to its buffer, so no one
    has to hand it back.
    """

    def __init__(self, *, kept_bytes_max: int = KEPT_BYTES_MAX) -> None:
        self.scratch = bytearray(SCRATCH_BYTES)
        self.scratch_view = memoryview(self.scratch)
        self._kept: list[bytearray] = []
        self._kept_bytes = 0
        self._kept_bytes_max = kept_bytes_max

    @property
    def kept_bytes(self) -> int:
        """The size of all big buffers kept, free or not."""
        return self._kept_bytes

    def free_one(self, size: int) -> bytearray | None:
        """Give a kept buffer of at least ``size`` bytes that nobody uses, if there is one."""
        for index in range(len(self._kept)):
            fits = size <= len(self._kept[index]) <= 4 * size
            if fits and _references(self._kept, index) == _REFERENCES_WHEN_FREE:
                return self._kept[index]
        return None

    def keep(self, buffer: bytearray) -> None:
        """Use ``buffer`` again once its frame is forgotten; the oldest kept ones go for it."""
        if len(buffer) > self._kept_bytes_max or any(buffer is kept for kept in self._kept):
            return
        self._kept.append(buffer)
        self._kept_bytes += len(buffer)
        while self._kept_bytes > self._kept_bytes_max:
            self._kept_bytes -= len(self._kept.pop(0))


class FrameReader:
    """One connection's place in its byte stream.

    ``buffer`` says where the next bytes go, ``take`` how many came. Frames are given without
    their length: ``bytes``, a ``bytearray``, or a ``memoryview`` of a buffer of their own. All own
    their memory.
    """

    __slots__ = ("_buffers", "_filled", "_frame_bytes_max", "_head", "_own", "_setting", "_size")

    def __init__(
        self, buffers: ReceiveBuffers, frame_bytes_max: int, *, setting: str | None = None
    ) -> None:
        self._buffers = buffers
        self._frame_bytes_max = frame_bytes_max
        self._setting = setting or "the largest frame"
        self._head = b""
        self._own: bytearray | None = None
        self._size = 0
        self._filled = 0

    @property
    def receiving_bytes(self) -> int:
        """The announced size of the frame that is half here; 0 between frames."""
        return 0 if self._own is None else self._size

    @property
    def is_inside_frame(self) -> bool:
        """Tell whether the stream stands inside a frame."""
        return self._own is not None or bool(self._head)

    def buffer(self) -> memoryview:
        """Give the place for the next bytes; it is never empty."""
        if self._own is not None:
            if self._filled == len(self._own):
                self._grow(self._own)
            return memoryview(self._own)[self._filled : self._size]
        if self._head:
            self._buffers.scratch[: len(self._head)] = self._head
            return self._buffers.scratch_view[len(self._head) :]
        return self._buffers.scratch_view

    def take(self, count: int) -> list[Buffer]:
        """Give the frames that ``count`` more bytes completed.

        Raises WireError when a length is nonsense; the stream is of no use after that.
        """
        if self._own is not None:
            self._filled += count
            return [self._finish(self._own)] if self._filled == self._size else []
        end = len(self._head) + count
        self._head = b""
        frames: list[Buffer] = []
        view = self._buffers.scratch_view
        position = 0
        while end - position >= LENGTH_BYTES:
            size = _LENGTH.unpack_from(view, position)[0]
            if not FRAME_BYTES_MIN <= size <= self._frame_bytes_max:
                self._refuse(size, bytes(view[position : position + LENGTH_BYTES]))
            position += LENGTH_BYTES
            if position + size > end:
                self._begin(size, view[position:end])
                return frames
            make = bytes if size < WRITABLE_FRAME_BYTES else bytearray
            frames.append(make(view[position : position + size]))
            position += size
        self._head = bytes(view[position:end])
        return frames

    def _begin(self, size: int, beginning: memoryview) -> None:
        own = self._buffers.free_one(size) if size >= BIG_FRAME_BYTES else None
        if own is None:
            own = bytearray(self._step(size, max(2 * len(beginning), FIRST_STEP_BYTES)))
        own[: len(beginning)] = beginning
        self._own = own
        self._size = size
        self._filled = len(beginning)

    def _grow(self, own: bytearray) -> None:
        larger = self._buffers.free_one(self._size)
        if larger is None:
            larger = bytearray(self._step(self._size, 2 * len(own)))
        larger[: self._filled] = own
        self._own = larger

    def _step(self, size: int, wanted: int) -> int:
        """Give the size of the next buffer; whole steps, so that the next frame fits, too."""
        if wanted < size:
            return wanted
        if size < BIG_FRAME_BYTES:
            return size
        return -(-size // SIZE_STEP_BYTES) * SIZE_STEP_BYTES

    def _finish(self, own: bytearray) -> Buffer:
        self._own = None
        if self._size < BIG_FRAME_BYTES:
            return own  # which has exactly the frame's size
        self._buffers.keep(own)
        return memoryview(own)[: self._size]

    def _refuse(self, size: int, beginning: bytes) -> None:
        if beginning[:2] in _TLS_BEGINNINGS:
            raise WireError("these are TLS bytes, and this side speaks plaintext")
        if beginning in _HTTP_BEGINNINGS:
            raise WireError("this is HTTP, and this side speaks Kafka's protocol")
        if size < 0:
            raise WireError(f"frame of {size} bytes: a length cannot be negative")
        if size < FRAME_BYTES_MIN:
            raise WireError(f"frame of {size} bytes is shorter than any header")
        raise WireError(f"frame of {size} bytes is over {self._setting}={self._frame_bytes_max}")
