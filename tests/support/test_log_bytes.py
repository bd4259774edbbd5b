"""Tests of the comparison that all mirror tests rest on: it must see every difference."""

import struct
from pathlib import Path

import pytest

from support.log_bytes import assert_equal_logs, batches_of, compare_logs


def batch(base: int, count: int, payload: bytes = b"payload", *, epoch: int = 0) -> bytes:
    """Build bytes that look like a batch as far as the comparison reads them."""
    rest = struct.pack(">ibIhi", epoch, 2, 0xC5C, 0, count - 1) + bytes(30)
    rest += struct.pack(">i", count) + payload
    return struct.pack(">qi", base, len(rest)) + rest


def write(folder: Path, files: dict[int, bytes]) -> Path:
    folder.mkdir()
    for base, content in files.items():
        (folder / f"{base:020}.log").write_bytes(content)
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(tmp_path / "t-0", {0: batch(0, 5) + batch(5, 5), 10: batch(10, 10)})


def test_equal_batches_may_lie_in_different_segments(source: Path, tmp_path: Path) -> None:
    twin = write(tmp_path / "twin", {0: batch(0, 5), 5: batch(5, 5) + batch(10, 10)})
    found = assert_equal_logs(source, twin, start=0, end=20)
    assert (found.equal_batches, found.equal_bytes) == (3, 3 * 68)


def test_a_start_inside_a_batch_compares_that_batch_whole(source: Path, tmp_path: Path) -> None:
    twin = write(tmp_path / "twin", {5: batch(5, 5) + batch(10, 10)})
    assert assert_equal_logs(source, twin, start=7, end=20).equal_batches == 2


def test_what_lies_at_or_above_the_end_is_not_compared(source: Path, tmp_path: Path) -> None:
    twin = write(tmp_path / "twin", {0: batch(0, 5) + batch(5, 5) + batch(10, 3)})
    assert assert_equal_logs(source, twin, start=0, end=10).equal_batches == 2


def test_one_changed_byte_is_found_and_located(source: Path, tmp_path: Path) -> None:
    twin = write(tmp_path / "twin", {0: batch(0, 5) + batch(5, 5, b"payloaD") + batch(10, 10)})
    with pytest.raises(AssertionError, match=r"after 1 equal .* offsets 5-9 .* byte at 67"):
        assert_equal_logs(source, twin, start=0, end=20)


def test_a_changed_leader_epoch_is_a_difference(source: Path, tmp_path: Path) -> None:
    twin = write(tmp_path / "twin", {0: batch(0, 5, epoch=1) + batch(5, 5) + batch(10, 10)})
    assert "first different byte at 15" in str(
        compare_logs(source, twin, start=0, end=20).first_difference
    )


def test_a_missing_batch_is_found(source: Path, tmp_path: Path) -> None:
    twin = write(tmp_path / "twin", {0: batch(0, 5) + batch(5, 5)})
    assert "destination has no further batch, the source has offsets 10-19" in str(
        compare_logs(source, twin, start=0, end=20).first_difference
    )


def test_a_batch_too_many_is_found(source: Path, tmp_path: Path) -> None:
    twin = write(tmp_path / "twin", {0: batch(0, 5) + batch(5, 5) + batch(10, 10) + batch(20, 1)})
    assert "source has no further batch" in str(
        compare_logs(source, twin, start=0, end=25).first_difference
    )


def test_a_repeated_batch_is_found_as_a_difference(source: Path, tmp_path: Path) -> None:
    twin = write(tmp_path / "twin", {0: batch(0, 5) + batch(0, 5) + batch(5, 5) + batch(10, 10)})
    assert compare_logs(source, twin, start=0, end=20).first_difference is not None


def test_a_torn_tail_is_not_a_batch(tmp_path: Path) -> None:
    folder = write(tmp_path / "t-0", {0: batch(0, 5) + batch(5, 5)[:-1]})
    assert [each.base_offset for each in batches_of(folder)] == [0]
