"""The helpers for logs do what their tests rely on."""

from pathlib import Path

import pytest

from support.batches import batch
from support.logs import FailingDisk, bytes_of, next_offset_after, open_log, read_all
from twinlog.model.errors import DiskError
from twinlog.wire.records.batch import check_crc, read_header


def test_a_failing_disk_writes_what_fits(tmp_path: Path) -> None:
    disk = FailingDisk()
    file = disk.open(str(tmp_path / "0.log"))
    other = disk.open(str(tmp_path / "0.index"))
    disk.bytes_left = 3
    disk.write(other, b"any", 0)
    with pytest.raises(DiskError, match="No space left"):
        disk.write(file, b"12345", 0)
    assert disk.read(file, 9, 0) == b"123"
    with pytest.raises(DiskError):
        disk.write(file, b"x", 3)


def test_batches_are_what_kafka_writes() -> None:
    content = batch(2, base_offset=7, timestamps=[5, 9], producer=(1, 2, 3))
    header = read_header(content, 0)
    check_crc(content, 0, header)
    assert (header.next_offset, header.max_timestamp) == (9, 9)


def test_a_log_is_read_from_start_to_end(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    content = batch(1) + batch(2, base_offset=1)
    log.append_as_follower(content)
    assert read_all(log) == content
    assert next_offset_after(content) == 3
    assert bytes_of(None) == b""
