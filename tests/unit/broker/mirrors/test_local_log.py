"""What a stopping mirror reads from and writes to the local log."""

from pathlib import Path

import pytest

from support.batches import batch, pid_reset
from support.mirror_bench import mirror_bench
from twinlog.broker.mirrors.local_log import (
    abort_open_transactions,
    facts_of,
    has_pid_reset,
    take_step,
    write,
    write_pid_reset,
)
from twinlog.broker.partitions import Partition
from twinlog.mirroring import effects as do
from twinlog.mirroring import events as on
from twinlog.model.errors import DiskError
from twinlog.model.ids import LeaderEpoch, Offset, ProducerId
from twinlog.storage.settings import LogSettings
from twinlog.wire.records.control import ControlType, end_marker


async def test_the_facts_of_a_log_are_its_ends_epochs_and_open_transactions(
    tmp_path: Path,
) -> None:
    async with mirror_bench(tmp_path) as bench:
        partition = bench.partition(epoch=5)
        partition.append_mirrored(
            batch(2, leader_epoch=1)
            + batch(2, base_offset=2, leader_epoch=3, producer=(9, 0, 0), is_transactional=True)
        )
        facts = facts_of(partition.log, None)
        assert (facts.start, facts.end, facts.open_transactions) == (0, 4, 1)
        assert [(e.epoch, e.start) for e in facts.epochs] == [(1, 0), (3, 2)]
        assert not facts.has_pid_reset
        assert facts.last_batch is not None
        assert (facts.last_batch.base, facts.last_batch.producer) == (2, (9, 0, 0))
        assert facts_of(partition.log, Offset(0)).last_batch is None, "a stop has no use for it"


async def test_an_empty_log_has_no_last_batch_also_if_it_held_some(tmp_path: Path) -> None:
    async with mirror_bench(tmp_path) as bench:
        partition = bench.partition(epoch=5)
        assert facts_of(partition.log, None).last_batch is None
        partition.append_mirrored(batch(2, leader_epoch=1))
        partition.raise_start_to(Offset(1))
        assert facts_of(partition.log, None).last_batch is not None
        partition.raise_start_to(Offset(2))
        assert facts_of(partition.log, None).last_batch is None


async def test_a_reset_counts_from_the_offset_asked_for_only(tmp_path: Path) -> None:
    async with mirror_bench(tmp_path) as bench:
        partition = bench.partition(epoch=5)
        partition.append_mirrored(batch(2) + pid_reset(base_offset=2) + batch(1, base_offset=3))
        assert has_pid_reset(partition.log, Offset(0))
        assert has_pid_reset(partition.log, Offset(2))
        assert not has_pid_reset(partition.log, Offset(3))
        assert not has_pid_reset(partition.log, Offset(4))


async def test_a_reset_is_found_in_whichever_segment_it_lies(tmp_path: Path) -> None:
    async with mirror_bench(tmp_path) as bench:
        partition = bench.partition(epoch=5)
        partition.log.settings = LogSettings(segment_bytes=200)
        for at in range(0, 6, 2):
            partition.append_mirrored(batch(2, base_offset=at))
        write_pid_reset(partition, 1_000)
        assert partition.log.segment_count > 1
        assert has_pid_reset(partition.log, Offset(0))
        assert not has_pid_reset(partition.log, Offset(7))


async def test_markers_and_resets_are_written_in_our_own_epoch(tmp_path: Path) -> None:
    async with mirror_bench(tmp_path) as bench:
        partition = bench.partition(epoch=5)
        partition.append_mirrored(
            batch(2, producer=(9, 3, 0), is_transactional=True)
            + batch(2, base_offset=2, producer=(11, 0, 0), is_transactional=True)
        )
        abort_open_transactions(partition, 1_000)
        abort_open_transactions(partition, 1_000)
        write_pid_reset(partition, 1_000)
        assert partition.log.end == 7
        assert not partition.log.open_transactions()
        assert partition.log.producer_count == 0
        assert partition.log.epochs.epoch_at(Offset(4)) == 5
        assert facts_of(partition.log, Offset(4)).has_pid_reset


async def test_a_transaction_is_aborted_whatever_epoch_the_source_s_coordinator_had(
    tmp_path: Path,
) -> None:
    """The source's coordinator has moved before: its markers carry an epoch above 0."""
    async with mirror_bench(tmp_path) as bench:
        partition = bench.partition(epoch=5)
        ended = end_marker(
            ControlType.COMMIT,
            producer_id=ProducerId(9),
            producer_epoch=3,
            coordinator_epoch=7,
            timestamp_ms=1_000,
            base_offset=Offset(2),
            leader_epoch=LeaderEpoch(0),
        )
        first = batch(2, producer=(9, 3, 0), is_transactional=True)
        second = batch(2, base_offset=3, producer=(9, 3, 2), is_transactional=True)
        partition.append_mirrored(first + ended + second)
        abort_open_transactions(partition, 1_000)
        assert not partition.log.open_transactions()
        assert partition.last_stable_offset == partition.log.end == 6


async def test_a_write_that_fails_tells_where_the_log_ends(tmp_path: Path) -> None:
    async with mirror_bench(tmp_path) as bench:
        partition = bench.partition(epoch=5)
        assert write(partition, do.Append(batch(3))) is None
        assert write(partition, do.RaiseLogStart(Offset(2))) is None
        bad = bytearray(batch(3, base_offset=3))
        bad[-1] ^= 1
        failed = write(partition, do.Append(bytes(bad)))
        assert failed is not None
        assert (failed.offset, failed.log_end) == (3, 3)
        beyond = write(partition, do.RaiseLogStart(Offset(9)))
        assert beyond is not None
        assert beyond.log_end == 3
        assert write(partition, do.BeginAt(Offset(8))) is None
        assert (partition.log.start, partition.log.end) == (8, 8)


async def test_a_step_tells_what_came_of_it(tmp_path: Path) -> None:
    async with mirror_bench(tmp_path) as bench:
        partition = bench.partition(epoch=5)
        assert take_step(partition, do.AppendAbortMarkers(3), 1_000) == on.StepDone(3)
        assert take_step(partition, do.AppendPidReset(4), 1_000) == on.StepDone(4)
        read = take_step(partition, do.ReadLog(Offset(0), 5), 1_000)
        assert isinstance(read, on.LogRead)
        assert read.facts.has_pid_reset


async def test_a_step_that_the_disk_refuses_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise DiskError("full")

    monkeypatch.setattr(Partition, "append_own", refuse)
    async with mirror_bench(tmp_path) as bench:
        failed = take_step(bench.partition(), do.AppendPidReset(6), 1_000)
        assert failed == on.StepFailed("full", 6)
