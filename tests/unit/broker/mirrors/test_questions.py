"""Questions to a source: asked together, and every one answered."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from support.mirror_bench import Bench, mirror_bench
from support.scripted_source import NODE, ScriptedSource, scripted_source
from twinlog.broker.mirrors.questions import Asked
from twinlog.mirroring import effects as do
from twinlog.mirroring import events as on
from twinlog.mirroring.records import LastMirrorEpoch
from twinlog.model.errors import ErrorCode
from twinlog.model.ids import BrokerId, LeaderEpoch, Offset, TopicId, TopicName, TopicPartition
from twinlog.wire.messages.mirrors import (
    DESCRIBE_CLUSTER_MIRRORS,
    DescribeClusterMirrorsResponse,
    DescribedMirror,
    DescribedMirrorPartition,
    DescribedMirrorTopic,
)
from twinlog.wire.messages.offsets import (
    LIST_OFFSETS,
    OFFSET_FOR_LEADER_EPOCH,
    EpochEndOffset,
    EpochEndTopic,
    ListedPartition,
    ListedTopic,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)

Question = (
    do.FindSourceLeader | do.AskSourceRange | do.AskOffsetAt | do.AskEpochEnd | do.ReadSourceMirrors
)
NODE_ID, EPOCH = BrokerId(NODE), LeaderEpoch(3)


def of(partition: int, topic: str = "t") -> TopicPartition:
    return TopicPartition(TopicName(topic), partition)


async def answers(bench: Bench, *asked: tuple[TopicPartition, Question]) -> list[on.Event]:
    """Ask at once; give the answers in the order of the questions."""
    loop = asyncio.get_running_loop()
    waiting: list[asyncio.Future[on.Event]] = []
    for partition, question in asked:
        answer: asyncio.Future[on.Event] = loop.create_future()
        waiting.append(answer)
        bench.work.questions.ask(Asked(partition, question, answer.set_result))
    async with asyncio.timeout(60):
        return await asyncio.gather(*waiting)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not is_so():
            await asyncio.to_thread(lambda: None)


async def test_leaders_of_many_partitions_are_found_with_one_request(tmp_path: Path) -> None:
    async with scripted_source() as source, mirror_bench(tmp_path, source.address) as bench:
        found = await answers(
            bench,
            (of(0), do.FindSourceLeader(1)),
            (of(1), do.FindSourceLeader(2)),
            (of(9), do.FindSourceLeader(3)),
            (of(0, "none"), do.FindSourceLeader(4)),
        )
        assert found[:2] == [
            on.SourceLeaderFound(NODE_ID, LeaderEpoch(3), 1),
            on.SourceLeaderFound(NODE_ID, LeaderEpoch(4), 2),
        ]
        assert [one.code for one in found[2:] if isinstance(one, on.SourceRefused)] == [3, 3]
        assert sum(key.name == "METADATA" for key, _ in source.asked) == 1


async def test_questions_that_come_one_by_one_are_asked_in_few_rounds(tmp_path: Path) -> None:
    async with scripted_source() as source, mirror_bench(tmp_path, source.address) as bench:
        count = 60
        found: list[on.Event] = []
        for turn in range(count):
            bench.work.questions.ask(Asked(of(0), do.FindSourceLeader(turn), found.append))
            await asyncio.sleep(0)
        await until(lambda: len(found) == count)
        assert sum(key.name == "METADATA" for key, _ in source.asked) < count // 6


async def test_a_partition_without_a_leader_or_under_another_id_is_refused(
    tmp_path: Path,
) -> None:
    async with scripted_source() as source, mirror_bench(tmp_path, source.address) as bench:
        source.has_leader = False
        (no_leader,) = await answers(bench, (of(0), do.FindSourceLeader(1)))
        assert isinstance(no_leader, on.SourceRefused)
        assert no_leader.code == ErrorCode.LEADER_NOT_AVAILABLE
        ids: list[TopicId] = []

        def is_other(_: TopicName, there: TopicId) -> bool:
            ids.append(there)
            return False

        bench.work.questions.is_same_topic = is_other
        (other,) = await answers(bench, (of(0), do.FindSourceLeader(1)))
        assert isinstance(other, on.SourceRefused)
        assert other.code == ErrorCode.INCONSISTENT_TOPIC_ID
        assert ids == [UUID(int=42)]


def listing(source: ScriptedSource, *, error: int = 0) -> list[ListOffsetsRequest]:
    """Answer ListOffsets of partition 0 with 5 and 50; leave the others out."""
    requests: list[ListOffsetsRequest] = []

    def listed(request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
        requests.append(request)
        timestamp = request.topics[0].partitions[0].timestamp
        one = ListedPartition(
            partition_index=0, error_code=error, offset=5 if timestamp == -2 else 50
        )
        return ListOffsetsResponse(topics=(ListedTopic(name="t", partitions=(one,)),))

    source.on(LIST_OFFSETS, listed)
    return requests


async def test_both_ends_of_a_log_are_asked_for(tmp_path: Path) -> None:
    async with scripted_source() as source, mirror_bench(tmp_path, source.address) as bench:
        requests = listing(source)
        await bench.source.peers.refresh(())
        found = await answers(
            bench,
            (of(0), do.AskSourceRange(NODE_ID, EPOCH, 1)),
            (of(1), do.AskSourceRange(NODE_ID, EPOCH, 2)),
        )
        range_found, left_out = found
        assert isinstance(range_found, on.SourceRangeFound)
        assert (range_found.start, range_found.end) == (5, 50)
        assert isinstance(left_out, on.SourceRefused)
        assert "leaves out t-1" in left_out.why
        asked = requests[0].topics[0].partitions
        assert [(p.partition_index, p.current_leader_epoch) for p in asked] == [(0, 3), (1, 3)]


async def test_an_error_of_one_partition_goes_to_it(tmp_path: Path) -> None:
    async with scripted_source() as source, mirror_bench(tmp_path, source.address) as bench:
        listing(source, error=ErrorCode.FENCED_LEADER_EPOCH)
        await bench.source.peers.refresh(())
        (refused,) = await answers(bench, (of(0), do.AskSourceRange(NODE_ID, EPOCH, 1)))
        assert isinstance(refused, on.SourceRefused)
        assert refused.code == ErrorCode.FENCED_LEADER_EPOCH


async def test_an_answer_without_an_offset_is_none(tmp_path: Path) -> None:
    nowhere = ListedPartition(partition_index=0, offset=-1)
    ends_nowhere = EpochEndOffset(partition=0, leader_epoch=2, end_offset=-1)
    async with scripted_source() as source, mirror_bench(tmp_path, source.address) as bench:
        source.on(
            LIST_OFFSETS,
            lambda *_: ListOffsetsResponse(topics=(ListedTopic(name="t", partitions=(nowhere,)),)),
        )
        source.on(
            OFFSET_FOR_LEADER_EPOCH,
            lambda *_: OffsetForLeaderEpochResponse(
                topics=(EpochEndTopic(topic="t", partitions=(ends_nowhere,)),)
            ),
        )
        await bench.source.peers.refresh(())
        found = await answers(
            bench,
            (of(0), do.AskSourceRange(NODE_ID, EPOCH, 1)),
            (of(0), do.AskEpochEnd(NODE_ID, EPOCH, LeaderEpoch(2), 1)),
        )
        assert [one.code for one in found if isinstance(one, on.SourceRefused)] == [
            ErrorCode.OFFSET_NOT_AVAILABLE
        ] * 2


async def test_a_refusal_for_want_of_a_permission_says_which(tmp_path: Path) -> None:
    async with scripted_source() as source, mirror_bench(tmp_path, source.address) as bench:
        source.hidden.add("t")
        (refused,) = await answers(bench, (of(0), do.FindSourceLeader(1)))
        assert isinstance(refused, on.SourceRefused)
        assert refused.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert "; User:ANONYMOUS needs Describe on topic t there: kafka-acls.sh" in refused.why


async def test_the_place_of_a_time_is_asked_for_and_may_not_be_there_yet(tmp_path: Path) -> None:
    async with scripted_source() as source, mirror_bench(tmp_path, source.address) as bench:
        places = {7_000: 42, 9_000: -1}

        def listed(request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
            asked = request.topics[0].partitions[:2]
            ones = tuple(
                ListedPartition(partition_index=p.partition_index, offset=places[p.timestamp])
                for p in asked
            )
            return ListOffsetsResponse(topics=(ListedTopic(name="t", partitions=ones),))

        source.on(LIST_OFFSETS, listed)
        await bench.source.peers.refresh(())
        found = await answers(
            bench,
            (of(0), do.AskOffsetAt(NODE_ID, EPOCH, 7_000, 1)),
            (of(1), do.AskOffsetAt(NODE_ID, EPOCH, 9_000, 2)),
            (of(2), do.AskOffsetAt(NODE_ID, EPOCH, 9_000, 3)),
        )
        assert found[:2] == [on.OffsetAtFound(Offset(42), 1), on.OffsetAtFound(None, 2)]
        assert isinstance(found[2], on.SourceRefused)


@pytest.mark.parametrize("version", [2, 4])
async def test_ends_of_epochs_are_asked_for_as_a_consumer(tmp_path: Path, version: int) -> None:
    ranges = {OFFSET_FOR_LEADER_EPOCH.key: (version, version)}
    async with (
        scripted_source(ranges=ranges) as source,
        mirror_bench(tmp_path, source.address) as bench,
    ):
        requests: list[OffsetForLeaderEpochRequest] = []

        def ends(request: OffsetForLeaderEpochRequest, _: int) -> OffsetForLeaderEpochResponse:
            requests.append(request)
            known = EpochEndOffset(partition=0, leader_epoch=2, end_offset=40)
            bad = EpochEndOffset(partition=1, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return OffsetForLeaderEpochResponse(
                topics=(EpochEndTopic(topic="t", partitions=(known, bad)),)
            )

        source.on(OFFSET_FOR_LEADER_EPOCH, ends)
        await bench.source.peers.refresh(())
        found = await answers(
            bench,
            (of(0), do.AskEpochEnd(NODE_ID, EPOCH, LeaderEpoch(2), 1)),
            (of(1), do.AskEpochEnd(NODE_ID, EPOCH, LeaderEpoch(2), 2)),
        )
        assert isinstance(found[0], on.EpochEndFound)
        assert (found[0].asked, found[0].epoch, found[0].end) == (2, 2, 40)
        assert isinstance(found[1], on.SourceRefused)
        if version > 2:
            assert requests[0].replica_id == -1


async def test_a_source_that_cannot_be_reached_refuses_every_question(tmp_path: Path) -> None:
    async with scripted_source() as source:
        gone = source.address
    async with mirror_bench(tmp_path, gone) as bench:
        found = await answers(
            bench,
            (of(0), do.FindSourceLeader(1)),
            (of(0), do.AskSourceRange(NODE_ID, EPOCH, 2)),
            (of(0), do.AskEpochEnd(NODE_ID, EPOCH, EPOCH, 3)),
            (of(0), do.ReadSourceMirrors(4)),
            (of(0), do.AskOffsetAt(NODE_ID, EPOCH, 7_000, 5)),
        )
        codes = [(one.code, one.turn) for one in found if isinstance(one, on.SourceRefused)]
        assert codes == [(ErrorCode.NETWORK_EXCEPTION, turn) for turn in (1, 2, 3, 4, 5)]


async def test_a_source_that_knows_no_mirrors_has_nothing_to_say_of_them(tmp_path: Path) -> None:
    async with scripted_source() as source, mirror_bench(tmp_path, source.address) as bench:
        (found,) = await answers(bench, (of(0), do.ReadSourceMirrors(1)))
        assert found == on.SourceMirrorsRead(None, None, 1)


async def test_a_source_with_mirrors_is_asked_for_those_of_our_cluster(tmp_path: Path) -> None:
    async with scripted_source() as source, mirror_bench(tmp_path, source.address) as bench:
        partition = DescribedMirrorPartition(
            partition_index=0, state_value="STOPPED", last_mirror_epoch=5, last_mirror_offset=80
        )
        topic = DescribedMirrorTopic(topic_name="t", partitions=(partition,))
        mirror = DescribedMirror(mirror_name="b", source_cluster_id="own-cluster", topics=(topic,))
        source.on(
            DESCRIBE_CLUSTER_MIRRORS,
            lambda request, _: DescribeClusterMirrorsResponse(
                mirrors=(mirror,) if request.cluster_id == "own-cluster" else ()
            ),
        )
        (found,) = await answers(bench, (of(0), do.ReadSourceMirrors(1)))
        assert found == on.SourceMirrorsRead(LastMirrorEpoch(epoch=5, log_end=80), None, 1)
