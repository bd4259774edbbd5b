"""What the partitions of one mirror share."""

import asyncio
from contextlib import suppress
from pathlib import Path

from support.mirror_bench import mirror_bench, settle
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
