"""The five codecs of record batches behind one pair of functions.

Every decompression is bounded: what would grow past ``max_bytes`` is refused as soon as that is
known, and never allocated. The C libraries are imported when first needed, because a broker
passes batches on unread and often never needs any.
"""

import struct
import zlib
from enum import IntEnum
from io import BytesIO
from typing import Final

from twinlog.model.errors import CorruptBatchError, WireError
from twinlog.wire.primitives import Buffer, decode_uvarint


class Compression(IntEnum):
    """A codec as the low three bits of a batch's attributes name it."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


GZIP_LEVEL: Final = 6
ZSTD_LEVEL: Final = 3
CHUNK_BYTES: Final = 64 * 1024

# snappy-java's stream, which Kafka uses in place of snappy's own framing: this header (magic,
# version 1, oldest version 1), then blocks, each raw snappy after its length.
XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
XERIAL_HEADER: Final = XERIAL_MAGIC + struct.pack(">ii", 1, 1)
XERIAL_BLOCK_BYTES: Final = 32 * 1024

# The smallest snappy element copies at most 64 bytes and takes two: no honest block grows more.
SNAPPY_GROWTH_MAX: Final = 32


class _BadDataError(Exception):
    """What is wrong with compressed data, before it is known at which offset it lies."""


def compression_of(name: str) -> Compression:
    """Give the codec that Kafka's ``compression.type`` calls ``name``; ValueError if none does."""
    try:
        return Compression[name.upper()]
    except KeyError:
        known = ", ".join(c.name.lower() for c in Compression)
        raise ValueError(f"no compression is called {name!r}; there are {known}") from None


def compress(compression: Compression, plain: Buffer) -> Buffer:
    """Give ``plain`` compressed the way Kafka's own clients frame it."""
    match compression:
        case Compression.NONE:
            return plain
        case Compression.GZIP:
            return _compress_gzip(plain)
        case Compression.SNAPPY:
            return _compress_xerial(plain)
        case Compression.LZ4:
            return _compress_lz4(plain)
        case Compression.ZSTD:
            return _compress_zstd(plain)


def decompress(
    compression: Compression, data: Buffer, *, max_bytes: int, offset: int = -1
) -> Buffer:
    """Give what ``data`` holds, at most ``max_bytes`` of it.

    Raises CorruptBatchError, naming ``offset``, when there is more or the data is not what
    ``compression`` says.
    """
    try:
        return _decompress(compression, data, max_bytes)
    except _BadDataError as error:
        raise CorruptBatchError(offset, f"{compression.name.lower()} data: {error}") from error


def _decompress(compression: Compression, data: Buffer, max_bytes: int) -> Buffer:
    if not data:  # as in a batch that compaction emptied
        return b""
    match compression:
        case Compression.NONE:
            return _within(data, max_bytes)
        case Compression.GZIP:
            return _decompress_gzip(data, max_bytes)
        case Compression.SNAPPY:
            return _decompress_snappy(memoryview(data), max_bytes)
        case Compression.LZ4:
            return _decompress_lz4(data, max_bytes)
        case Compression.ZSTD:
            return _decompress_zstd(data, max_bytes)


def _within(data: Buffer, max_bytes: int) -> Buffer:
    if len(data) > max_bytes:
        raise _too_long(max_bytes)
    return data


def _too_long(max_bytes: int) -> _BadDataError:
    return _BadDataError(f"more than {max_bytes} bytes when decompressed")


class _Output:
    """Pieces of decompressed data, grown until ``max_bytes`` are passed."""

    def __init__(self, max_bytes: int) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._max_bytes = max_bytes

    def next_size(self) -> int:
        """Say how many bytes to ask for: twice as many as there are, one past the bound at most."""
        return min(max(CHUNK_BYTES, self._size), self._max_bytes - self._size + 1)

    def expect(self, size: int) -> None:
        """Raise _BadDataError if ``size`` more bytes would pass the bound."""
        if self._size + size > self._max_bytes:
            raise _too_long(self._max_bytes)

    def take(self, piece: bytes) -> None:
        """Keep a piece; raises _BadDataError when the bound is passed."""
        self.expect(len(piece))
        self._size += len(piece)
        self._pieces.append(piece)

    def whole(self) -> bytes:
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)


def _compress_gzip(plain: Buffer) -> bytes:
    deflater = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    return deflater.compress(plain) + deflater.flush()


def _decompress_gzip(data: Buffer, max_bytes: int) -> bytes:
    output = _Output(max_bytes)
    rest: Buffer = data
    while rest:  # a gzip file may have several members
        inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
        while True:
            try:
                piece = inflater.decompress(rest, output.next_size())
            except zlib.error as error:
                raise _BadDataError(str(error)) from error
            output.take(piece)
            if inflater.eof:
                break
            if not piece and not inflater.unconsumed_tail:
                raise _BadDataError("it is cut off")
            rest = inflater.unconsumed_tail
        rest = inflater.unused_data
    return output.whole()


def _compress_xerial(plain: Buffer) -> bytes:
    import snappy

    view = memoryview(plain)
    parts = [XERIAL_HEADER]
    for start in range(0, len(view), XERIAL_BLOCK_BYTES):
        block = bytes(snappy.compress(bytes(view[start : start + XERIAL_BLOCK_BYTES])))
        parts += (struct.pack(">i", len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: memoryview, max_bytes: int) -> bytes:
    """Read snappy-java's stream, or one raw block as some clients write it."""
    output = _Output(max_bytes)
    if not _is_xerial(data, 0):
        _take_snappy(output, data)
        return output.whole()
    position = 0
    while position < len(data):
        if _is_xerial(data, position):
            position += len(XERIAL_HEADER)  # streams may follow one another
            continue
        if position + 4 > len(data):
            raise _BadDataError("it is cut off")
        size = int.from_bytes(data[position : position + 4], "big")
        position += 4
        if size > len(data) - position:
            raise _BadDataError(f"a block of {size} bytes where {len(data) - position} are left")
        _take_snappy(output, data[position : position + size])
        position += size
    return output.whole()


def _is_xerial(data: memoryview, position: int) -> bool:
    return data[position : position + len(XERIAL_MAGIC)].tobytes() == XERIAL_MAGIC


def _take_snappy(output: _Output, block: memoryview) -> None:
    """Add one raw block; its length is read, and believed only if it can be, before its bytes."""
    import snappy

    try:
        size, _ = decode_uvarint(block, 0)
    except (IndexError, WireError) as error:
        raise _BadDataError("a block without a length") from error
    output.expect(size)
    if size > len(block) * SNAPPY_GROWTH_MAX:
        raise _BadDataError(f"a block of {len(block)} bytes claims to hold {size}")
    try:
        output.take(bytes(snappy.uncompress(bytes(block))))
    except snappy.UncompressError as error:
        raise _BadDataError(str(error)) from error


def _compress_lz4(plain: Buffer) -> bytes:
    import lz4.frame

    # Kafka's reader refuses linked blocks, and its writer names no content size.
    framed: bytes = lz4.frame.compress(
        plain, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False, store_size=False
    )
    return framed


def _decompress_lz4(data: Buffer, max_bytes: int) -> bytes:
    import lz4.frame

    output = _Output(max_bytes)
    rest: Buffer | None = data
    while rest:
        unframer = lz4.frame.LZ4FrameDecompressor()
        while not unframer.eof:
            try:
                piece = unframer.decompress(rest, max_length=output.next_size())
            except (RuntimeError, EOFError) as error:
                raise _BadDataError(str(error)) from error
            if not piece and unframer.needs_input and not unframer.eof:
                raise _BadDataError("it is cut off")
            output.take(piece)
            rest = b""
        rest = unframer.unused_data
    return output.whole()


def _compress_zstd(plain: Buffer) -> bytes:
    import zstandard

    # Kafka streams its records into the frame, so the frame does not name its content's size.
    parameters = zstandard.ZstdCompressionParameters.from_level(
        ZSTD_LEVEL, write_content_size=False, source_size=len(plain)
    )
    return zstandard.ZstdCompressor(compression_params=parameters).compress(plain)


def _decompress_zstd(data: Buffer, max_bytes: int) -> bytes:
    import zstandard

    output = _Output(max_bytes)
    # Not ZstdDecompressor.decompress(): it fails on a frame that names no size, and ignores its
    # own limit when the frame does name one.
    reader = zstandard.ZstdDecompressor().stream_reader(BytesIO(data), read_across_frames=True)
    try:
        while piece := reader.read(output.next_size()):
            output.take(piece)
    except zstandard.ZstdError as error:
        raise _BadDataError(str(error)) from error
    return output.whole()
