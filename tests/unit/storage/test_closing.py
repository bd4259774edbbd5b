"""A clean stop's flush: several logs wait together, and one that fails keeps none from it."""

from pathlib import Path
from threading import Barrier

import pytest

from support.batches import batch
from support.logs import HastyDisk, home
from twinlog.model.errors import DiskError
from twinlog.model.ids import TopicName, TopicPartition
from twinlog.storage import closing
from twinlog.storage.closing import flush_for_good
from twinlog.storage.disk import Disk, OpenFile
from twinlog.storage.log import PartitionLog
from twinlog.storage.settings import LogSettings


def written(folder: Path, count: int, disk: Disk) -> list[PartitionLog]:
    shared = home(disk)
    logs = []
    for index in range(count):
        of = TopicPartition(TopicName("t"), index)
        (folder / str(of)).mkdir()
        log = PartitionLog.open(f"{folder}/{of}", of, LogSettings(), home=shared, is_clean=True)
        log.append_as_leader(batch(2), leader_epoch=0, now_ms=1)
        logs.append(log)
    return logs


def test_logs_wait_for_the_disk_together(tmp_path: Path) -> None:
    class Meeting(HastyDisk):
        """Lets a flush through only when another one waits too."""

        def sync(self, file: OpenFile) -> None:
            both.wait(60)

    both = Barrier(2)
    logs = written(tmp_path, 2, Meeting())
    assert flush_for_good(logs) == []
    assert [log.recovery_point for log in logs] == [2, 2]


def test_few_files_are_held_open_whatever_the_number_of_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closing, "FILES_AT_ONCE_MAX", 2)
    logs = written(tmp_path, 5, HastyDisk())
    assert flush_for_good(logs) == []
    assert [log.recovery_point for log in logs] == [2] * 5


def test_a_log_that_fails_keeps_none_from_its_flush(tmp_path: Path) -> None:
    class Partly(HastyDisk):
        def sync(self, file: OpenFile) -> None:
            if "/t-1/" in file.path:
                raise DiskError(f"cannot flush {file.path}: Input/output error")

    logs = written(tmp_path, 3, Partly())
    (failure,) = flush_for_good(logs)
    assert "/t-1/" in failure
    assert [log.recovery_point for log in logs] == [2, 0, 2]
    (again,) = flush_for_good(logs)
    assert "takes no more records" in again


def test_what_has_reached_the_disk_is_not_waited_for_again(tmp_path: Path) -> None:
    class Counting(HastyDisk):
        count = 0

        def sync(self, file: OpenFile) -> None:
            self.count += 1

    disk = Counting()
    logs = written(tmp_path, 1, disk)
    assert flush_for_good(logs) == []
    count = disk.count
    assert flush_for_good(logs) == []
    assert disk.count == count > 0
