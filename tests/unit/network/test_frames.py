import struct

import pytest

from twinlog.model.errors import WireError
from twinlog.network.frames import (
    BIG_FRAME_BYTES,
    SCRATCH_BYTES,
    FrameReader,
    ReceiveBuffers,
)
from twinlog.wire.primitives import Buffer

LIMIT = 8 * 1024 * 1024


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def body_of(size: int) -> bytes:
    return bytes(range(256)) * (size // 256) + bytes(size % 256)


def feed(reader: FrameReader, stream: bytes, *, at_once: int = 1 << 30) -> list[Buffer]:
    """Push ``stream`` through as an event loop would, at most ``at_once`` bytes a read."""
    frames: list[Buffer] = []
    while stream:
        buffer = reader.buffer()
        count = min(len(buffer), len(stream), at_once)
        buffer[:count] = stream[:count]
        frames += reader.take(count)
        stream = stream[count:]
    return frames


def test_many_small_frames_in_one_read_come_out_in_order() -> None:
    bodies = [b"frame %06d" % number for number in range(1000)]
    reader = FrameReader(ReceiveBuffers(), LIMIT)
    assert feed(reader, b"".join(map(framed, bodies))) == bodies
    assert not reader.is_inside_frame


@pytest.mark.parametrize("at_once", [1, 2, 3, 5, 11, 13])
def test_frames_come_out_whole_however_they_are_cut(at_once: int) -> None:
    bodies = [body_of(size) for size in (8, 9, 100, 1000, 17)]
    reader = FrameReader(ReceiveBuffers(), LIMIT)
    assert feed(reader, b"".join(map(framed, bodies)), at_once=at_once) == bodies


@pytest.mark.parametrize("size", [BIG_FRAME_BYTES, SCRATCH_BYTES, SCRATCH_BYTES + 1, 5_000_000])
@pytest.mark.parametrize("at_once", [7_001, 1 << 20])
def test_big_frames_come_out_whole_between_small_ones(size: int, at_once: int) -> None:
    bodies = [b"small one", body_of(size), b"small two", body_of(size), b"small three"]
    reader = FrameReader(ReceiveBuffers(), LIMIT)
    assert feed(reader, b"".join(map(framed, bodies)), at_once=at_once) == bodies


def test_two_connections_share_the_scratch_buffer_without_mixing() -> None:
    buffers = ReceiveBuffers()
    one, two = FrameReader(buffers, LIMIT), FrameReader(buffers, LIMIT)
    first, second = framed(b"from number one"), framed(b"from number two")
    assert feed(one, first[:3]) == []
    assert feed(two, second[:2]) == []
    assert feed(one, first[3:9]) == []
    assert feed(two, second[2:]) == [b"from number two"]
    assert feed(one, first[9:]) == [b"from number one"]


def test_a_big_frame_is_received_into_a_buffer_used_before_once_nobody_holds_it() -> None:
    buffers = ReceiveBuffers()
    reader = FrameReader(buffers, LIMIT)
    size = 1_000_000
    (first,) = feed(reader, framed(body_of(size)))
    assert isinstance(first, memoryview)
    own = id(first.obj)
    piece = first[100:200]
    del first
    (second,) = feed(reader, framed(body_of(size)))
    assert isinstance(second, memoryview)
    assert id(second.obj) != own
    assert bytes(piece) == body_of(size)[100:200]
    del piece
    (third,) = feed(reader, framed(body_of(size)))
    assert isinstance(third, memoryview)
    assert id(third.obj) == own


def test_kept_buffers_are_bounded() -> None:
    buffers = ReceiveBuffers(kept_bytes_max=3_000_000)
    reader = FrameReader(buffers, LIMIT)
    held = [feed(reader, framed(body_of(1_000_000))) for _ in range(10)]
    assert buffers.kept_bytes <= 3_000_000
    assert all(frames == [body_of(1_000_000)] for frames in held)
    feed(reader, framed(body_of(4_000_000)))
    assert buffers.kept_bytes <= 3_000_000


def test_an_announced_frame_takes_memory_only_as_it_arrives() -> None:
    reader = FrameReader(ReceiveBuffers(), 1 << 30)
    feed(reader, struct.pack(">i", 1 << 29) + bytes(1000))
    assert reader.receiving_bytes == 1 << 29
    assert len(reader.buffer()) < 100_000
    feed(reader, bytes(200_000))
    assert len(reader.buffer()) < 500_000


@pytest.mark.parametrize(
    ("beginning", "why"),
    [
        (struct.pack(">i", -2), "negative"),
        (struct.pack(">i", 3), "shorter than any header"),
        (struct.pack(">i", LIMIT + 1), f"frame of {LIMIT + 1} bytes is over max.bytes={LIMIT}"),
        (b"\x16\x03\x01\x02\x00\x01", "TLS"),
        (b"GET / HTTP/1.1\r\n", "HTTP"),
        (b"POST /topics", "HTTP"),
    ],
)
def test_a_length_that_is_nonsense_is_refused_and_the_reason_told(
    beginning: bytes, why: str
) -> None:
    reader = FrameReader(ReceiveBuffers(), LIMIT, setting="max.bytes")
    with pytest.raises(WireError, match=why):
        feed(reader, beginning)
