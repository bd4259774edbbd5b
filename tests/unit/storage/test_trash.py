"""What is given up is renamed at once and removed after its delay."""

from pathlib import Path

from support.logs import home


def test_files_wait_from_the_first_time_they_are_seen(tmp_path: Path) -> None:
    trash = home().trash
    path = tmp_path / "0.log"
    path.write_bytes(b"x")
    trash.add(str(path))
    trash.add(str(tmp_path / "missing"))
    assert len(trash) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["0.log.deleted"]
    assert trash.take_due(1_000, 60) == []
    assert trash.take_due(1_059, 60) == []
    due = trash.take_due(1_060, 60)
    assert trash.take_due(9_999, 60) == []
    trash.empty(due)
    assert list(tmp_path.iterdir()) == []


def test_folders_go_with_all_they_hold(tmp_path: Path) -> None:
    trash = home().trash
    folder = tmp_path / "a-0.x-delete"
    folder.mkdir()
    (folder / "f").write_bytes(b"")
    trash.add_folder(str(folder))
    trash.empty(trash.take_due(0, 0))
    assert not folder.exists()


def test_what_could_not_be_removed_waits_again(tmp_path: Path) -> None:
    trash = home().trash
    path = tmp_path / "0.log"
    path.write_bytes(b"x")
    trash.add(str(path))
    due = trash.take_due(0, 0)
    trash.put_back(due)
    assert trash.take_due(100, 60) == []
    assert trash.take_due(160, 60) == due
    trash.empty([*due, *due])
    assert list(tmp_path.iterdir()) == []
