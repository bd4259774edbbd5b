"""Mirrors at work through restarts of either side, changes of their config, and failures."""

import asyncio
from pathlib import Path

import pytest

from support.asking import create, delete
from support.batches import batch
from support.brokers import local_broker
from support.mirrored_pair import (
    QUICK,
    QUICK_MIRROR,
    Pair,
    create_mirror,
    describe,
    mirrored_pair,
    until,
)
from twinlog.broker.mirror_board import MirrorBoard, MirrorStatus
from twinlog.broker.mirrors.driven import DrivenPartition
from twinlog.mirroring.states import DesiredState
from twinlog.model.ids import TopicPartition
from twinlog.wire.messages.configs import (
    INCREMENTAL_ALTER_CONFIGS,
    ConfigAlteration,
    IncrementalAlterConfigsRequest,
    ResourceAlteration,
)
from twinlog.wire.messages.mirrors import (
    PAUSE_MIRROR_TOPICS,
    MirrorTopic,
    PauseMirrorTopicsRequest,
)
from twinlog.wire.messages.topics import CREATE_TOPICS, CreatableTopic, CreateTopicsRequest

pytestmark = pytest.mark.slow
MIRROR_RESOURCE = 64


async def test_a_restarted_destination_goes_on_at_its_log_end_and_a_stopped_topic_stays_writable(
    tmp_path: Path,
) -> None:
    async with local_broker(tmp_path / "source", QUICK) as source:
        async with local_broker(tmp_path / "destination", QUICK) as destination:
            pair = Pair(source, destination)
            for topic in ("going", "stopped"):
                await pair.make_topic(topic)
                await pair.produce(topic, 3)
            await pair.create()
            await pair.start("going", "stopped")
            for topic in ("going", "stopped"):
                await pair.until_level(topic)
            await pair.stop("stopped")
            await pair.until_state("STOPPED", "stopped")
        await Pair(source, destination).produce("going", 2)
        async with local_broker(tmp_path / "destination", QUICK) as again:
            pair = Pair(source, again)
            await pair.until_level("going")
            assert pair.bytes_of(again, "going") == pair.bytes_of(source, "going")

            async def is_writable() -> bool:
                return not (await again.produce("stopped", batch(1))).error_code

            await until(is_writable)


async def test_a_source_that_goes_away_changes_no_state_and_is_followed_when_it_is_back(
    tmp_path: Path,
) -> None:
    async with local_broker(tmp_path / "destination", QUICK) as destination:
        async with local_broker(tmp_path / "source", QUICK) as source:
            pair = Pair(source, destination)
            port = source.address.port
            await pair.make_topic("t")
            await pair.produce("t")
            await pair.create()
            await pair.start("t")
            await pair.until_level("t")

        async def is_told() -> bool:
            return bool((await pair.describe("t")).error_message)

        await until(is_told)
        assert (await pair.describe("t")).state_value == "MIRRORING"
        listeners = {"listeners": f"PLAINTEXT://127.0.0.1:{port}"}
        async with local_broker(tmp_path / "source", {**QUICK, **listeners}) as back:
            pair = Pair(back, destination)
            await pair.produce("t", 2)
            await pair.until_level("t")

            async def is_well() -> bool:
                return not (await pair.describe("t")).error_message

            await until(is_well)


async def test_a_stop_needs_nothing_from_the_source(tmp_path: Path) -> None:
    async with local_broker(tmp_path / "destination", QUICK) as destination:
        async with local_broker(tmp_path / "source", QUICK) as source:
            pair = Pair(source, destination)
            await pair.make_topic("t", 3)
            await pair.create()
            await pair.start("t")
            for partition in range(3):
                await pair.until_state("MIRRORING", "t", partition)
        await pair.stop("t")
        for partition in range(3):
            await pair.until_state("STOPPED", "t", partition)


async def test_a_change_of_one_topic_is_told_to_its_partitions_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with mirrored_pair(tmp_path) as pair:
        for topic in ("changed", "left"):
            await pair.make_topic(topic, 2)
        await pair.create()
        await pair.start(".*")
        for topic in ("changed", "left"):
            for partition in range(2):
                await pair.until_state("MIRRORING", topic, partition)
        told: list[TopicPartition] = []
        want = DrivenPartition.want

        def wanted(self: DrivenPartition, desired: DesiredState) -> None:
            told.append(self.of)
            want(self, desired)

        monkeypatch.setattr(DrivenPartition, "want", wanted)
        await create(pair.destination, "unrelated")
        topics = (MirrorTopic(topic_name="changed"),)
        pause = PauseMirrorTopicsRequest(mirror_name="m", topics=topics)
        assert not (await pair.destination.ask(PAUSE_MIRROR_TOPICS, pause)).error_code
        for partition in range(2):
            await pair.until_state("PAUSED", "changed", partition)
        assert {(of.topic, of.partition) for of in told} == {("changed", 0), ("changed", 1)}


async def test_a_partition_that_follows_has_no_task_of_its_own(tmp_path: Path) -> None:
    async with mirrored_pair(tmp_path) as pair:
        await pair.make_topic("one")
        await pair.make_topic("many", 40)
        await pair.create()
        await pair.start("one")
        await pair.until_state("MIRRORING", "one")
        before = len(asyncio.all_tasks())
        await pair.start("many")
        for partition in range(40):
            await pair.until_state("MIRRORING", "many", partition)

        async def is_at_rest() -> bool:
            return len(asyncio.all_tasks()) < before + 10

        await until(is_at_rest)


async def test_a_look_while_partitions_are_being_opened_leaves_none_of_them_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    boards: list[MirrorBoard] = []
    begin = MirrorBoard.begin

    def begun(self: MirrorBoard, mirror: str, status: MirrorStatus, now_ms: int) -> None:
        boards.append(self)
        begin(self, mirror, status, now_ms)

    async def look_all_the_time() -> None:
        while True:
            boards[0].wake.set()
            await asyncio.sleep(0)

    monkeypatch.setattr(MirrorBoard, "begin", begun)
    async with mirrored_pair(tmp_path) as pair:
        await pair.make_topic("t")
        await pair.create()
        await pair.start("t.*")
        await pair.until_state("MIRRORING", "t")
        names = [f"t{number}" for number in range(4)]
        topics = tuple(
            CreatableTopic(name=n, num_partitions=2, replication_factor=1) for n in names
        )
        await pair.source.ask(CREATE_TOPICS, CreateTopicsRequest(topics=topics, timeout_ms=60_000))
        looking = asyncio.ensure_future(look_all_the_time())
        boards[0].nudge("m")
        try:
            for name in names:
                for partition in range(2):
                    await pair.until_state("MIRRORING", name, partition)
        finally:
            looking.cancel()


async def test_a_topic_that_a_mirror_has_no_more_is_let_go(tmp_path: Path) -> None:
    async with mirrored_pair(tmp_path) as pair:
        await pair.make_topic("t", 2)
        await pair.create()
        await pair.start("t")
        for partition in range(2):
            await pair.until_state("MIRRORING", "t", partition)
        await pair.stop("t")
        for partition in range(2):
            await pair.until_state("STOPPED", "t", partition)
        await delete(pair.destination, "t")

        async def is_let_go() -> bool:
            return not await describe(pair.destination)

        await until(is_let_go)


async def test_new_patterns_are_followed_without_new_connections_and_other_settings_with(
    tmp_path: Path,
) -> None:
    async with mirrored_pair(tmp_path) as pair:
        for topic in ("a", "b"):
            await pair.make_topic(topic)
            await pair.produce(topic)
        await pair.create()
        await _alter(pair, "topics.include", "a")
        await pair.until_state("MIRRORING", "a")
        await _alter(pair, "fetch.wait.max.ms", "10")
        await _alter(pair, "topics.include", "a,b")
        for topic in ("a", "b"):
            await pair.until_level(topic)
            await pair.until_state("MIRRORING", topic)


async def _alter(pair: Pair, key: str, value: str) -> None:
    config = ConfigAlteration(name=key, config_operation=0, value=value)
    resource = ResourceAlteration(
        resource_type=MIRROR_RESOURCE, resource_name="m", configs=(config,)
    )
    answer = await pair.destination.ask(
        INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsRequest(resources=(resource,))
    )
    assert not answer.responses[0].error_code, answer


async def test_a_loop_is_seen_and_failback_follows_once_the_other_way_is_stopped(
    tmp_path: Path,
) -> None:
    async with mirrored_pair(tmp_path) as pair:
        await pair.make_topic("t")
        await pair.produce("t", 3)
        await pair.create()
        await pair.start("t")
        await pair.until_level("t")
        back = Pair(pair.destination, pair.source)
        config = {"bootstrap.servers": str(pair.destination.address), **QUICK_MIRROR}
        await create_mirror(pair.source, "m", config)
        assert not any(topic.error_code for topic in (await back.start("t")).topics)
        await back.until_failed("t", "Detected mirror loop")
        await pair.stop("t")
        await pair.until_state("STOPPED", "t")
        assert not (await pair.destination.produce("t", batch(1))).error_code
        await back.until_state("MIRRORING", "t")
        await back.until_level("t")
        assert pair.bytes_of(pair.source, "t") == pair.bytes_of(pair.destination, "t")


async def test_several_mirrors_run_side_by_side(tmp_path: Path) -> None:
    async with (
        mirrored_pair(tmp_path / "one") as pair,
        local_broker(tmp_path / "third", QUICK) as third,
    ):
        await pair.make_topic("t")
        await pair.produce("t")
        await pair.create()
        await pair.start("t")
        other = Pair(third, pair.destination)
        await other.make_topic("u")
        await other.produce("u", 2)
        config = {
            "bootstrap.servers": str(third.address),
            "topics.include": "u",
            **QUICK_MIRROR,
        }
        assert not (await create_mirror(pair.destination, "n", config)).error_code
        await asyncio.gather(pair.until_level("t"), other.until_level("u"))
