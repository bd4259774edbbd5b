"""One source broker's fetches: requests by version, answers to the right partition, failures."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from support.batches import batch
from support.listening import eventually
from support.mirror_bench import Bench, mirror_bench
from support.scripted_source import NODE, ScriptedSource, scripted_source
from twinlog.broker.loops import mirror_fetch as module
from twinlog.broker.loops.mirror_fetch import MirrorFetch
from twinlog.broker.mirrors.work import Fetcher
from twinlog.broker.waiting import Waiting
from twinlog.cluster.changes import TopicSet
from twinlog.cluster.facts import TopicFact
from twinlog.mirroring import events as on
from twinlog.mirroring.effects import FetchFrom
from twinlog.model.errors import ErrorCode
from twinlog.model.ids import BrokerId, LeaderEpoch, Offset, TopicId, TopicName, TopicPartition
from twinlog.wire.messages.fetch import (
    FETCH,
    EpochEndOffset,
    FetchedPartition,
    FetchedTopic,
    FetchRequest,
    FetchResponse,
)


def of(partition: int) -> TopicPartition:
    return TopicPartition(TopicName("t"), partition)


def order(offset: int = 0) -> FetchFrom:
    return FetchFrom(BrokerId(NODE), LeaderEpoch(3), Offset(offset), LeaderEpoch(2), 1)


class Writing:
    """A partition that has taken over its records as soon as they come."""

    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting

    def deliver(self, event: on.Event) -> None:
        """Wake who waits for it."""
        self._waiting.notify(of(0))


class Fetching:
    """A fetcher of both partitions of ``t`` and its source, whose answers tests prepare."""

    def __init__(self, bench: Bench, source: ScriptedSource) -> None:
        self.requests: list[FetchRequest] = []
        self.answer = FetchResponse(topics=())
        self.fetcher = Fetcher()
        self.heard = [bench.listen("t", partition) for partition in range(2)]
        self.loop = MirrorFetch(bench.work, BrokerId(NODE), 0, self.fetcher)
        self.bench = bench
        self.source = source
        topic = TopicFact(TopicName("t"), TopicId(UUID(int=42)), ())
        bench.facts.image = bench.facts.image.with_change(TopicSet(topic))
        source.on(FETCH, self._fetched)
        for partition in range(2):
            self.fetcher.plan.put(of(partition), order())

    def _fetched(self, request: FetchRequest, version: int) -> FetchResponse:
        self.requests.append(request)
        return self.answer

    def give(self, *partitions: FetchedPartition, by_id: bool = True, throttle: int = 0) -> None:
        """Prepare the next answer."""
        topic = (
            FetchedTopic(topic_id=UUID(int=42), partitions=partitions)
            if by_id
            else FetchedTopic(topic="t", partitions=partitions)
        )
        self.answer = FetchResponse(topics=(topic,), throttle_time_ms=throttle)


@asynccontextmanager
async def fetching(tmp_path: Path, *, version: int = 17) -> AsyncIterator[Fetching]:
    async with (
        scripted_source(ranges={FETCH.key: (4, version)}) as source,
        mirror_bench(tmp_path, source.address) as bench,
    ):
        await bench.source.peers.refresh([TopicName("t")])
        made = Fetching(bench, source)
        yield made
        await made.loop._close()


@pytest.mark.parametrize("version", [10, 12, 13, 17])
async def test_a_fetch_is_a_consumers_and_as_much_as_its_version_allows(
    tmp_path: Path, version: int
) -> None:
    async with fetching(tmp_path, version=version) as made:
        records = FetchedPartition(
            partition_index=0, high_watermark=9, log_start_offset=1, records=batch(3)
        )
        made.give(records, by_id=version >= 13)
        await made.loop.step()
        (request,) = made.requests
        assert (request.replica_id, request.isolation_level) == (-1, 0)
        (topic,) = request.topics
        assert (topic.topic, topic.topic_id.int) == (("t", 0) if version < 13 else ("", 42))
        asked = topic.partitions[0]
        assert asked.current_leader_epoch == 3
        assert asked.last_fetched_epoch == (2 if version >= 12 else -1)
        (event,) = made.heard[0].events
        assert isinstance(event, on.Fetched)
        assert bytes(event.records) == batch(3)
        assert (event.high_watermark, event.log_start, event.turn) == (9, 1, 1)
        assert made.heard[1].events == []


@pytest.mark.parametrize(("backlog_bytes", "answered_first"), [(1 << 20, [True]), (1, [])])
async def test_who_waits_for_the_records_is_answered_before_more_are_asked_for_unless_much_is(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    backlog_bytes: int,
    answered_first: list[bool],
) -> None:
    monkeypatch.setattr(module, "BACKLOG_BYTES", backlog_bytes)
    async with fetching(tmp_path) as made, asyncio.TaskGroup() as tasks:
        waiting = made.bench.work.waiting
        made.bench.work.receivers[of(0)] = Writing(waiting)
        made.give(FetchedPartition(partition_index=0, high_watermark=1, records=batch(1)))
        answered: list[bool] = []
        client = tasks.create_task(waiting.notice((of(0),), timeout_s=60))
        client.add_done_callback(lambda done: answered.append(done.result()))
        await made.loop.step()
        assert answered == answered_first


async def test_topics_are_named_when_the_source_gives_no_ids(tmp_path: Path) -> None:
    async with fetching(tmp_path) as made:
        made.source.topics["t"] = (UUID(int=0), [3, 4])
        await made.bench.source.peers.refresh([TopicName("t")])
        made.give(by_id=False)
        await made.loop.step()
        assert made.requests[0].topics[0].topic == "t"


@pytest.mark.parametrize("there", [UUID(int=43), None], ids=["made again", "not there"])
async def test_a_topic_is_asked_for_by_the_id_it_has_here_whatever_has_its_name_there(
    tmp_path: Path, there: UUID | None
) -> None:
    async with fetching(tmp_path) as made:
        if there is None:
            made.bench.source.peers.metadata.topics.clear()
        else:
            made.source.topics["t"] = (there, [3, 4])
            await made.bench.source.peers.refresh([TopicName("t")])
        made.give()
        await made.loop.step()
        assert [topic.topic_id.int for topic in made.requests[0].topics] == [42]


async def test_where_names_are_all_a_fetch_can_tell_another_topic_is_left_out(
    tmp_path: Path,
) -> None:
    async with fetching(tmp_path, version=12) as made:
        made.give(by_id=False)
        await made.loop.step()
        await made.loop._close()
        made.source.topics["t"] = (UUID(int=43), [3, 4])
        for heard in made.heard:
            heard.events.clear()
        await made.loop.step()
        for heard in made.heard:
            (event,) = heard.events
            assert isinstance(event, on.SourceRefused)
            assert event.code == ErrorCode.INCONSISTENT_TOPIC_ID
        assert made.bench.work.status.refresh_wanted.is_set()


async def test_nothing_is_fetched_from_another_cluster_that_answers_at_the_same_address(
    tmp_path: Path,
) -> None:
    async with fetching(tmp_path, version=12) as made:
        made.source.cluster_id = "another"
        await made.loop.step()
        assert made.requests == []
        (error,) = made.bench.work.status.task_errors.values()
        assert error is not None
        assert "another, not source-cluster" in error
        assert made.bench.work.status.refresh_wanted.is_set()


async def test_errors_and_divergence_go_to_their_partition(tmp_path: Path) -> None:
    async with fetching(tmp_path) as made:
        made.give(
            FetchedPartition(partition_index=0, high_watermark=-1, error_code=6),
            FetchedPartition(
                partition_index=1,
                high_watermark=9,
                diverging_epoch=EpochEndOffset(epoch=1, end_offset=4),
            ),
        )
        await made.loop.step()
        (refused,) = made.heard[0].events
        assert isinstance(refused, on.SourceRefused)
        assert refused.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert made.heard[1].events == [on.Diverged(1)]


async def test_a_partition_that_may_not_be_read_is_told_what_to_grant(tmp_path: Path) -> None:
    async with fetching(tmp_path) as made:
        made.give(FetchedPartition(partition_index=0, high_watermark=-1, error_code=29))
        await made.loop.step()
        (refused,) = made.heard[0].events
        assert isinstance(refused, on.SourceRefused)
        assert refused.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert "; User:ANONYMOUS needs Read on topic t there: kafka-acls.sh" in refused.why


async def test_an_answer_to_an_order_that_no_longer_stands_is_passed_over(
    tmp_path: Path,
) -> None:
    async with fetching(tmp_path) as made:
        made.fetcher.plan.next(lambda _: TopicId(UUID(int=42)))
        made.give(*(FetchedPartition(partition_index=i, high_watermark=9) for i in (0, 1, 5)))
        made.fetcher.plan.put(of(0), order(7))
        made.loop.take(made.answer)
        assert made.heard[0].events == []
        assert len(made.heard[1].events) == 1


async def test_a_partition_nobody_waits_for_is_fetched_no_more(tmp_path: Path) -> None:
    async with fetching(tmp_path) as made:
        del made.bench.work.receivers[of(0)]
        made.give(FetchedPartition(partition_index=0, high_watermark=9))
        await made.loop.step()
        assert [one for one, _ in made.fetcher.plan.orders] == [of(1)]


async def test_within_a_session_only_what_changed_is_asked_and_the_rest_is_unchanged(
    tmp_path: Path,
) -> None:
    async with fetching(tmp_path) as made:
        ends = [FetchedPartition(partition_index=i, high_watermark=0) for i in (0, 1)]
        made.give(*ends)
        made.answer = replace(made.answer, session_id=5)
        await made.loop.step()
        made.answer = FetchResponse(session_id=5, topics=())
        await made.loop.step()
        made.fetcher.plan.put(of(0), replace(order(), turn=2))
        made.fetcher.plan.drop(of(1))
        await made.loop.step()
        told = [
            (one.session_id, one.session_epoch, len(one.topics), len(one.forgotten_topics))
            for one in made.requests
        ]
        assert told == [(0, 0, 1, 0), (5, 1, 0, 0), (5, 2, 1, 1)]
        assert made.requests[2].forgotten_topics[0].topic_id.int == 42
        turns = [event.turn for event in made.heard[0].events if isinstance(event, on.Fetched)]
        assert turns == [1, 2]


@pytest.mark.parametrize(("code", "closed"), [(70, 0), (71, 5), (106, 5)])
async def test_a_session_that_the_source_does_not_know_is_begun_again_at_once(
    tmp_path: Path, code: int, closed: int
) -> None:
    async with fetching(tmp_path) as made:
        made.give(*(FetchedPartition(partition_index=i, high_watermark=0) for i in (0, 1)))
        made.answer = replace(made.answer, session_id=5)
        await made.loop.step()
        made.answer = FetchResponse(error_code=code, topics=())
        await made.loop.step()
        assert made.loop._connection is not None
        await made.loop.step()
        assert [one.session_id for one in made.requests] == [0, 5, closed]
        assert len(made.requests[2].topics[0].partitions) == 2
        # To what begins anew, the same answer is a failure like any other.
        assert made.loop._connection is None


async def test_forgotten_topics_are_named_as_they_were_asked_for(tmp_path: Path) -> None:
    async with fetching(tmp_path, version=12) as made:
        made.give(
            *(FetchedPartition(partition_index=i, high_watermark=0) for i in (0, 1)), by_id=False
        )
        made.answer = replace(made.answer, session_id=5)
        await made.loop.step()
        made.fetcher.plan.drop(of(1))
        made.answer = FetchResponse(session_id=5, topics=())
        await made.loop.step()
        (forgotten,) = made.requests[1].forgotten_topics
        assert (forgotten.topic, forgotten.partitions) == ("t", (1,))


async def test_a_source_that_is_gone_is_told_and_left_alone_for_a_while(tmp_path: Path) -> None:
    async with scripted_source() as source, mirror_bench(tmp_path, source.address) as bench:
        await bench.source.peers.refresh([TopicName("t")])
        made = Fetching(bench, source)
        source.address = bench.source.peers.nodes[BrokerId(NODE)].address
    assert made.heard[0].events == []
    async with mirror_bench(tmp_path / "again", source.address) as bench:
        bench.source.peers.metadata.nodes.update(made.bench.source.peers.metadata.nodes)
        made.loop = MirrorFetch(bench.work, BrokerId(NODE), 0, made.fetcher)
        await made.loop.step()
        (error,) = bench.work.status.task_errors.values()
        assert "refused" in (error or "")
        assert bench.work.status.leaders_wanted.is_set()


async def test_a_source_that_speaks_no_common_version_refuses_every_partition(
    tmp_path: Path,
) -> None:
    async with (
        scripted_source(ranges={FETCH.key: (0, 3)}) as source,
        mirror_bench(tmp_path, source.address) as bench,
    ):
        await bench.source.peers.refresh([TopicName("t")])
        made = Fetching(bench, source)
        await made.loop.step()
        (refused,) = made.heard[0].events
        assert isinstance(refused, on.SourceRefused)
        assert refused.code == ErrorCode.UNSUPPORTED_VERSION


async def test_the_sources_quota_is_honoured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "THROTTLE_S_MAX", 0.05)
    async with fetching(tmp_path) as made:
        made.give(throttle=3_600_000)
        before = asyncio.get_running_loop().time()
        await made.loop.step()
        assert asyncio.get_running_loop().time() - before >= 0.05


async def test_what_the_sources_quota_holds_back_does_not_pass_for_nothing_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "THROTTLE_S_MAX", 0.0)
    async with fetching(tmp_path) as made:
        made.give(*(FetchedPartition(partition_index=i, high_watermark=0) for i in (0, 1)))
        made.answer = replace(made.answer, session_id=5)
        await made.loop.step()
        plan = made.fetcher.plan
        told_ms = plan.unchanged_at_ms(of(0))
        plan.put(of(1), replace(order(), turn=2))
        made.answer = FetchResponse(session_id=5, topics=(), throttle_time_ms=100)
        await made.loop.step()
        assert (plan.unchanged_at_ms(of(0)), plan.unchanged_at_ms(of(1))) == (told_ms, None)
        assert made.bench.work.status.put_off_at_ms >= 0
        turns = [event.turn for event in made.heard[1].events if isinstance(event, on.Fetched)]
        assert turns == [1]


async def test_a_fetcher_without_work_hangs_up_and_begins_again_when_woken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IDLE_CLOSE_S", 0.001)
    async with fetching(tmp_path) as made:
        made.give()
        await made.loop.step()
        for partition in range(2):
            made.fetcher.plan.drop(of(partition))
        running = asyncio.ensure_future(made.loop.run())
        async with asyncio.timeout(60):
            await eventually(lambda: made.loop._connection is None)
            made.fetcher.plan.put(of(0), order())
            made.fetcher.wake.set()
            await eventually(lambda: len(made.requests) > 1)
        running.cancel()


async def test_throttled_partitions_are_left_out_while_too_much_came_and_others_are_not_held_up(
    tmp_path: Path,
) -> None:
    async with fetching(tmp_path) as made:
        work, records = made.bench.work, batch(3)
        work.throttled = frozenset({of(0)})
        work.board.throttle.set_rate(1, work.clock.now_ms())
        made.give(
            *(
                FetchedPartition(
                    partition_index=partition,
                    high_watermark=9,
                    log_start_offset=0,
                    records=records,
                )
                for partition in range(2)
            )
        )
        await made.loop.step()
        await made.loop.step()
        asked = [
            [p.partition for topic in request.topics for p in topic.partitions]
            for request in made.requests
        ]
        assert asked == [[0, 1], [1]]
        assert not made.fetcher.plan.asks_nothing
        work.board.throttle.set_rate(1 << 40, work.clock.now_ms())
        work.board.throttle.record(-(1 << 30), work.clock.now_ms())
        made.fetcher.plan.put(of(0), order(5))
        await made.loop.step()
        (topic,) = made.requests[-1].topics
        assert 0 in [p.partition for p in topic.partitions]


async def test_a_fetcher_of_throttled_partitions_only_waits_until_the_rate_is_another(
    tmp_path: Path,
) -> None:
    async with fetching(tmp_path) as made:
        work = made.bench.work
        work._fetchers[BrokerId(NODE), 0] = made.fetcher
        work.throttle(frozenset({of(0), of(1)}))
        work.board.throttle.set_rate(0, work.clock.now_ms())
        running = asyncio.ensure_future(made.loop.run())
        async with asyncio.timeout(60):
            await eventually(lambda: made.fetcher.plan.asks_nothing)
            assert made.requests == []
            work.throttle(frozenset({of(1)}))
            await eventually(lambda: bool(made.requests))
        running.cancel()


async def test_a_throttle_lifted_while_an_answer_came_is_not_waited_for(tmp_path: Path) -> None:
    async with fetching(tmp_path) as made:
        work = made.bench.work
        work._fetchers[BrokerId(NODE), 0] = made.fetcher
        work.throttle(frozenset({of(0)}))
        work.board.throttle.set_rate(0, work.clock.now_ms())
        taken = made.loop.take

        def stop_the_other_and_lift(response: FetchResponse) -> None:
            taken(response)
            made.fetcher.plan.drop(of(1))
            work.throttle(frozenset())

        made.loop.take = stop_the_other_and_lift  # type: ignore[method-assign]
        running = asyncio.ensure_future(made.loop.run())
        async with asyncio.timeout(60):
            await eventually(lambda: len(made.requests) > 1)
        running.cancel()
        (topic,) = made.requests[1].topics
        assert [partition.partition for partition in topic.partitions] == [0]


async def test_the_trouble_with_a_broker_that_leads_nothing_any_more_is_told_no_longer(
    tmp_path: Path,
) -> None:
    async with fetching(tmp_path) as made:
        errors = made.bench.work.status.task_errors
        errors[made.loop._name] = "refused"
        for partition in range(2):
            made.fetcher.plan.drop(of(partition))
        running = asyncio.ensure_future(made.loop.run())
        async with asyncio.timeout(60):
            await eventually(lambda: made.loop._name not in errors)
        running.cancel()
