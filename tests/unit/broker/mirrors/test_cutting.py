"""What goes when a log is cut is saved first, told with its offsets, and cut once."""

import asyncio
from pathlib import Path

import pytest

from support.batches import batch
from support.mirror_bench import mirror_bench
from twinlog.broker.mirror_board import LossKind
from twinlog.broker.mirrors.cutting import Cut, Cutting
from twinlog.mirroring import effects as do
from twinlog.model.errors import DiskError
from twinlog.model.ids import Offset
from twinlog.storage.lost_tail import LogTail, SavedTail

FIRST, SECOND = batch(3), batch(3, base_offset=3)


async def after(folder: Path, cut: Cut) -> tuple[Cutting, list[Path]]:
    """Carry out a cut of a log of two batches, and give the files that were made."""
    async with mirror_bench(folder) as bench:
        partition = bench.partition()
        partition.append_mirrored(FIRST + SECOND)
        cutting = Cutting(partition, bench.work)
        assert await cutting.carry_out(cut, lambda: True)
    return cutting, copies_in(folder)


def copies_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.lost*"))


async def test_what_a_truncation_drops_is_saved_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cutting, files = await after(tmp_path, do.TruncateTo(Offset(3), "why", 0))
    assert cutting.partition.log.end == 3
    assert [file.read_bytes() for file in files] == [SECOND]
    (loss,) = cutting.work.board.losses
    assert (loss.first, loss.end, loss.cause, loss.kind) == (3, 6, "why", LossKind.TRUNCATION)
    assert loss.saved == SavedTail(str(files[0]), len(SECOND))
    (told,) = caplog.records
    assert (told.__dict__["saved_to"], told.__dict__["saved_bytes"]) == (
        str(files[0]),
        len(SECOND),
    )


async def test_a_cut_inside_a_batch_is_told_from_where_the_batch_begins(tmp_path: Path) -> None:
    cutting, files = await after(tmp_path, do.TruncateTo(Offset(4), "why", 0))
    assert cutting.partition.log.end == 3
    assert [file.read_bytes() for file in files] == [SECOND]
    assert cutting.work.board.losses[0].first == 3


async def test_a_restart_saves_what_is_ours(tmp_path: Path) -> None:
    cutting, files = await after(tmp_path, do.RestartAt(Offset(9), "why", 0, Offset(0)))
    assert (cutting.partition.log.start, cutting.partition.log.end) == (9, 9)
    assert [file.read_bytes() for file in files] == [FIRST + SECOND]
    (loss,) = cutting.work.board.losses
    assert (loss.first, loss.end, loss.kind) == (0, 6, LossKind.RESTART)


async def test_what_the_source_has_deleted_is_told_and_not_saved(tmp_path: Path) -> None:
    cutting, files = await after(tmp_path, do.RestartAt(Offset(9), "why", 0, None))
    assert cutting.partition.log.end == 9
    assert files == []
    assert [loss.saved for loss in cutting.work.board.losses] == [None]


async def test_where_nothing_goes_nothing_is_told(tmp_path: Path) -> None:
    async with mirror_bench(tmp_path) as bench:
        partition = bench.partition()
        cut = do.RestartAt(Offset(9), "why", 0, Offset(0))
        assert await Cutting(partition, bench.work).carry_out(cut, lambda: True)
        assert partition.log.start == 9
        assert not bench.work.board.losses


async def test_without_a_copy_nothing_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(tail: LogTail) -> SavedTail:
        raise DiskError("No space left on device")

    monkeypatch.setattr(LogTail, "save", fail)
    async with mirror_bench(tmp_path) as bench:
        partition = bench.partition()
        partition.append_mirrored(FIRST)
        with pytest.raises(DiskError):
            await Cutting(partition, bench.work).carry_out(
                do.TruncateTo(Offset(0), "why", 0), lambda: True
            )
        assert partition.log.end == 3
        assert not bench.work.board.losses


async def test_a_cut_that_is_wanted_no_more_by_the_time_of_the_copy_is_not_made(
    tmp_path: Path,
) -> None:
    wanted = [True, False]
    async with mirror_bench(tmp_path) as bench:
        partition = bench.partition()
        partition.append_mirrored(FIRST)
        cut = do.TruncateTo(Offset(0), "why", 0)
        assert not await Cutting(partition, bench.work).carry_out(cut, lambda: wanted.pop(0))
        assert partition.log.end == 3
    assert len(copies_in(tmp_path)) == 1


async def test_a_copy_under_way_is_waited_for_when_all_is_called_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, begun, loop = LogTail.save, asyncio.Event(), asyncio.get_running_loop()

    def save(tail: LogTail) -> SavedTail:
        loop.call_soon_threadsafe(begun.set)
        return real(tail)

    monkeypatch.setattr(LogTail, "save", save)
    async with mirror_bench(tmp_path) as bench:
        partition = bench.partition()
        partition.append_mirrored(FIRST)
        cutting = Cutting(partition, bench.work)
        cut = do.TruncateTo(Offset(0), "why", 0)
        task = bench.work.tasks.create_task(cutting.carry_out(cut, lambda: True))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(copies_in(tmp_path)) == 1
        assert partition.log.end == 3
