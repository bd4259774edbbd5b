"""The records a partition reads and writes of itself, through a real shard."""

from pathlib import Path

import pytest

from support.mirror_bench import Bench, mirror_bench
from twinlog.broker.mirrors.own_state import OwnState
from twinlog.broker.partitions import Partition
from twinlog.mirroring import effects as do
from twinlog.mirroring import events as on
from twinlog.mirroring.records import LastMirrorEpoch, MirrorPartition
from twinlog.mirroring.states import MirrorState
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import LeaderEpoch, Offset


def own_state(bench: Bench, partition: Partition) -> OwnState:
    key = MirrorPartition(mirror="m", topic_id=partition.topic_id, partition=0)
    return OwnState(partition, key, bench.work)


def becoming(state: MirrorState, expected_epoch: int, error: str | None = None) -> do.SaveState:
    return do.SaveState(state, expected_epoch, MirrorState.UNKNOWN, error, 0)


async def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    async with mirror_bench(tmp_path) as bench:
        own = own_state(bench, bench.partition(epoch=5))
        assert (await own.read()).state is None
        event = await own.write(becoming(MirrorState.LOG_ALIGNMENT, 0))
        assert event == on.StateSaved(MirrorState.LOG_ALIGNMENT, 1)
        known = await own.read()
        assert known.mirror_state is MirrorState.LOG_ALIGNMENT
        assert known.state is not None
        assert (known.state.leader_epoch, known.state.failed_at_ms) == (5, 0)


async def test_a_failure_is_written_with_its_time(tmp_path: Path) -> None:
    async with mirror_bench(tmp_path) as bench:
        own = own_state(bench, bench.partition())
        await own.write(becoming(MirrorState.LOG_ALIGNMENT, 0))
        await own.write(becoming(MirrorState.FAILED, 1, "broken"))
        state = (await own.read()).state
        assert state is not None
        assert state.error == "broken"
        assert abs(state.failed_at_ms - bench.work.clock.wall_ms()) < 60_000


async def test_the_last_mirror_epoch_belongs_to_a_stop(tmp_path: Path) -> None:
    async with mirror_bench(tmp_path) as bench:
        own = own_state(bench, bench.partition())
        save = do.SaveLastMirrorEpoch(LeaderEpoch(3), Offset(9), LeaderEpoch(7))
        with pytest.raises(ApiError):
            await own.write(save)
        await own.write(becoming(MirrorState.STOPPING, 0))
        last = LastMirrorEpoch(epoch=3, log_end=9, own_from=7)
        assert await own.write(save) == on.LastMirrorEpochSaved(last)
        assert (await own.read()).last_mirror_epoch == last


async def test_who_decided_from_what_is_no_longer_so_is_fenced(tmp_path: Path) -> None:
    async with mirror_bench(tmp_path) as bench:
        own = own_state(bench, bench.partition())
        await own.write(becoming(MirrorState.LOG_ALIGNMENT, 0))
        with pytest.raises(ApiError) as caught:
            await own.write(becoming(MirrorState.PAUSED, 0))
        assert caught.value.code is ErrorCode.FENCED_STATE_EPOCH


async def test_a_write_waits_for_its_commit_as_long_as_is_set(tmp_path: Path) -> None:
    async with mirror_bench(tmp_path) as bench:
        bench.work.write_timeout_s = 0.25
        own = own_state(bench, bench.partition())
        for save in (
            becoming(MirrorState.STOPPING, 0),
            do.SaveLastMirrorEpoch(LeaderEpoch(3), Offset(9), LeaderEpoch(7)),
            do.SaveStart(None, 0),
        ):
            bench.states.timeout_s = 0.0
            await own.write(save)
            assert bench.states.timeout_s == 0.25, save
