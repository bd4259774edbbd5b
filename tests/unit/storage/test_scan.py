"""Walking over a file's batches gives each whole one, however the chunks fall."""

from pathlib import Path

import pytest

from support.batches import batch
from twinlog.model.errors import CorruptBatchError
from twinlog.storage.disk import Disk, OpenFile
from twinlog.storage.scan import (
    BATCH_CHUNK_BYTES,
    HEADER_CHUNK_BYTES,
    read_batch,
    scan_checked,
    scan_headers,
)

SIZES = [1, 500, HEADER_CHUNK_BYTES, 3, HEADER_CHUNK_BYTES - 61 - 12, 40_000, 1, 1]
BATCHES = [batch(1, base_offset=at, value_bytes=size) for at, size in enumerate(SIZES)]
CONTENT = b"".join(BATCHES)


def file_with(folder: Path, content: bytes) -> OpenFile:
    path = folder / "0.log"
    path.write_bytes(content)
    return Disk().open(str(path))


def test_headers_of_whole_batches_are_given(tmp_path: Path) -> None:
    file = file_with(tmp_path, CONTENT)
    found = list(scan_headers(Disk(), file, 0, len(CONTENT)))
    assert [header.base_offset for _, header in found] == list(range(len(SIZES)))
    assert [position for position, _ in found][:2] == [0, len(BATCHES[0])]
    cut = list(scan_headers(Disk(), file, len(BATCHES[0]), len(CONTENT) - 1))
    assert [header.base_offset for _, header in cut] == list(range(1, len(SIZES) - 1))
    position, header = found[5]
    assert read_batch(Disk(), file, position, header) == BATCHES[5]
    with pytest.raises(CorruptBatchError, match="ends inside"):
        read_batch(Disk(), file, len(CONTENT) - 10, header)


def test_checked_batches_come_with_their_bytes(tmp_path: Path) -> None:
    big = batch(1, base_offset=50, value_bytes=2 * BATCH_CHUNK_BYTES)
    content = CONTENT + big + BATCHES[0]
    file = file_with(tmp_path, content + BATCHES[1][:-1])
    found = [bytes(view) for _, _, view in scan_checked(Disk(), file, 0, len(content) + 100)]
    assert found == [*BATCHES, big, BATCHES[0]]


def test_a_wrong_crc_stops_only_the_checked_walk(tmp_path: Path) -> None:
    wrong = bytearray(CONTENT)
    wrong[-1] ^= 1
    file = file_with(tmp_path, bytes(wrong))
    assert len(list(scan_headers(Disk(), file, 0, len(wrong)))) == len(SIZES)
    with pytest.raises(CorruptBatchError, match=f"offset {len(SIZES) - 1}: CRC"):
        list(scan_checked(Disk(), file, 0, len(wrong)))


def test_a_file_shorter_than_it_should_be_ends_the_walk(tmp_path: Path) -> None:
    file = file_with(tmp_path, CONTENT)
    for scan in (scan_headers, scan_checked):
        found = list(scan(Disk(), file, 0, len(CONTENT) + 5_000))
        assert len(found) == len(SIZES)
