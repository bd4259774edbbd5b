"""The four-byte length before every frame."""

import struct
from typing import Final

from twinlog.wire.codec import Parts

LENGTH_BYTES: Final = 4
_LENGTH: Final = struct.Struct(">i")


def with_length(header: bytes, body: Parts) -> Parts:
    """Give a whole frame: its length, the header and the body, the small things as one buffer."""
    length = len(header) + sum(map(len, body))
    first = body[0]
    if isinstance(first, bytes) and len(first) < 65_536:
        return [b"".join((_LENGTH.pack(length), header, first)), *body[1:]]
    return [_LENGTH.pack(length) + header, *body]


def frame_length(buffer: bytes | bytearray | memoryview, position: int = 0) -> int:
    """Read the length of the frame that begins at ``position``; it may be nonsense, so check."""
    length: int = _LENGTH.unpack_from(buffer, position)[0]
    return length
