"""No more files are open than allowed, and nobody is cut off from one they hold."""

import errno
import os
from pathlib import Path

import pytest

from twinlog.model.errors import DiskError
from twinlog.storage.disk import Disk, OpenFile
from twinlog.storage.open_files import OpenFiles


def test_the_least_recently_used_is_let_go(tmp_path: Path) -> None:
    files = OpenFiles(Disk(), files_max=2)
    first = files.get(str(tmp_path / "a"))
    second = files.get(str(tmp_path / "b"))
    assert files.get(str(tmp_path / "a")) is first
    files.get(str(tmp_path / "c"))
    assert len(files) == 2
    assert files.get(str(tmp_path / "b")) is not second
    os.fstat(second.fileno())  # still open: we hold it
    descriptor = second.fileno()
    del second
    assert not Path(f"/proc/self/fd/{descriptor}").is_symlink()


def test_a_forgotten_file_is_opened_anew(tmp_path: Path) -> None:
    files = OpenFiles(Disk())
    path = str(tmp_path / "a")
    first = files.get(path)
    files.forget(path)
    files.forget(path)
    assert files.get(path) is not first


class Crowded(Disk):
    """A disk in a process that has one descriptor left for files, or none."""

    open_count = 0
    error_number = errno.EMFILE

    def open(self, path: str) -> OpenFile:
        self.open_count += 1
        if self.open_count % 2 == 0:
            cause = OSError(self.error_number, "Too many open files")
            raise DiskError(f"cannot open {path}: {cause.strerror}") from cause
        return super().open(path)


def test_files_that_are_only_kept_make_room_when_descriptors_run_out(tmp_path: Path) -> None:
    files = OpenFiles(Crowded())
    files.get(str(tmp_path / "a"))
    assert files.get(str(tmp_path / "b")).path.endswith("b")
    assert len(files) == 1


def test_other_failures_are_told_at_once(tmp_path: Path) -> None:
    disk = Crowded()
    disk.error_number = errno.EIO
    files = OpenFiles(disk)
    files.get(str(tmp_path / "a"))
    with pytest.raises(DiskError):
        files.get(str(tmp_path / "b"))
    assert disk.open_count == 2
    assert len(files) == 1
