"""What an operator asks of mirrors, at a whole broker with another one as source."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from support.batches import batch
from support.mirrored_pair import Pair, create_mirror, mirrored_pair, until
from twinlog.broker.context import Broker
from twinlog.broker.handlers import mirrors as handlers
from twinlog.broker.mirrors.asked_topics import ask_topics
from twinlog.broker.mirrors.descriptions import known_partitions
from twinlog.mirroring.records import MirrorPartition
from twinlog.mirroring.shard import Known
from twinlog.model.errors import ErrorCode
from twinlog.wire.messages.configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    ResourceToDescribe,
)
from twinlog.wire.messages.mirrors import (
    DELETE_CLUSTER_MIRROR,
    DESCRIBE_CLUSTER_MIRRORS,
    LIST_CLUSTER_MIRRORS,
    PAUSE_MIRROR_TOPICS,
    RECOVER_MIRROR_TOPICS,
    RESUME_MIRROR_TOPICS,
    START_MIRROR_TOPICS,
    STOP_MIRROR_TOPICS,
    DeleteClusterMirrorRequest,
    DescribeClusterMirrorsRequest,
    ListClusterMirrorsRequest,
    MirrorTopic,
    MirrorTopicsResponse,
    PauseMirrorTopicsRequest,
    RecoverMirrorTopicsRequest,
    ResumeMirrorTopicsRequest,
    StartMirrorTopicsRequest,
    StopMirrorTopicsRequest,
    TopicToStart,
)
from twinlog.wire.messages.topics import DELETE_TOPICS, DeleteTopicsRequest, TopicToDelete

pytestmark = pytest.mark.slow


def results(answer: MirrorTopicsResponse) -> dict[str, int]:
    assert not answer.error_code, answer
    return {topic.topic_name: topic.error_code for topic in answer.topics}


async def mirroring(pair: Pair, *topics: str) -> None:
    for topic in topics:
        await pair.make_topic(topic)
        await pair.produce(topic)
    assert not (await pair.create()).error_code
    assert not any(results(await pair.start(*topics)).values())
    for topic in topics:
        await pair.until_state("MIRRORING", topic)


async def test_a_mirror_is_refused_with_what_is_wrong(tmp_path: Path) -> None:
    async with mirrored_pair(tmp_path) as pair:
        itself = {"bootstrap.servers": str(pair.destination.address)}
        source = {"bootstrap.servers": str(pair.source.address)}
        attempts = {
            "bootstrap.servers is missing": ("m", {}),
            "tocips.include": ("m", {**source, "tocips.include": "a"}),
            "each a regular expression": ("m", {**source, "topics.include": "a("}),
            "cannot be reached": ("m", {"bootstrap.servers": "127.0.0.1:1"}),
            "into itself": ("m", itself),
            "source.cluster.id=other": ("m", {**source, "source.cluster.id": "other"}),
            "mirror name": ("no/name", source),
        }
        for why, (name, config) in attempts.items():
            answer = await create_mirror(pair.destination, name, config)
            assert answer.error_code, why
            assert why in (answer.error_message or ""), answer
        assert not (await create_mirror(pair.destination, "m", source)).error_code
        again = await create_mirror(pair.destination, "m", source)
        assert again.error_code == ErrorCode.CLUSTER_MIRROR_ALREADY_EXISTS


async def test_start_takes_names_and_patterns_and_refuses_topics_one_by_one(
    tmp_path: Path,
) -> None:
    async with mirrored_pair(tmp_path) as pair:
        for topic in ("a1", "a2", "b1"):
            await pair.make_topic(topic)
        await pair.create()
        await pair.destination.make_topic("a2")
        named = tuple(TopicToStart(topic_name=name) for name in ("b1", "none", "__x"))
        answer = await pair.start("a.*", topics=named)
        assert results(answer) == {
            "__x": ErrorCode.INVALID_REQUEST,
            "a1": 0,
            "a2": ErrorCode.INCONSISTENT_TOPIC_ID,
            "b1": 0,
            "none": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        bad = await pair.start("a(")
        assert bad.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
        await pair.make_topic("a3")
        assert results(await pair.start("a3")) == {"a3": 0}
        refused = await pair.start("a2", "later")
        assert results(refused) == {"a2": ErrorCode.INCONSISTENT_TOPIC_ID}
        # What was refused by its name is not begun later, when nobody expects it.
        asked = ResourceToDescribe(
            resource_type=64, resource_name="m", configuration_keys=("topics.include",)
        )
        request = DescribeConfigsRequest(resources=(asked,))
        (told,) = (await pair.destination.ask(DESCRIBE_CONFIGS, request)).results
        assert [config.value for config in told.configs] == ["b1,a.*,a3,later"]


async def test_a_start_takes_a_topic_out_of_the_excluded_ones_in_the_same_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look by the filters between the two would stop it again."""
    seen: list[str | None] = []

    async def looked(broker: Any, *given: Any, **more: Any) -> Any:
        started = await ask_topics(broker, *given, **more)
        seen.append(broker.facts.image.mirrors["m"].config.get("topics.exclude"))
        return started

    async with mirrored_pair(tmp_path) as pair:
        for topic in ("a", "b"):
            await pair.make_topic(topic)
        await pair.create()
        monkeypatch.setattr(handlers, "ask_topics", looked)
        await pair.start("a|b")
        await pair.stop("b")
        await pair.until_state("STOPPED", "b")
        assert results(await pair.start("b")) == {"b": 0}
        assert seen[-1] == "__.*"
        await pair.until_state("MIRRORING", "b")


async def test_a_topic_is_mirrored_byte_for_byte_and_read_only_until_it_is_stopped(
    tmp_path: Path,
) -> None:
    async with mirrored_pair(tmp_path) as pair:
        await mirroring(pair, "t")
        await pair.until_level("t")
        assert pair.bytes_of(pair.destination, "t") == pair.bytes_of(pair.source, "t")
        refused = await pair.destination.produce("t", batch(1))
        assert refused.error_code == ErrorCode.POLICY_VIOLATION
        assert results(await pair.stop("t")) == {"t": 0}
        await pair.until_state("STOPPED", "t")
        told = await pair.describe("t")
        assert (told.last_mirror_offset, told.destination_offset) == (2, 2)
        assert not (await pair.destination.produce("t", batch(1))).error_code
        assert pair.bytes_of(pair.destination, "t").startswith(pair.bytes_of(pair.source, "t"))


async def test_a_topic_is_deleted_once_its_stop_is_through_without_asking_twice(
    tmp_path: Path,
) -> None:
    async with mirrored_pair(tmp_path) as pair:
        await mirroring(pair, "t")
        assert results(await pair.stop("t")) == {"t": 0}
        request = DeleteTopicsRequest(topics=(TopicToDelete(name="t"),), timeout_ms=60_000)
        answer = await pair.destination.ask(DELETE_TOPICS, request)
        assert not answer.responses[0].error_code, answer


async def test_stop_by_name_says_what_is_not_the_mirrors(tmp_path: Path) -> None:
    async with mirrored_pair(tmp_path) as pair:
        await mirroring(pair, "t")
        await pair.destination.make_topic("own")
        names = tuple(MirrorTopic(topic_name=name) for name in ("t", "own", "none"))
        request = StopMirrorTopicsRequest(mirror_name="m", topics=names)
        answer = await pair.destination.ask(STOP_MIRROR_TOPICS, request)
        assert results(answer) == {
            "none": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "own": ErrorCode.TOPIC_NOT_IN_CLUSTER_MIRROR,
            "t": 0,
        }
        unknown = StopMirrorTopicsRequest(mirror_name="x", topics=names)
        refused = await pair.destination.ask(STOP_MIRROR_TOPICS, unknown)
        assert refused.error_code == ErrorCode.UNKNOWN_CLUSTER_MIRROR


@pytest.mark.parametrize("pattern", ["(a,b)", "t{1,2}", "a("])
async def test_a_pattern_that_cannot_stand_in_the_filters_stops_nothing_and_harms_nobody(
    tmp_path: Path, pattern: str
) -> None:
    async with mirrored_pair(tmp_path) as pair:
        await mirroring(pair, "t")
        names = (MirrorTopic(topic_name=pattern),)
        by_name = StopMirrorTopicsRequest(mirror_name="m", topics=names)
        refusals = [
            await pair.start(pattern),
            await pair.stop(pattern, "t"),
            await pair.destination.ask(STOP_MIRROR_TOPICS, by_name),
        ]
        assert {one.error_code for one in refusals} == {ErrorCode.INVALID_REGULAR_EXPRESSION}
        assert (await pair.describe("t")).state_value == "MIRRORING"
        assert results(await pair.stop("t")) == {"t": 0}
        await pair.until_state("STOPPED", "t")


async def test_pause_holds_a_topic_where_it_is_and_resume_goes_on(tmp_path: Path) -> None:
    async with mirrored_pair(tmp_path) as pair:
        await mirroring(pair, "t")
        await pair.until_level("t")
        topics = (MirrorTopic(topic_name="t"),)
        paused = PauseMirrorTopicsRequest(mirror_name="m", topics=topics)
        assert results(await pair.destination.ask(PAUSE_MIRROR_TOPICS, paused)) == {"t": 0}
        await pair.until_state("PAUSED", "t")
        await pair.produce("t")
        await asyncio.sleep(0.1)
        assert (await pair.describe("t")).destination_offset == 2
        resumed = ResumeMirrorTopicsRequest(mirror_name="m", topics=topics)
        assert results(await pair.destination.ask(RESUME_MIRROR_TOPICS, resumed)) == {"t": 0}
        await pair.until_level("t")
        again = await pair.destination.ask(RESUME_MIRROR_TOPICS, resumed)
        assert results(again) == {"t": ErrorCode.MIRROR_TOPIC_NOT_PAUSED}


async def test_mirrors_are_listed_by_filter_and_described_by_topic(tmp_path: Path) -> None:
    async with mirrored_pair(tmp_path) as pair:
        await mirroring(pair, "t", "u")
        ask = pair.destination.ask
        listed = await ask(
            LIST_CLUSTER_MIRRORS, ListClusterMirrorsRequest(include_topic_names=True)
        )
        assert [(m.mirror_name, m.topic_count, m.topic_names) for m in listed.mirrors] == [
            ("m", 2, ("t", "u"))
        ]
        for request in (
            ListClusterMirrorsRequest(mirror_name_filter=("x",)),
            ListClusterMirrorsRequest(source_cluster_id_filter=("x",)),
        ):
            assert not (await ask(LIST_CLUSTER_MIRRORS, request)).mirrors
        stopped = ListClusterMirrorsRequest(desired_state_filter=("STOPPED",))
        assert (await ask(LIST_CLUSTER_MIRRORS, stopped)).mirrors[0].topic_count == 0
        unknown = DescribeClusterMirrorsRequest(mirror_names=("x",))
        answer = await ask(DESCRIBE_CLUSTER_MIRRORS, unknown)
        assert answer.mirrors[0].error_code == ErrorCode.UNKNOWN_CLUSTER_MIRROR
        other = DescribeClusterMirrorsRequest(cluster_id="of another cluster")
        assert not (await ask(DESCRIBE_CLUSTER_MIRRORS, other)).mirrors


async def test_a_mirror_is_deleted_only_when_all_is_stopped_and_leaves_no_state(
    tmp_path: Path,
) -> None:
    async with mirrored_pair(tmp_path) as pair:
        await mirroring(pair, "t")
        ask = pair.destination.ask
        request = DeleteClusterMirrorRequest(mirror_name="m")
        refused = await ask(DELETE_CLUSTER_MIRROR, request)
        assert refused.error_code == ErrorCode.INVALID_CLUSTER_MIRROR_STATE
        await pair.stop("t")
        await pair.until_state("STOPPED", "t")
        assert not (await ask(DELETE_CLUSTER_MIRROR, request)).error_code
        unknown = await ask(DELETE_CLUSTER_MIRROR, request)
        assert unknown.error_code == ErrorCode.UNKNOWN_CLUSTER_MIRROR
        await pair.create()

        async def is_forgotten() -> bool:
            return not any(results(await pair.start("t")).values())

        await until(is_forgotten)
        await pair.until_state("MIRRORING", "t")
        assert (await pair.describe("t")).last_mirror_epoch == -1


async def test_a_mirror_whose_topic_began_again_after_its_states_were_read_is_not_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with mirrored_pair(tmp_path) as pair:
        await mirroring(pair, "t")
        await pair.stop("t")
        await pair.until_state("STOPPED", "t")
        another = await pair.destination.another_connection()

        async def begun_again_meanwhile(broker: Broker) -> Mapping[MirrorPartition, Known]:
            known = await known_partitions(broker)
            start = StartMirrorTopicsRequest(mirror_name="m", include_patterns=("t",))
            stop = StopMirrorTopicsRequest(mirror_name="m", topics=(), patterns=("t",))
            assert results(await another.call(START_MIRROR_TOPICS, start, timeout_s=60)) == {"t": 0}
            assert results(await another.call(STOP_MIRROR_TOPICS, stop, timeout_s=60)) == {"t": 0}
            return known

        with monkeypatch.context() as patched:
            patched.setattr(handlers, "known_partitions", begun_again_meanwhile)
            request = DeleteClusterMirrorRequest(mirror_name="m")
            refused = await pair.destination.ask(DELETE_CLUSTER_MIRROR, request)
        assert refused.error_code == ErrorCode.INVALID_CLUSTER_MIRROR_STATE
        await pair.until_state("STOPPED", "t")
        await another.close()


async def test_recover_is_taken_for_topics_of_the_mirror_only(tmp_path: Path) -> None:
    async with mirrored_pair(tmp_path) as pair:
        await mirroring(pair, "t")
        names = tuple(MirrorTopic(topic_name=name) for name in ("t", "none"))
        request = RecoverMirrorTopicsRequest(mirror_name="m", topics=names)
        answer = await pair.destination.ask(RECOVER_MIRROR_TOPICS, request)
        assert results(answer) == {"none": ErrorCode.TOPIC_NOT_IN_CLUSTER_MIRROR, "t": 0}


async def listed_at(pair: Pair) -> int:
    """Give the metadata revision at which an operator looks."""
    answer = await pair.destination.ask(LIST_CLUSTER_MIRRORS, ListClusterMirrorsRequest())
    return answer.mirrors[0].state_offset


async def test_of_two_operators_who_decided_by_the_same_look_the_second_is_refused(
    tmp_path: Path,
) -> None:
    async with mirrored_pair(tmp_path) as pair:
        await mirroring(pair, "t")
        topics, here = (MirrorTopic(topic_name="t"),), pair.destination
        seen_at = await listed_at(pair)
        pause = PauseMirrorTopicsRequest(mirror_name="m", topics=topics, state_offset=seen_at)
        stop = StopMirrorTopicsRequest(mirror_name="m", topics=topics, state_offset=seen_at)
        answers = await asyncio.gather(
            here.ask(PAUSE_MIRROR_TOPICS, pause), here.ask(STOP_MIRROR_TOPICS, stop)
        )
        outcomes = sorted(results(answer)["t"] for answer in answers)
        assert outcomes == [0, ErrorCode.INVALID_CLUSTER_MIRROR_STATE]
        loser = next(answer for answer in answers if results(answer)["t"])
        assert "somebody else was faster" in (loser.topics[0].error_message or "")
        again = StopMirrorTopicsRequest(
            mirror_name="m", topics=topics, state_offset=await listed_at(pair)
        )
        assert results(await here.ask(STOP_MIRROR_TOPICS, again)) == {"t": 0}
        await pair.until_state("STOPPED", "t")
        outdated = DeleteClusterMirrorRequest(mirror_name="m", state_offset=seen_at)
        deleted = await here.ask(DELETE_CLUSTER_MIRROR, outdated)
        assert deleted.error_code == ErrorCode.INVALID_CLUSTER_MIRROR_STATE
        restarted = await pair.start("t", state_offset=seen_at)
        assert results(restarted) == {"t": ErrorCode.INVALID_CLUSTER_MIRROR_STATE}
        newest = DeleteClusterMirrorRequest(mirror_name="m", state_offset=await listed_at(pair))
        assert not (await here.ask(DELETE_CLUSTER_MIRROR, newest)).error_code


async def test_a_list_by_a_state_that_there_is_not_says_which_there_are(tmp_path: Path) -> None:
    async with mirrored_pair(tmp_path) as pair:
        request = ListClusterMirrorsRequest(desired_state_filter=("FAILED",))
        answer = await pair.destination.ask(LIST_CLUSTER_MIRRORS, request)
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert answer.error_message == "'FAILED' is none of MIRRORING, PAUSED, STOPPED"
