"""Checkpoints of offsets in Kafka's format."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from twinlog.model.errors import DiskError
from twinlog.model.ids import Offset, TopicName, TopicPartition
from twinlog.storage.checkpoints import (
    CheckpointFile,
    decode_offsets,
    encode_offsets,
    read_checkpoint,
)
from twinlog.storage.disk import Disk, OpenFile

OFFSETS = {
    TopicPartition(TopicName("a.b"), 0): Offset(5),
    TopicPartition(TopicName("c"), 12): Offset(1 << 40),
}
OF = TopicPartition(TopicName("c"), 12)


class WaitingDisk(Disk):
    """A disk whose flushes last as long as a test wants, or fail."""

    __slots__ = ("failure", "is_syncing", "may_go_on")

    def __init__(self) -> None:
        self.is_syncing = threading.Event()
        self.may_go_on = threading.Event()
        self.failure: DiskError | None = None

    def sync(self, file: OpenFile) -> None:
        self.is_syncing.set()
        assert self.may_go_on.wait(60)
        if self.failure is not None:
            raise self.failure
        super().sync(file)


def test_the_format_is_kafkas() -> None:
    content = encode_offsets(OFFSETS)
    assert content == b"0\n2\na.b 0 5\nc 12 1099511627776\n"
    assert decode_offsets(content) == OFFSETS


@pytest.mark.parametrize("content", [b"", b"0\n1\n", b"9\n0\n", b"0\n1\na 0\n", b"0\n1\na x 1\n"])
def test_a_torn_file_is_not_believed(content: bytes) -> None:
    assert decode_offsets(content) is None


def test_a_file_is_replaced_whole_and_a_missing_one_says_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "checkpoint")
    assert read_checkpoint(Disk(), path) == {}
    CheckpointFile(Disk(), path).begin_write(OFFSETS)()
    assert read_checkpoint(Disk(), path) == OFFSETS
    assert [one.name for one in tmp_path.iterdir()] == ["checkpoint"]
    (tmp_path / "checkpoint").write_bytes(b"0\n7\n")
    assert read_checkpoint(Disk(), path) == {}


def test_what_was_taken_in_later_is_not_overwritten_by_a_write_that_took_longer(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "checkpoint")
    file = CheckpointFile(Disk(), path)
    write_earlier = file.begin_write(OFFSETS)
    write_later = file.begin_write({OF: Offset(7)})
    write_later()
    write_earlier()
    assert read_checkpoint(Disk(), path) == {OF: Offset(7)}


def test_a_write_waits_for_one_that_is_under_way(tmp_path: Path) -> None:
    path = str(tmp_path / "checkpoint")
    disk = WaitingDisk()
    file = CheckpointFile(disk, path)
    with ThreadPoolExecutor() as threads:
        earlier = threads.submit(file.begin_write(OFFSETS))
        assert disk.is_syncing.wait(60)
        later = threads.submit(file.begin_write({OF: Offset(7)}))
        disk.may_go_on.set()
        earlier.result(60)
        later.result(60)
    assert read_checkpoint(Disk(), path) == {OF: Offset(7)}


def test_offsets_are_those_of_the_moment_they_are_taken_in(tmp_path: Path) -> None:
    path = str(tmp_path / "checkpoint")
    offsets = {OF: Offset(7)}
    write = CheckpointFile(Disk(), path).begin_write(offsets)
    offsets[OF] = Offset(8)
    write()
    assert read_checkpoint(Disk(), path) == {OF: Offset(7)}


def test_a_write_that_failed_is_made_good_by_the_next(tmp_path: Path) -> None:
    path = str(tmp_path / "checkpoint")
    disk = WaitingDisk()
    disk.may_go_on.set()
    file = CheckpointFile(disk, path)
    disk.failure = DiskError("no space")
    with pytest.raises(DiskError):
        file.begin_write(OFFSETS)()
    disk.failure = None
    file.begin_write({OF: Offset(7)})()
    assert read_checkpoint(Disk(), path) == {OF: Offset(7)}


def test_a_name_is_known_as_long_as_the_file_or_a_write_under_way_may_have_it(
    tmp_path: Path,
) -> None:
    path = f"{tmp_path}/recovery-point-offset-checkpoint"
    CheckpointFile(Disk(), path).begin_write(OFFSETS)()
    file = CheckpointFile(Disk(), path)
    assert file.read() == OFFSETS
    assert all(file.may_name(of) for of in OFFSETS)
    older = file.begin_write({OF: Offset(6)})
    newer = file.begin_write({})
    assert file.may_name(OF)
    older()
    assert file.may_name(OF), "it stands in the file"
    newer()
    assert not file.may_name(OF)
