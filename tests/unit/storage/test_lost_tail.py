"""What a log is about to lose is copied whole, once, and named by its offsets."""

from pathlib import Path
from uuid import UUID

import pytest

from support.batches import batch
from support.logs import FailingDisk, open_log
from twinlog.model.errors import DiskError
from twinlog.model.ids import TopicName, TopicPartition
from twinlog.storage.disk import Disk, OpenFile
from twinlog.storage.folders import partition_of_folder
from twinlog.storage.log import PartitionLog
from twinlog.storage.logs import Logs
from twinlog.storage.lost_tail import COMPARED_BYTES, LogTail
from twinlog.storage.settings import LogSettings

SMALL = LogSettings(segment_bytes=300)


def filled(folder: Path, disk: Disk | None = None) -> PartitionLog:
    """Open a log of ten batches of two records, in several segments."""
    made = folder / "orders-3"
    made.mkdir(exist_ok=True)
    log = open_log(made, SMALL, disk=disk) if disk else open_log(made, SMALL)
    if log.end == 0:
        for at in range(0, 20, 2):
            log.append_as_follower(batch(2, base_offset=at))
    assert log.segment_count > 2
    return log


def tail_of(log: PartitionLog, offset: int) -> LogTail:
    tail = log.tail_from(offset)
    assert tail is not None
    return tail


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_file())


def test_a_tail_over_several_segments_is_copied_unchanged(tmp_path: Path) -> None:
    log = filled(tmp_path)
    expected = b"".join(batch(2, base_offset=at) for at in range(4, 20, 2))
    saved = tail_of(log, 4).save()
    assert Path(saved.path).name == "00000000000000000004.to-20.orders-3.lost.log"
    assert Path(saved.path).read_bytes() == expected
    assert saved.size_bytes == len(expected)
    log.truncate_to(4)
    assert Path(saved.path).read_bytes() == expected


def test_a_batch_that_a_cut_takes_whole_is_copied_whole(tmp_path: Path) -> None:
    log = filled(tmp_path)
    tail = tail_of(log, 5)
    assert (tail.first, tail.end) == (4, 20)
    log.truncate_to(5)
    assert log.end == tail.first


def test_nothing_is_lost_by_a_cut_at_the_end(tmp_path: Path) -> None:
    log = filled(tmp_path)
    assert log.tail_from(20) is None
    assert tail_of(log, 0).first == 0


def test_a_copy_that_is_there_already_is_not_made_again(tmp_path: Path) -> None:
    log = filled(tmp_path)
    first = tail_of(log, 4).save()
    (tmp_path / (Path(first.path).name + ".tmp")).write_bytes(b"left by a kill")
    assert tail_of(log, 4).save() == first
    assert len([name for name in files_in(tmp_path) if name.endswith(".log")]) == 1


def test_what_a_kill_left_of_a_copy_is_written_over(tmp_path: Path) -> None:
    log = filled(tmp_path)
    name = "00000000000000000018.to-20.orders-3.lost.log"
    (tmp_path / (name + ".tmp")).write_bytes(b"left by a kill" * 1_000)
    assert Path(tail_of(log, 18).save().path).read_bytes() == batch(2, base_offset=18)
    assert files_in(tmp_path) == [name]


def test_the_same_offsets_lost_again_with_other_records_are_kept_beside(tmp_path: Path) -> None:
    log = filled(tmp_path)
    first = tail_of(log, 18).save()
    log.truncate_to(18)
    other = batch(2, base_offset=18, timestamp=999)
    log.append_as_follower(other)
    second = tail_of(log, 18).save()
    assert Path(second.path).name == "00000000000000000018.to-20.orders-3.lost-2.log"
    assert Path(second.path).read_bytes() == other
    assert Path(first.path).read_bytes() == batch(2, base_offset=18)


def test_a_full_disk_leaves_neither_a_copy_nor_a_part_of_one(tmp_path: Path) -> None:
    disk = FailingDisk()
    log = filled(tmp_path, disk)
    tail = tail_of(log, 0)
    disk.failing_suffix, disk.bytes_left = ".tmp", 100
    with pytest.raises(DiskError, match=r"lost\.log\.tmp"):
        tail.save()
    assert files_in(tmp_path) == []
    disk.bytes_left = 1 << 60
    assert tail.save().size_bytes == tail.size_bytes


def test_the_copy_and_its_name_have_reached_the_disk_before_it_counts(tmp_path: Path) -> None:
    synced: list[str] = []

    class NotingDisk(Disk):
        def sync(self, file: OpenFile) -> None:
            synced.append(file.path)

    tail = tail_of(filled(tmp_path, NotingDisk()), 4)
    for _ in range(2):  # made, and found
        synced.clear()
        path = tail.save().path
        assert [one.removesuffix(".tmp") for one in synced] == [path, str(tmp_path)]


def test_a_large_batch_is_copied_and_compared_in_pieces(tmp_path: Path) -> None:
    folder = tmp_path / "orders-3"
    folder.mkdir()
    log = open_log(folder)
    large = batch(1, value_bytes=2 * COMPARED_BYTES + 17)
    log.append_as_follower(large)
    saved = tail_of(log, 0).save()
    assert Path(saved.path).read_bytes() == large
    assert tail_of(log, 0).save() == saved


def test_the_longest_topic_name_has_room(tmp_path: Path) -> None:
    topic = "t" * 249
    folder = tmp_path / f"{topic}-3"
    folder.mkdir()
    log = open_log(folder)
    log.append_as_follower(batch(1))
    name = Path(tail_of(log, 0).save().path).name
    assert len(name) < 255
    assert name.endswith(".lost.log")


def test_a_tail_outlives_its_topic_and_is_no_log_to_the_loader(tmp_path: Path) -> None:
    of = TopicPartition(TopicName("orders"), 3)
    log = filled(tmp_path)
    saved = tail_of(log, 4).save()
    log.close(is_clean=True)
    logs = Logs([str(tmp_path)])
    logs.load(lambda _: SMALL, 0)
    assert [log.of for log in logs] == [of]
    logs.delete(of, UUID(int=1))
    logs.empty_trash(logs.take_trash(0, 0))
    logs.close(is_clean=True)
    assert Path(saved.path).exists()
    assert partition_of_folder(Path(saved.path).name) is None
