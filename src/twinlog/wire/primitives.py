"""The types a message field can have, and the varints they are built of."""

from functools import lru_cache
from typing import Annotated, Final, Protocol, TypeAlias
from uuid import UUID

from twinlog.model.errors import WireError

Int8: TypeAlias = Annotated[int, "int8"]
Int16: TypeAlias = Annotated[int, "int16"]
UInt16: TypeAlias = Annotated[int, "uint16"]
Int32: TypeAlias = Annotated[int, "int32"]
UInt32: TypeAlias = Annotated[int, "uint32"]
Int64: TypeAlias = Annotated[int, "int64"]
Float64: TypeAlias = Annotated[float, "float64"]

Buffer: TypeAlias = bytes | bytearray | memoryview


class Sized(Protocol):
    """Bytes that lie elsewhere (a file region): the codec needs only their number."""

    def __len__(self) -> int:
        """Give the number of bytes."""
        ...


RecordBytes: TypeAlias = Annotated[Buffer | Sized | None, "records"]
"""Record batches: a ``memoryview`` into the frame when decoded; any buffer or region to encode."""


NO_OPERATIONS: Final = -(1 << 31)
"""What stands in an int32 of authorized operations when they were not asked for (KIP-430)."""


def encode_uvarint(value: int) -> bytes:
    """Give ``value`` (>= 0) as an unsigned varint: 7 bits a byte, the lowest first."""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode_uvarint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read an unsigned varint (32 bits at most); give it and the position after it.

    Raises WireError when it has more bits, IndexError past the end.
    """
    value = shift = 0
    while shift < 28:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    if buffer[position] > 0x0F:
        raise WireError(f"varint longer than 5 bytes or 32 bits at byte {position}")
    return value | buffer[position] << 28, position + 1


def encode_varint(value: int) -> bytes:
    """Give a signed value of up to 64 bits as a zig-zag varint, as records use it."""
    return encode_uvarint((value << 1) ^ (value >> 63))


def decode_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read a zig-zag varint (64 bits at most); give it and the position after it.

    Raises WireError when it has more bits, IndexError past the end.
    """
    value = shift = 0
    while shift < 63:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
    if buffer[position] > 1:
        raise WireError(f"varint longer than 10 bytes or 64 bits at byte {position}")
    value |= buffer[position] << 63
    return (value >> 1) ^ -(value & 1), position + 1


@lru_cache(maxsize=8192)
def uuid_of(raw: bytes) -> UUID:
    """Give the UUID of 16 bytes; remembered, since topic ids come again with every request."""
    return UUID(bytes=raw)
