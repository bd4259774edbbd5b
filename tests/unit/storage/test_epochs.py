"""The epoch file says what the history says, before a log is taken for safe on disk."""

from pathlib import Path

import pytest

from twinlog.model.epochs import EpochHistory, EpochStart
from twinlog.model.ids import LeaderEpoch, Offset
from twinlog.storage.disk import Disk
from twinlog.storage.epochs import EpochFile, decode_epochs, encode_epochs


def history(*pairs: tuple[int, int]) -> EpochHistory:
    return EpochHistory([EpochStart(LeaderEpoch(epoch), Offset(at)) for epoch, at in pairs])


def on_disk(folder: Path) -> str:
    return (folder / "leader-epoch-checkpoint").read_text()


def test_the_format_is_kafkas() -> None:
    content = encode_epochs(history((0, 0), (4, 100)))
    assert content == b"0\n2\n0 0\n4 100\n"
    assert decode_epochs(content) == history((0, 0), (4, 100))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"0\n2\n0 0\n",
        b"1\n0\n",
        b"0\n1\n1 2 3\n",
        b"0\n1\nx y\n",
        b"0\n2\n1 5\n1 6\n",
        b"\xff",
    ],
)
def test_anything_else_is_not_believed(content: bytes) -> None:
    assert decode_epochs(content) is None


def test_what_began_is_noted_and_written_once_it_is_saved(tmp_path: Path) -> None:
    file = EpochFile(Disk(), str(tmp_path))
    file.begin([(-1, 0), (2, 5), (3, 9)])
    assert list(tmp_path.iterdir()) == []
    file.save()
    assert on_disk(tmp_path) == "0\n2\n2 5\n3 9\n"


def test_what_was_put_back_is_what_is_written(tmp_path: Path) -> None:
    file = EpochFile(Disk(), str(tmp_path))
    file.begin([(2, 5)])
    file.save()
    before = file.history.entries
    file.begin([(3, 9)])
    file.put_back(before)
    file.save()
    assert on_disk(tmp_path) == "0\n1\n2 5\n"


def test_what_is_cut_off_is_cut_off_on_disk_at_once(tmp_path: Path) -> None:
    file = EpochFile(Disk(), str(tmp_path))
    assert not file.read()
    file.begin([(-1, 0), (2, 5), (3, 9)])
    file.save()
    assert on_disk(tmp_path) == "0\n2\n2 5\n3 9\n"
    file.cut_at(9)
    assert on_disk(tmp_path) == "0\n1\n2 5\n"
    file.begin_at(7)
    assert on_disk(tmp_path) == "0\n1\n2 7\n"
    again = EpochFile(Disk(), str(tmp_path))
    assert again.read()
    assert again.history == history((2, 7))
    file.clear()
    assert on_disk(tmp_path) == "0\n0\n"


def test_nothing_is_written_when_nothing_changed(tmp_path: Path) -> None:
    file = EpochFile(Disk(), str(tmp_path))
    file.begin([(2, 5)])
    file.save()
    (tmp_path / "leader-epoch-checkpoint").unlink()
    file.begin([(2, 8)])
    file.cut_at(100)
    file.begin_at(3)
    assert list(tmp_path.iterdir()) == []
