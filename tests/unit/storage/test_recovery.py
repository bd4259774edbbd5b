"""After a crash nothing that was written is lost, and nothing that is torn is kept."""

import shutil
from pathlib import Path

import pytest

from support.batches import batch, marker
from support.logs import HastyDisk, open_log, read_all
from twinlog.model.errors import DiskError
from twinlog.storage.disk import OpenFile
from twinlog.storage.log import PartitionLog
from twinlog.storage.settings import LogSettings
from twinlog.storage.txn_index import AbortedTxn
from twinlog.wire.primitives import Buffer
from twinlog.wire.records.batch import iter_headers

SETTINGS = LogSettings(segment_bytes=600, index_interval_bytes=100)
BATCHES = [
    batch(2, base_offset=0, leader_epoch=0, producer=(1, 0, 0)),
    batch(1, base_offset=2, leader_epoch=0, producer=(2, 0, 0), is_transactional=True),
    batch(1, base_offset=3, leader_epoch=2, value_bytes=90),
    marker(0, base_offset=4, leader_epoch=2, producer_id=2),
    batch(3, base_offset=9, leader_epoch=3, producer=(1, 0, 2)),
]


def filled(folder: Path, settings: LogSettings = SETTINGS) -> PartitionLog:
    log = open_log(folder, settings)
    log.append_as_follower(b"".join(BATCHES))
    return log


def crashed(folder: Path, *, recovery_point: int = 0, log_start: int = 0) -> PartitionLog:
    return open_log(
        folder, SETTINGS, is_clean=False, recovery_point=recovery_point, log_start=log_start
    )


def index_bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*index"))}


@pytest.mark.slow
def test_a_log_cut_at_any_byte_keeps_the_whole_batches_before_it(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    filled(whole, LogSettings()).close(is_clean=False)
    content = b"".join(BATCHES)
    name = f"{0:020d}.log"
    for cut in range(len(content) + 1):
        folder = tmp_path / "cut"
        shutil.copytree(whole, folder)
        (folder / name).write_bytes(content[:cut])
        log = open_log(folder, is_clean=False)
        kept = list(iter_headers(content[:cut]))
        size = kept[-1][0] + kept[-1][1].length if kept else 0
        assert log.end == (kept[-1][1].next_offset if kept else 0)
        assert (folder / name).stat().st_size == log.size_bytes == size
        assert log.cut_bytes == cut - size
        assert log.epochs.latest == max((header.leader_epoch for _, header in kept), default=-1)
        assert read_all(log) == content[:size]
        shutil.rmtree(folder)


@pytest.mark.parametrize("at", [0, 30, 70, 120, 200])
def test_a_wrong_byte_ends_the_log_before_its_batch(tmp_path: Path, at: int) -> None:
    filled(tmp_path, LogSettings()).close(is_clean=False)
    path = tmp_path / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    content[at] ^= 0xFF
    path.write_bytes(content)
    good = 0
    for one in BATCHES:
        if good + len(one) > at:
            break
        good += len(one)
    assert open_log(tmp_path, is_clean=False).size_bytes == good


def test_indexes_producers_and_transactions_are_made_again(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.close(is_clean=True)
    before = index_bytes(tmp_path)
    for path in [*tmp_path.glob("*index"), *tmp_path.glob("*.snapshot")]:
        path.unlink()
    (tmp_path / "leader-epoch-checkpoint").unlink()
    again = crashed(tmp_path)
    again.close(is_clean=True)
    assert index_bytes(tmp_path) == before
    assert again.epochs == log.epochs
    assert again.producer_count == 2
    assert again.aborted_between(0, 20) == [AbortedTxn(2, 2, 4, 5)]


def test_segments_before_the_recovery_point_are_not_read(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.append_as_follower(
        b"".join(batch(1, base_offset=at, value_bytes=90) for at in range(20, 30))
    )
    assert log.segment_count > 2
    log.flush()
    first = tmp_path / f"{0:020d}.log"
    first.write_bytes(b"x" * first.stat().st_size)
    again = crashed(tmp_path, recovery_point=log.recovery_point)
    assert (again.end, again.cut_bytes) == (log.end, 0)
    assert again.epochs == log.epochs


def test_the_epochs_are_in_their_file_before_the_recovery_point_passes_them(
    tmp_path: Path,
) -> None:
    log = filled(tmp_path)
    path = tmp_path / "leader-epoch-checkpoint"
    assert not path.exists()
    log.begin_flush()
    assert path.read_text() == "0\n3\n0 0\n2 3\n3 9\n"


def test_what_follows_a_torn_segment_goes(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.append_as_follower(
        b"".join(batch(1, base_offset=at, value_bytes=90) for at in range(20, 30))
    )
    log.close(is_clean=False)
    first = tmp_path / f"{0:020d}.log"
    first.write_bytes(first.read_bytes()[:-1])
    again = crashed(tmp_path)
    assert again.segment_count == 1
    assert read_all(again) == b"".join(BATCHES[:-1])[: again.size_bytes]
    assert sorted(path.name for path in tmp_path.glob("*.log")) == [first.name]
    done = again.append_as_follower(batch(1, base_offset=again.end))
    assert done.last_offset == again.end - 1


def test_a_torn_tail_is_found_even_after_a_stop_that_looks_clean(tmp_path: Path) -> None:
    log = filled(tmp_path, LogSettings())
    log.close(is_clean=True)
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(path.read_bytes() + b"\0" * 70)
    again = open_log(tmp_path)
    assert (again.end, again.cut_bytes) == (12, 70)


def test_a_missing_index_is_made_again_after_a_clean_stop(tmp_path: Path) -> None:
    filled(tmp_path).close(is_clean=True)
    before = index_bytes(tmp_path)
    (tmp_path / f"{0:020d}.index").unlink()
    assert open_log(tmp_path, SETTINGS).end == 12
    assert index_bytes(tmp_path) == before


def test_the_epoch_of_a_batch_that_never_came_is_forgotten(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.close(is_clean=False)
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text("0\n4\n0 0\n2 3\n3 9\n8 12\n")
    assert crashed(tmp_path).epochs == log.epochs
    assert path.read_text() == "0\n3\n0 0\n2 3\n3 9\n"


def test_leftovers_go_and_an_unfinished_compaction_is_left_to_its_broker(tmp_path: Path) -> None:
    filled(tmp_path).close(is_clean=True)
    for name in ("0.log.deleted", "1.log.cleaned", "x.tmp"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / f"{99:020d}.index").write_bytes(b"")
    open_log(tmp_path, SETTINGS)
    assert not [one for one in tmp_path.iterdir() if one.suffix in {".deleted", ".cleaned", ".tmp"}]
    assert not (tmp_path / f"{99:020d}.index").exists()
    (tmp_path / f"{0:020d}.log.swap").write_bytes(b"")
    with pytest.raises(DiskError, match="middle of a compaction"):
        open_log(tmp_path, SETTINGS)


def test_a_log_that_ends_before_its_start_begins_anew(tmp_path: Path) -> None:
    filled(tmp_path).close(is_clean=False)
    again = crashed(tmp_path, log_start=50)
    assert (again.start, again.end, again.size_bytes) == (50, 50, 0)
    assert again.epochs.entries == []


def test_an_empty_folder_becomes_a_log_at_its_start(tmp_path: Path) -> None:
    log = open_log(tmp_path, log_start=7)
    assert (log.start, log.end) == (7, 7)
    assert {path.name for path in tmp_path.glob(f"{7:020d}.*")} == {
        f"{7:020d}.log",
        f"{7:020d}.index",
        f"{7:020d}.timeindex",
    }


def test_a_batch_that_went_bad_after_a_clean_stop_ends_the_log(tmp_path: Path) -> None:
    filled(tmp_path, LogSettings()).close(is_clean=True)
    for path in tmp_path.glob("*.snapshot"):
        path.unlink()
    path = tmp_path / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    control = sum(map(len, BATCHES[:3]))
    content[control + 61 :] = bytes(len(content) - control - 61)
    path.write_bytes(content)
    assert open_log(tmp_path).end == 4


def test_what_a_failed_flush_may_have_left_in_memory_alone_is_written_again(tmp_path: Path) -> None:
    """The system takes it for written, so that no later flush would write it."""

    class NotingDisk(HastyDisk):
        def __init__(self) -> None:
            self.written: list[tuple[int, bytes]] = []

        def write(self, file: OpenFile, content: Buffer, position: int) -> None:
            if file.path.endswith(".log"):
                self.written.append((position, bytes(content)))
            super().write(file, content, position)

    filled(tmp_path, LogSettings()).close(is_clean=False)
    disk = NotingDisk()
    log = open_log(tmp_path, disk=disk, recovery_point=3, is_clean=False)
    sizes = [len(one) for one in BATCHES]
    assert disk.written == [(sum(sizes[:at]), BATCHES[at]) for at in (2, 3, 4)]
    assert read_all(log) == b"".join(BATCHES)
    log.close(is_clean=True)
    disk.written.clear()
    open_log(tmp_path, disk=disk, recovery_point=12, is_clean=True)
    assert disk.written == []
