"""Effects carried out on a real log and a real shard, in order, and again after a failure."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from support.batches import batch, marker
from support.mirror_bench import Bench, mirror_bench, settle
from twinlog.broker.mirror_board import LossKind
from twinlog.broker.mirrors import driven as module
from twinlog.broker.mirrors.driven import DrivenPartition
from twinlog.broker.partitions import Partition
from twinlog.cluster.facts import DesiredState as AskedState
from twinlog.cluster.facts import MirrorTopicFact
from twinlog.mirroring import effects as do
from twinlog.mirroring import events as on
from twinlog.mirroring.policy import MirrorPolicy
from twinlog.mirroring.shard import WriteState
from twinlog.mirroring.states import DesiredState, MirrorState
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import BrokerId, LeaderEpoch, Offset


@asynccontextmanager
async def driven(
    folder: Path,
    *states: MirrorState,
    desired: DesiredState = DesiredState.MIRRORING,
    isr_of_two: bool = False,
) -> AsyncIterator[tuple[Bench, Partition, DrivenPartition]]:
    """Begin a partition of which the states were written before."""
    async with mirror_bench(folder) as bench:
        partition = bench.partition(epoch=5, isr_of_two=isr_of_two)
        partition.mirror = MirrorTopicFact("m", AskedState[desired.name])
        one = DrivenPartition(partition, bench.work, desired, MirrorPolicy())
        for state in states:
            bench.states.commit(WriteState(one.key, state))
        one.begin()
        await settle()
        yield bench, partition, one
        one.close()


FOLLOWED = (MirrorState.LOG_ALIGNMENT, MirrorState.MIRRORING)


async def follow(one: DrivenPartition, *, end: int) -> None:
    """Answer what an alignment asks, so that the partition follows."""
    turn = one._machine.turn
    one.deliver(on.SourceLeaderFound(BrokerId(7), LeaderEpoch(0), turn))
    one.deliver(on.SourceRangeFound(Offset(0), Offset(end), turn))
    if one.partition.log.end:
        one.deliver(on.EpochEndFound(LeaderEpoch(0), LeaderEpoch(0), Offset(end), turn))


def fetched(one: DrivenPartition, raw: bytes, *, at: int = 0) -> on.Fetched:
    return on.Fetched(Offset(at), Offset(99), Offset(0), raw, one._machine.turn)


async def stop(one: DrivenPartition) -> None:
    """Ask for a stop, and let the raised epoch be seen."""
    one.partition.follow_mirror(MirrorTopicFact("m", AskedState.STOPPED))
    one.want(DesiredState.STOPPED)
    await settle()
    one.leader_epoch_seen()
    await settle()


async def test_a_first_start_is_written_before_anything_is_asked(tmp_path: Path) -> None:
    async with driven(tmp_path) as (bench, _, one):
        assert one.state == MirrorState.LOG_ALIGNMENT
        assert bench.states.shard.known(one.key).mirror_state == MirrorState.LOG_ALIGNMENT


async def test_fetched_batches_are_written_unchanged(tmp_path: Path) -> None:
    async with driven(tmp_path, *FOLLOWED) as (bench, partition, one):
        await follow(one, end=99)
        assert bench.fetchers == [(BrokerId(7), 0)]
        one.deliver(fetched(one, batch(3)))
        assert partition.log.end == partition.high_watermark == 3
        assert one.lag.records == 96


async def test_a_pause_knows_when_the_partition_was_level_last(tmp_path: Path) -> None:
    async with driven(tmp_path, *FOLLOWED) as (bench, partition, one):
        await follow(one, end=0)
        fetcher, later_ms = one._fetcher, bench.work.clock.now_ms() + 60_000
        assert fetcher is not None
        plan = fetcher.plan
        plan.next(lambda topic: partition.topic_id)
        plan.heard(one.of, partition.topic_id, Offset(0), Offset(0))
        plan.answered(7, later_ms)
        one.want(DesiredState.PAUSED)
        await settle()
        assert len(plan) == 0
        assert one.lag.level_at_ms == later_ms, "not when somebody looked at it last"


async def test_the_good_batches_before_a_bad_one_are_kept(tmp_path: Path) -> None:
    async with driven(tmp_path, *FOLLOWED) as (_, partition, one):
        await follow(one, end=99)
        bad = bytearray(batch(3, base_offset=3))
        bad[-1] ^= 1
        one.deliver(fetched(one, batch(3) + bytes(bad)))
        await settle()
        assert partition.log.end == one.lag.destination_offset == 3
        assert one.state == MirrorState.FAILED


async def test_a_stop_ends_with_markers_and_a_reset_and_lets_writers_in(tmp_path: Path) -> None:
    async with driven(tmp_path, *FOLLOWED) as (bench, partition, one):
        await follow(one, end=99)
        open_transaction = batch(2, producer=(9, 0, 0), is_transactional=True)
        one.deliver(fetched(one, open_transaction))
        await stop(one)
        assert one.state == MirrorState.STOPPED
        assert not partition.log.open_transactions()
        assert partition.log.end == 4
        assert partition.mirror is None
        last = bench.states.shard.known(one.key).last_mirror_epoch
        assert last is not None
        assert (last.epoch, last.log_end) == (0, 2)


async def test_our_epoch_is_raised_before_the_stop_writes_anything(tmp_path: Path) -> None:
    async with driven(tmp_path, *FOLLOWED) as (_, partition, one):
        await follow(one, end=99)
        one.deliver(fetched(one, batch(1)))
        partition.log.append_as_follower(batch(1, base_offset=1, leader_epoch=5))
        one.want(DesiredState.STOPPED)
        await settle()
        assert partition.leader_epoch > 5
        assert partition.log.end == 2
        one.leader_epoch_seen()
        await settle()
        assert one.state == MirrorState.STOPPED
        assert partition.log.epochs.latest == partition.leader_epoch


async def test_what_is_not_replicated_in_time_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REPLICAS_TIMEOUT_S", 0.001)
    async with driven(tmp_path, *FOLLOWED, desired=DesiredState.STOPPED, isr_of_two=True) as (
        bench,
        _,
        one,
    ):
        await settle()
        one.leader_epoch_seen()
        await bench.waiting.until(lambda: False, [], timeout_s=0.05)
        assert one.state in (MirrorState.FAILED, MirrorState.STOPPING)
        assert "replicated up to 0 only" in (one._machine.standing.error or "")


async def test_a_stopped_partition_is_opened_to_writers_at_the_start(tmp_path: Path) -> None:
    stopped = (*FOLLOWED, MirrorState.STOPPING, MirrorState.STOPPED)
    async with driven(tmp_path, *stopped, desired=DesiredState.STOPPED) as (_, partition, one):
        assert one.state == MirrorState.STOPPED
        assert partition.mirror is None


async def test_a_stop_that_is_taken_back_lets_no_writers_in(tmp_path: Path) -> None:
    async with driven(tmp_path, *FOLLOWED) as (bench, partition, one):
        one.want(DesiredState.STOPPED)
        one.want(DesiredState.MIRRORING)
        await settle()
        one.leader_epoch_seen()
        await settle()
        known = bench.states.shard.known(one.key)
        assert known.last_mirror_epoch is not None
        assert known.mirror_state == MirrorState.LOG_ALIGNMENT
        assert partition.mirror is not None


async def test_a_stop_that_ends_when_a_start_is_asked_for_lets_writers_in_once_it_is_asked_again(
    tmp_path: Path,
) -> None:
    async with driven(tmp_path, *FOLLOWED) as (_, partition, one):
        partition.follow_mirror(MirrorTopicFact("m", AskedState.STOPPED))
        one.want(DesiredState.STOPPED)
        await settle()
        # The facts are known to the partition before they are to what drives it.
        partition.follow_mirror(MirrorTopicFact("m", AskedState.MIRRORING))
        one.leader_epoch_seen()
        await settle()
        assert one.state == MirrorState.STOPPED
        assert partition.mirror is not None
        partition.follow_mirror(MirrorTopicFact("m", AskedState.STOPPED))
        one.want(DesiredState.STOPPED)
        assert partition.mirror is None


async def test_a_start_under_way_is_not_taken_for_a_stop_that_is_through(tmp_path: Path) -> None:
    async with driven(tmp_path, *FOLLOWED) as (_, partition, one):
        await stop(one)
        assert one.state == MirrorState.STOPPED
        partition.follow_mirror(MirrorTopicFact("m", AskedState.MIRRORING))
        one.want(DesiredState.MIRRORING)
        partition.follow_mirror(MirrorTopicFact("m", AskedState.STOPPED))
        one.want(DesiredState.STOPPED)  # LOG_ALIGNMENT is being written
        assert partition.mirror is not None


async def test_an_empty_log_begins_anew_at_once(tmp_path: Path) -> None:
    async with driven(tmp_path, *FOLLOWED) as (_, partition, one):
        one.carry_out(do.BeginAt(Offset(8)))
        assert (partition.log.start, partition.log.end) == (8, 8)


async def test_a_gap_is_written_down_with_the_restart_that_follows(tmp_path: Path) -> None:
    async with driven(tmp_path, *FOLLOWED) as (bench, partition, one):
        one.carry_out(do.NoteGap(Offset(0), Offset(9), "gap"))
        assert not bench.states.shard.known(one.key).losses
        one.carry_out(do.RestartAt(Offset(9), "gap", one._machine.turn, None))
        await settle()
        assert partition.log.start == 9
        (loss,) = bench.states.shard.known(one.key).losses
        assert (loss.kind, loss.first, loss.end) == (LossKind.GAP.value, 0, 9)
        counts = bench.work.status.counts
        assert (counts.losses[LossKind.GAP], counts.lost_records[LossKind.GAP]) == (1, 9)


async def test_a_cut_is_told_to_the_machine_that_ordered_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with driven(tmp_path, *FOLLOWED) as (_, partition, one):
        partition.append_mirrored(batch(3))
        await follow(one, end=3)
        cut = do.TruncateTo(Offset(1), "why", one._machine.turn)
        told = events_of(one, monkeypatch)
        one.carry_out(cut)
        await until(lambda: bool(told))
        assert partition.log.end == 0
        assert told == [on.StepDone(cut.turn)]


async def test_a_cut_that_cannot_be_made_safe_fails_the_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with driven(tmp_path, *FOLLOWED) as (_, partition, one):
        partition.append_mirrored(batch(3))
        told = events_of(one, monkeypatch)
        in_the_way = tmp_path / f"{0:020d}.to-3.{one.of}.lost.log.tmp"
        in_the_way.mkdir()
        one.carry_out(do.TruncateTo(Offset(0), "why", one._machine.turn))
        await until(lambda: bool(told))
        assert isinstance(told[0], on.StepFailed)
        assert in_the_way.name in told[0].why
        assert partition.log.end == 3


async def test_a_cut_of_another_turn_is_not_made(tmp_path: Path) -> None:
    async with driven(tmp_path, *FOLLOWED) as (_, partition, one):
        partition.append_mirrored(batch(3))
        one.carry_out(do.RestartAt(Offset(9), "why", one._machine.turn, Offset(0)))
        one.want(DesiredState.PAUSED)
        await settle()
        assert one.state == MirrorState.PAUSED
        assert partition.log.end == 3


def events_of(one: DrivenPartition, monkeypatch: pytest.MonkeyPatch) -> list[on.Event]:
    """Let what is delivered from now on only be noted."""
    told: list[on.Event] = []
    monkeypatch.setattr(one, "deliver", told.append)
    return told


async def until(is_so: Callable[[], bool]) -> None:
    """Let threads work until something is so."""
    async with asyncio.timeout(60):
        while not is_so():
            await asyncio.to_thread(lambda: None)


async def test_a_fenced_write_makes_a_new_machine_from_what_is_durable(tmp_path: Path) -> None:
    async with driven(tmp_path, *FOLLOWED) as (bench, _, one):
        fenced = ApiError(ErrorCode.FENCED_STATE_EPOCH, "another writer")
        bench.states.failures.append(fenced)
        one.want(DesiredState.PAUSED)
        await settle()
        assert one.state == MirrorState.PAUSED


async def test_states_that_cannot_be_read_or_written_yet_are_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STATE_RETRY_S", 0)
    async with driven(tmp_path, *FOLLOWED) as (bench, _, one):
        loading = ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "loading")
        bench.states.failures += [loading, loading]
        one.want(DesiredState.PAUSED)
        await settle()
        await settle()
        assert one.state == MirrorState.PAUSED


async def test_answers_to_an_older_life_reach_nobody(tmp_path: Path) -> None:
    async with driven(tmp_path, *FOLLOWED) as (_, partition, one):
        await follow(one, end=99)
        old = fetched(one, batch(3))
        one.close()
        one.deliver(old)
        assert partition.log.end == 0


async def test_replicas_are_waited_for_and_log_starts_follow(tmp_path: Path) -> None:
    async with driven(tmp_path, *FOLLOWED) as (_, partition, one):
        partition.append_mirrored(batch(3) + marker(0, base_offset=3))
        one.carry_out(do.RaiseLogStart(Offset(2)))
        one.carry_out(do.AwaitReplicas(0))
        one.carry_out(do.BumpEpoch(LeaderEpoch(9)))
        await settle()
        assert partition.log.start == 2
        assert partition.leader_epoch == 9


async def test_a_fault_of_ours_begins_the_partition_again_and_harms_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "BEGIN_AGAIN_S", 0)
    async with driven(tmp_path, *FOLLOWED) as (_, _, one):

        def fail(effect: do.Effect) -> None:
            raise AssertionError("planted")

        with monkeypatch.context() as patch:
            patch.setattr(one, "carry_out", fail)
            one.want(DesiredState.PAUSED)
        assert "planted" in caplog.text
        await settle()
        assert one.state == MirrorState.PAUSED
