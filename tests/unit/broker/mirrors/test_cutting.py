"""What goes when a log is cut is saved first, told with its offsets, and cut once."""

import asyncio
from pathlib import Path

import pytest

from support.batches import batch
from support.mirror_bench import Bench, mirror_bench
from twinlog.broker.mirror_board import LossKind
from twinlog.broker.mirrors.cutting import Cut, Cutting
from twinlog.mirroring import effects as do
from twinlog.mirroring.records import MirrorPartition, RecordLoss
from twinlog.model.errors import ApiError, DiskError, ErrorCode
from twinlog.model.ids import Offset
from twinlog.storage.lost_tail import LogTail, SavedTail

FIRST, SECOND = batch(3), batch(3, base_offset=3)


def cutting_in(bench: Bench, *batches: bytes) -> Cutting:
    """Give what cuts a new log of those batches."""
    partition = bench.partition()
    partition.append_mirrored(b"".join(batches))
    key = MirrorPartition(mirror="m", topic_id=partition.topic_id, partition=0)
    return Cutting(partition, key, bench.work)


async def after(
    folder: Path, cut: Cut, gap: do.NoteGap | None = None
) -> tuple[Cutting, list[Path], tuple[RecordLoss, ...]]:
    """Cut a log of two batches; give what was made and what was written down."""
    async with mirror_bench(folder) as bench:
        cutting = cutting_in(bench, FIRST, SECOND)
        cutting.gap = gap
        assert await cutting.carry_out(cut, lambda: True)
        losses = bench.states.shard.known(cutting.key).losses
    return cutting, copies_in(folder), losses


def copies_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.lost*"))


async def test_what_a_truncation_drops_is_saved_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cutting, files, losses = await after(tmp_path, do.TruncateTo(Offset(3), "why", 0))
    assert cutting.partition.log.end == 3
    assert [file.read_bytes() for file in files] == [SECOND]
    (loss,) = losses
    assert (loss.first, loss.end, loss.cause, loss.kind) == (3, 6, "why", "truncation")
    assert (loss.saved_to, loss.saved_bytes) == (str(files[0]), len(SECOND))
    counts = cutting.work.status.counts
    assert counts.losses == {LossKind.TRUNCATION: 1}
    assert counts.lost_records == {LossKind.TRUNCATION: 3}
    (told,) = caplog.records
    assert (told.__dict__["saved_to"], told.__dict__["saved_bytes"]) == (
        str(files[0]),
        len(SECOND),
    )


async def test_a_cut_inside_a_batch_is_told_from_where_the_batch_begins(tmp_path: Path) -> None:
    cutting, files, losses = await after(tmp_path, do.TruncateTo(Offset(4), "why", 0))
    assert cutting.partition.log.end == 3
    assert [file.read_bytes() for file in files] == [SECOND]
    assert losses[0].first == 3


async def test_a_restart_saves_what_is_ours(tmp_path: Path) -> None:
    cutting, files, losses = await after(tmp_path, do.RestartAt(Offset(9), "why", 0, Offset(0)))
    assert (cutting.partition.log.start, cutting.partition.log.end) == (9, 9)
    assert [file.read_bytes() for file in files] == [FIRST + SECOND]
    (loss,) = losses
    assert (loss.first, loss.end, loss.kind) == (0, 6, "restart")


async def test_what_the_source_has_deleted_is_told_and_not_saved(tmp_path: Path) -> None:
    gap = do.NoteGap(Offset(6), Offset(9), "why")
    restart = do.RestartAt(Offset(9), "why", 0, None)
    cutting, files, losses = await after(tmp_path, restart, gap)
    assert cutting.partition.log.end == 9
    assert files == []
    told = [(loss.kind, loss.first, loss.end, loss.saved_to) for loss in losses]
    assert told == [("gap", 6, 9, None), ("restart", 0, 6, None)]
    assert cutting.gap is None


@pytest.mark.parametrize(
    ("cut", "kept"),
    [
        (do.TruncateTo(Offset(4), "why", 0), 3),
        (do.RestartAt(Offset(9), "from scratch", 0, Offset(0)), 0),
        (do.RestartAt(Offset(9), "a gap", 0, None), 5),
    ],
    ids=["cut", "restart", "gap"],
)
async def test_no_group_stands_where_other_records_will(
    tmp_path: Path, cut: Cut, kept: int
) -> None:
    async with mirror_bench(tmp_path) as bench:
        cutting = cutting_in(bench, FIRST, SECOND)
        of = cutting.partition.of
        bench.groups.commit("beyond", of, 5)
        bench.groups.commit("below", of, 0)
        bench.groups.failures.append(ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "loading"))
        if kept != 5:
            with pytest.raises(ApiError):
                await cutting.carry_out(cut, lambda: True)
            assert cutting.partition.log.end == 6
        assert await cutting.carry_out(cut, lambda: True)
        assert bench.groups.offset_of("beyond", of) == kept
        assert bench.groups.offset_of("below", of) == 0


async def test_where_nothing_goes_nothing_is_told(tmp_path: Path) -> None:
    async with mirror_bench(tmp_path) as bench:
        cutting = cutting_in(bench)
        cut = do.RestartAt(Offset(9), "why", 0, Offset(0))
        assert await cutting.carry_out(cut, lambda: True)
        assert cutting.partition.log.start == 9
        assert not bench.states.shard.known(cutting.key).losses


async def test_without_a_copy_nothing_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(tail: LogTail) -> SavedTail:
        raise DiskError("No space left on device")

    monkeypatch.setattr(LogTail, "save", fail)
    async with mirror_bench(tmp_path) as bench:
        cutting = cutting_in(bench, FIRST)
        with pytest.raises(DiskError):
            await cutting.carry_out(do.TruncateTo(Offset(0), "why", 0), lambda: True)
        assert cutting.partition.log.end == 3
        assert not bench.states.shard.known(cutting.key).losses


async def test_what_cannot_be_written_down_is_not_cut(tmp_path: Path) -> None:
    async with mirror_bench(tmp_path) as bench:
        cutting = cutting_in(bench, FIRST)
        bench.states.failures.append(ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "away"))
        with pytest.raises(ApiError):
            await cutting.carry_out(do.TruncateTo(Offset(0), "why", 0), lambda: True)
        assert cutting.partition.log.end == 3


async def test_no_group_is_pulled_back_for_a_cut_that_is_wanted_no_more(tmp_path: Path) -> None:
    async with mirror_bench(tmp_path) as bench:
        cutting = cutting_in(bench, FIRST, SECOND)
        of = cutting.partition.of
        bench.groups.commit("beyond", of, 5)
        cut = do.TruncateTo(Offset(3), "why", 0)
        assert not await cutting.carry_out(cut, lambda: False)
        assert bench.groups.offset_of("beyond", of) == 5


@pytest.mark.parametrize("answers", [(True, False), (True, True, False), (True, True, True, False)])
async def test_a_cut_that_is_wanted_no_more_by_the_time_of_it_is_not_made(
    tmp_path: Path, answers: tuple[bool, ...]
) -> None:
    wanted = list(answers)
    async with mirror_bench(tmp_path) as bench:
        cutting = cutting_in(bench, FIRST)
        cut = do.TruncateTo(Offset(0), "why", 0)
        assert not await cutting.carry_out(cut, lambda: wanted.pop(0))
        assert cutting.partition.log.end == 3
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
        cutting = cutting_in(bench, FIRST)
        cut = do.TruncateTo(Offset(0), "why", 0)
        task = bench.work.tasks.create_task(cutting.carry_out(cut, lambda: True))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(copies_in(tmp_path)) == 1
        assert cutting.partition.log.end == 3
