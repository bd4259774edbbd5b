"""The real disk does what it says, and names the file when it cannot."""

import os
from pathlib import Path

import pytest

from twinlog.model.errors import DiskError
from twinlog.storage.disk import Disk

DISK = Disk()


def test_what_is_written_is_read(tmp_path: Path) -> None:
    file = DISK.open(str(tmp_path / "f"))
    DISK.write(file, b"hello", 0)
    DISK.write(file, memoryview(b"p me")[0:4], 3)
    assert DISK.read(file, 99, 1) == b"elp me"
    DISK.truncate(file, 4)
    DISK.sync(file)
    assert DISK.size_bytes(file.path) == 4
    assert DISK.modified_ms(file.path) > 0


def test_a_short_write_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, content, at: real(fd, content[:3], at))
    file = DISK.open(str(tmp_path / "f"))
    DISK.write(file, b"0123456789", 2)
    assert DISK.read(file, 99, 2) == b"0123456789"


def test_a_copy_is_whole_or_tells_where_its_source_ends(tmp_path: Path) -> None:
    source, copy = DISK.open(str(tmp_path / "f")), DISK.open(str(tmp_path / "g"))
    DISK.write(source, b"0123456789", 0)
    DISK.copy(source, 2, 5, copy, 1)
    assert DISK.read(copy, 99, 0) == b"\x0023456"
    with pytest.raises(DiskError, match=r"/f: it has no 9 bytes at 2"):
        DISK.copy(source, 2, 9, copy, 0)


def test_a_small_file_is_replaced_whole(tmp_path: Path) -> None:
    path = str(tmp_path / "f")
    assert DISK.read_whole(path) is None
    (tmp_path / "f.tmp").write_bytes(b"left by a crash, and longer")
    for is_synced in (True, False):
        DISK.replace(path, b"content", is_synced=is_synced)
        assert DISK.read_whole(path) == b"content"
    assert DISK.names_in(str(tmp_path)) == ["f"]


def test_what_is_missing_is_no_error_where_that_is_natural(tmp_path: Path) -> None:
    missing = str(tmp_path / "x" / "y")
    assert DISK.size_bytes(missing) == 0
    assert DISK.names_in(missing) == []
    assert not DISK.exists(missing)
    DISK.remove(missing)
    DISK.remove_folder(missing)
    DISK.make_folder(missing)
    DISK.make_folder(missing)
    (tmp_path / "x" / "y" / "f").write_bytes(b"")
    DISK.remove_folder(missing)
    assert not DISK.exists(missing)


def test_a_failure_names_the_file_and_the_cause(tmp_path: Path) -> None:
    missing = str(tmp_path / "none" / "f")
    with pytest.raises(DiskError, match=f"cannot open {missing}: No such file"):
        DISK.open(missing)
    with pytest.raises(DiskError, match="cannot rename"):
        DISK.rename(missing, missing + "2")
    with pytest.raises(DiskError, match="cannot look at"):
        DISK.modified_ms(missing)
    blocked = str(tmp_path / "f" / "g")
    (tmp_path / "f").write_bytes(b"")
    with pytest.raises(DiskError, match="Not a directory"):
        DISK.read_whole(blocked)
    with pytest.raises(DiskError, match="Not a directory"):
        DISK.size_bytes(blocked)
    file = DISK.open(str(tmp_path / "f"))
    with pytest.raises(DiskError, match="cannot read"):
        DISK.read(file, 1, -1)
    with pytest.raises(DiskError, match="cannot write"):
        DISK.write(file, b"x", -1)
