"""What the partitions of one mirror share."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from support.mirror_bench import States, mirror_bench, settle
from twinlog.broker.mirror_board import LossKind
from twinlog.coordination.outcome import Outcome
from twinlog.mirroring.records import MirrorPartition, RecordLoss
from twinlog.mirroring.shard import MirrorShard
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import BrokerId, LeaderEpoch, TopicName, TopicPartition


async def test_a_fetcher_is_begun_once_for_each_source_broker_and_number(tmp_path: Path) -> None:
    async with mirror_bench(tmp_path) as bench:
        of = TopicPartition(TopicName("t"), 0)
        first = bench.work.fetcher_of(BrokerId(7), of)
        assert bench.work.fetcher_of(BrokerId(7), of) is first
        assert bench.work.fetcher_of(BrokerId(8), of) is not first
        assert bench.fetchers == [(7, 0), (8, 0)]


async def test_epochs_asked_for_at_once_are_raised_together_to_at_least_that(
    tmp_path: Path,
) -> None:
    async with mirror_bench(tmp_path) as bench:
        partitions = [bench.partition(topic) for topic in ("a", "b")]
        for partition, epoch in zip(partitions, (4, 6), strict=True):
            bench.work.bump(partition.of, LeaderEpoch(epoch))
        bench.work.bump(partitions[0].of, LeaderEpoch(2))
        await settle()
        image = bench.facts.image
        epochs = [fact.leader_epoch for p in partitions if (fact := image.partition(p.of))]
        assert epochs == [4, 6]


async def test_a_store_that_does_not_answer_leaves_the_next_bump_possible(tmp_path: Path) -> None:
    async with mirror_bench(tmp_path) as bench:
        partition = bench.partition()
        bench.facts.failure = ApiError(ErrorCode.REQUEST_TIMED_OUT, "no answer")
        bench.work.bump(partition.of, LeaderEpoch(4))
        await settle()
        bench.facts.failure = None
        bench.work.bump(partition.of, LeaderEpoch(4))
        await settle()
        assert partition.leader_epoch == 4


async def test_an_answer_that_comes_while_a_mirror_is_ended_begins_nothing_and_breaks_nothing(
    tmp_path: Path,
) -> None:
    begun: list[int] = []

    async def work() -> None:
        begun.append(1)

    async with mirror_bench(tmp_path) as bench, asyncio.TaskGroup() as outer:

        async def answer_late() -> None:
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            bench.work.spawn(work())

        async def mirror() -> None:
            async with asyncio.TaskGroup() as tasks:
                bench.work.tasks = tasks
                tasks.create_task(answer_late())

        running = outer.create_task(mirror())
        await settle()
        running.cancel()
        await settle()
        assert running.cancelled()
        assert not begun


class Late(States):
    """A coordinator whose commits come too late, while it says so."""

    is_late = False

    async def run(
        self, key: str, command: Callable[[MirrorShard, int], Outcome[Any]], *, timeout_s: float
    ) -> Any:
        reply = await super().run(key, command, timeout_s=timeout_s)
        if self.is_late:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "not committed in time")
        return reply


async def test_a_loss_whose_write_came_too_late_and_landed_is_counted_when_it_is_told_again(
    tmp_path: Path,
) -> None:
    async with mirror_bench(tmp_path) as bench:
        states = Late()
        bench.work.run_state = states.run
        of = TopicPartition(TopicName("t"), 0)
        key = MirrorPartition(mirror="m", topic_id=UUID(int=1), partition=0)
        counts = bench.work.status.counts

        async def note(at_ms: int) -> None:
            loss = RecordLoss(kind="truncation", first=2, end=5, cause="why", at_ms=at_ms)
            await bench.work.note_losses(of, key, LeaderEpoch(0), (loss,))

        states.is_late = True
        for at_ms in (10, 20):
            with pytest.raises(ApiError, match="not committed in time"):
                await note(at_ms)
        assert len(states.shard.known(key).losses) == 1
        assert counts.losses[LossKind.TRUNCATION] == 0
        states.is_late = False
        for at_ms in (30, 40):
            await note(at_ms)
            assert counts.losses[LossKind.TRUNCATION] == 1
            assert counts.lost_records[LossKind.TRUNCATION] == 3
        assert len(states.shard.known(key).losses) == 1
