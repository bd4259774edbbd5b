"""No more files are open than allowed, and nobody is cut off from one they hold."""

import os
from pathlib import Path

from twinlog.storage.disk import Disk
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
