"""Compression: round trips, the framings of other clients, bombs and cut-off data."""

import gzip
import struct
import tracemalloc

import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from twinlog.model.errors import CorruptBatchError
from twinlog.wire.records.compression import (
    XERIAL_HEADER,
    Compression,
    compress,
    compression_of,
    decompress,
)

MANY = 1 << 20
REAL = [c for c in Compression if c is not Compression.NONE]

each = pytest.mark.parametrize("compression", list(Compression), ids=lambda c: c.name)
each_real = pytest.mark.parametrize("compression", REAL, ids=lambda c: c.name)


def plain_of(compression: Compression, data: bytes, max_bytes: int = MANY) -> bytes:
    return bytes(decompress(compression, data, max_bytes=max_bytes, offset=7))


@each
@given(plain=st.binary(max_size=100_000))
def test_what_is_compressed_comes_back(compression: Compression, plain: bytes) -> None:
    assert plain_of(compression, bytes(compress(compression, plain))) == plain


@each
def test_long_data_comes_back_from_any_kind_of_buffer(compression: Compression) -> None:
    plain = bytes(range(256)) * 3_000
    packed = compress(compression, memoryview(bytearray(plain)))
    assert bytes(decompress(compression, memoryview(packed), max_bytes=MANY)) == plain
    assert bytes(decompress(compression, bytearray(packed), max_bytes=MANY)) == plain


@each
def test_nothing_is_nothing(compression: Compression) -> None:
    assert plain_of(compression, bytes(compress(compression, b""))) == b""
    assert plain_of(compression, b"") == b""


@each
def test_the_bound_is_the_last_size_that_is_let_through(compression: Compression) -> None:
    packed = bytes(compress(compression, b"x" * 70_000))
    assert len(plain_of(compression, packed, max_bytes=70_000)) == 70_000
    with pytest.raises(CorruptBatchError, match=r"offset 7: .*more than 69999 bytes"):
        plain_of(compression, packed, max_bytes=69_999)


@pytest.mark.slow
@each_real
def test_a_bomb_is_refused_without_allocating_it(compression: Compression) -> None:
    bomb = bytes(compress(compression, bytes(200 << 20)))
    tracemalloc.start()
    with pytest.raises(CorruptBatchError, match="more than"):
        plain_of(compression, bomb, max_bytes=MANY)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < len(bomb) + 5 * MANY


def test_a_zstd_frame_that_names_its_size_is_bounded_too() -> None:
    bomb = zstandard.ZstdCompressor().compress(bytes(8 * MANY))
    with pytest.raises(CorruptBatchError, match="more than"):
        plain_of(Compression.ZSTD, bomb)


@pytest.mark.parametrize("kept", [3, 21, 200])
@pytest.mark.parametrize(
    "compression", [Compression.GZIP, Compression.SNAPPY, Compression.LZ4], ids=lambda c: c.name
)
def test_cut_off_data_is_not_taken_for_whole(compression: Compression, kept: int) -> None:
    packed = bytes(compress(compression, bytes(range(256)) * 40))[:kept]
    with pytest.raises(CorruptBatchError, match=f"{compression.name.lower()} data"):
        plain_of(compression, packed)


def test_cut_off_zstd_gives_less_which_the_count_of_records_then_shows() -> None:
    plain = bytes(range(256)) * 40
    assert len(plain_of(Compression.ZSTD, bytes(compress(Compression.ZSTD, plain))[:200])) == 0


@each_real
@given(noise=st.binary(min_size=1, max_size=300))
def test_noise_never_raises_anything_else(compression: Compression, noise: bytes) -> None:
    for data in (noise, bytes(compress(compression, b"abc" * 50))[:20] + noise):
        try:
            plain_of(compression, data, max_bytes=10_000)
        except CorruptBatchError:
            continue


def test_frames_that_follow_one_another_are_read_as_one() -> None:
    for compression in REAL:
        twice = bytes(compress(compression, b"one")) + bytes(compress(compression, b"two"))
        assert plain_of(compression, twice) == b"onetwo"


def test_raw_snappy_is_read_as_some_clients_write_it() -> None:
    assert plain_of(Compression.SNAPPY, snappy.compress(b"raw" * 100)) == b"raw" * 100


def test_snappy_is_written_in_the_framing_of_snappy_java() -> None:
    packed = bytes(compress(Compression.SNAPPY, b"x" * 40_000))
    assert packed.startswith(XERIAL_HEADER)
    (first,) = struct.unpack_from(">i", packed, 16)
    assert len(snappy.uncompress(packed[20 : 20 + first])) == 32 * 1024


def test_a_snappy_block_that_claims_too_much_is_refused_at_once() -> None:
    with pytest.raises(CorruptBatchError, match="claims to hold 1000000"):
        plain_of(Compression.SNAPPY, b"\xc0\x84\x3d" + b"\x00" * 5)


def test_a_xerial_block_longer_than_the_data_is_refused() -> None:
    with pytest.raises(CorruptBatchError, match="a block of 500 bytes where 2 are left"):
        plain_of(Compression.SNAPPY, XERIAL_HEADER + struct.pack(">i", 500) + b"ab")


def test_lz4_frames_are_as_kafka_reads_them() -> None:
    frame = lz4.frame.get_frame_info(bytes(compress(Compression.LZ4, b"x" * 200_000)))
    assert not frame["block_linked"]
    assert not frame["content_checksum"]
    assert frame["content_size"] == 0
    assert frame["block_size"] == 64 * 1024


def test_any_lz4_frame_is_read() -> None:
    packed = lz4.frame.compress(
        b"y" * 300_000, block_size=lz4.frame.BLOCKSIZE_MAX4MB, content_checksum=True
    )
    assert plain_of(Compression.LZ4, packed) == b"y" * 300_000


def test_zstd_frames_do_not_name_their_size_as_kafkas_do_not() -> None:
    packed = bytes(compress(Compression.ZSTD, b"z" * 1_000))
    assert zstandard.frame_content_size(packed) == -1


def test_gzip_is_a_gzip_file() -> None:
    assert gzip.decompress(bytes(compress(Compression.GZIP, b"hello"))) == b"hello"


def test_codecs_go_by_kafkas_names() -> None:
    assert compression_of("lz4") is Compression.LZ4
    with pytest.raises(ValueError, match=r"'lzo'; there are none, gzip, snappy, lz4, zstd"):
        compression_of("lzo")
