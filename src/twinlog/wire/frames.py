"""The four-byte length before every frame, and the headers' place behind it."""

import struct
from typing import Final

from twinlog.wire.codec import Parts

LENGTH_BYTES: Final = 4
_LENGTH: Final = struct.Struct(">i")


def with_length(parts: Parts) -> Parts:
    """Put the frame's length before ``parts``."""
    return [_LENGTH.pack(sum(len(part) for part in parts)), *parts]


def frame_length(buffer: bytes | bytearray | memoryview, position: int = 0) -> int:
    """Read the length of the frame that begins at ``position``; it may be nonsense, so check."""
    length: int = _LENGTH.unpack_from(buffer, position)[0]
    return length
