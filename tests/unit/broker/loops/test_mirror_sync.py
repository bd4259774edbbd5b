"""Topics, partitions, settings and group offsets follow the source by themselves."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from support.batches import batch
from support.mirrored_pair import Pair, create_mirror, mirrored_pair, until
from twinlog.broker.loops import mirror_sync
from twinlog.broker.loops.mirror_states import MirrorStates
from twinlog.broker.loops.mirror_sync import MirrorSync
from twinlog.broker.mirrors.source import checked_settings
from twinlog.broker.mirrors.source_reads import Overrides, Refusals
from twinlog.cluster.changes import PartitionsAdded
from twinlog.cluster.image import ClusterImage
from twinlog.cluster.topics import grow_topic
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import TopicName
from twinlog.wire.messages.configs import (
    INCREMENTAL_ALTER_CONFIGS,
    ConfigAlteration,
    IncrementalAlterConfigsRequest,
    ResourceAlteration,
)
from twinlog.wire.messages.group_offsets import (
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
    OffsetDeletePartition,
    OffsetDeleteRequest,
    OffsetDeleteTopic,
    OffsetFetchGroup,
    OffsetFetchRequest,
)
from twinlog.wire.messages.groups import FIND_COORDINATOR, FindCoordinatorRequest
from twinlog.wire.messages.mirrors import (
    DELETE_CLUSTER_MIRROR,
    DESCRIBE_CLUSTER_MIRRORS,
    DeleteClusterMirrorRequest,
    DescribeClusterMirrorsRequest,
)
from twinlog.wire.messages.topics import (
    CREATE_PARTITIONS,
    DELETE_TOPICS,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    DeleteTopicsRequest,
    TopicToDelete,
)

pytestmark = pytest.mark.slow
TOPIC_RESOURCE, MIRROR_RESOURCE = 2, 64
SET, DELETE = 0, 1


async def commit(pair: Pair, group: str, topic: str, offset: int) -> None:
    """Commit at the source, without being a member."""
    await pair.source.ask(FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=(group,)))
    one = OffsetCommitPartition(partition_index=0, committed_offset=offset)
    request = OffsetCommitRequest(
        group_id=group, topics=(OffsetCommitTopic(name=topic, partitions=(one,)),)
    )
    answer = await pair.source.ask(OFFSET_COMMIT, request, 8)
    assert not answer.topics[0].partitions[0].error_code


async def committed_here(pair: Pair, group: str) -> dict[str, int]:
    await pair.destination.ask(FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=(group,)))
    request = OffsetFetchRequest(groups=(OffsetFetchGroup(group_id=group),))
    answer = await pair.destination.ask(OFFSET_FETCH, request, 8)
    return {
        topic.name: partition.committed_offset
        for topic in answer.groups[0].topics
        for partition in topic.partitions
    }


async def until_committed(pair: Pair, group: str, offsets: dict[str, int]) -> None:
    async def is_so() -> bool:
        return await committed_here(pair, group) == offsets

    await until(is_so)


async def test_new_topics_that_the_patterns_want_are_found_and_partitions_grow(
    tmp_path: Path,
) -> None:
    async with mirrored_pair(tmp_path, {"mirror.metadata.refresh.interval.ms": "50"}) as pair:
        await pair.create(topics_include="a.*", topics_exclude="ax")
        for name in ("a1", "ax", "b"):
            await pair.make_topic(name)
        await pair.until_state("MIRRORING", "a1")
        grown = CreatePartitionsTopic(name="a1", count=3)
        request = CreatePartitionsRequest(topics=(grown,), timeout_ms=60_000)
        assert not (await pair.source.ask(CREATE_PARTITIONS, request)).results[0].error_code
        await pair.until_state("MIRRORING", "a1", 2)
        await pair.produce("a1", 2, partition=2)
        await pair.until_level("a1", 2)
        here = pair.destination.server._partitions
        assert {p.of.topic for p in here if not p.of.topic.startswith("__")} == {"a1"}


async def test_a_filter_takes_no_topic_that_takes_writes_not_even_one_of_a_mirror_that_is_gone(
    tmp_path: Path,
) -> None:
    async with mirrored_pair(tmp_path, {"mirror.metadata.refresh.interval.ms": "50"}) as pair:
        await pair.make_topic("t")
        await pair.produce("t", 2)
        await pair.create()
        await pair.start("t")
        await pair.until_level("t")
        address = {"bootstrap.servers": str(pair.source.address), "topics.include": ".*"}
        assert not (await create_mirror(pair.destination, "n", address)).error_code
        await until_told(pair, "belongs to mirror m", of="n")
        await pair.stop("t")
        await pair.until_state("STOPPED", "t")
        await until_told(pair, "takes writes here, since mirror m was stopped for it", of="n")
        request = DeleteClusterMirrorRequest(mirror_name="m")
        assert not (await pair.destination.ask(DELETE_CLUSTER_MIRROR, request)).error_code
        await until_told(pair, "Topic t takes writes here: it matches", of="n")
        written = await pair.destination.produce("t", batch(2))
        assert (written.error_code, written.base_offset) == (0, 5)  # behind the producer reset


async def test_what_new_filters_find_first_is_not_newer_though_the_mirror_was_not_told_of_them_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs: list[MirrorSync] = []
    run = MirrorSync.run

    async def noted(self: MirrorSync) -> None:
        syncs.append(self)
        await run(self)

    monkeypatch.setattr(MirrorSync, "run", noted)
    async with mirrored_pair(tmp_path) as pair:
        for name in ("a", "b"):
            await pair.make_topic(name)
        await pair.create(topics_include="a")
        await pair.until_state("MIRRORING", "a")
        monkeypatch.setattr(MirrorStates, "_update", lambda *_: None)
        alteration = ConfigAlteration(name="topics.include", config_operation=SET, value="a,b")
        resource = ResourceAlteration(
            resource_type=MIRROR_RESOURCE, resource_name="m", configs=(alteration,)
        )
        request = IncrementalAlterConfigsRequest(resources=(resource,))
        answer = await pair.destination.ask(INCREMENTAL_ALTER_CONFIGS, request)
        assert not answer.responses[0].error_code
        (sync,) = syncs
        facts = sync._broker.facts
        await sync.sync_topics()
        sync._work.settings = checked_settings(facts.image.mirrors["m"].config)
        await sync.sync_topics()
        started = facts.image.topics[TopicName("b")].mirror
        assert started is not None
        assert started.first_partitions == 1


async def test_a_topic_that_is_deleted_at_the_source_stays_here_and_is_failed(
    tmp_path: Path,
) -> None:
    async with mirrored_pair(tmp_path, {"mirror.metadata.refresh.interval.ms": "50"}) as pair:
        await pair.make_topic("t")
        await pair.produce("t", 2)
        await pair.create()
        await pair.start("t")
        await pair.until_level("t")
        kept = pair.bytes_of(pair.destination, "t")
        gone = DeleteTopicsRequest(topics=(TopicToDelete(name="t"),), timeout_ms=60_000)
        await pair.source.ask(DELETE_TOPICS, gone)
        await pair.until_failed("t", "deleted at the source")
        await pair.make_topic("t")
        await pair.stop("t")
        await pair.until_state("STOPPED", "t")
        assert pair.bytes_of(pair.destination, "t").startswith(kept)


async def test_topic_settings_are_set_and_deleted_with_the_source(tmp_path: Path) -> None:
    async with mirrored_pair(tmp_path, {"mirror.metadata.refresh.interval.ms": "50"}) as pair:
        await pair.make_topic("t", retention_ms="1000000", min_insync_replicas="1")
        await pair.create()
        await pair.start("t")
        await pair.until_state("MIRRORING", "t")
        assert await pair.settings_here("t") == {"retention.ms": "1000000"}
        changes = (
            ConfigAlteration(name="retention.ms", config_operation=DELETE, value=None),
            ConfigAlteration(name="segment.bytes", config_operation=SET, value="2000000"),
        )
        resource = ResourceAlteration(
            resource_type=TOPIC_RESOURCE, resource_name="t", configs=changes
        )
        await pair.source.ask(
            INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsRequest(resources=(resource,))
        )

        async def is_followed() -> bool:
            return await pair.settings_here("t") == {"segment.bytes": "2000000"}

        await until(is_followed)


async def test_a_topic_that_cannot_grow_is_told_and_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def grow_others(image: ClusterImage, name: str, *of: Any, **how: Any) -> PartitionsAdded:
        if name == "a":
            raise ApiError(ErrorCode.INVALID_PARTITIONS, "no more")
        return grow_topic(image, name, *of, **how)

    monkeypatch.setattr(mirror_sync, "grow_topic", grow_others)
    async with mirrored_pair(tmp_path, {"mirror.metadata.refresh.interval.ms": "50"}) as pair:
        for name in ("a", "b"):
            await pair.make_topic(name)
        await pair.create()
        await pair.start("a", "b")
        grown = tuple(CreatePartitionsTopic(name=name, count=2) for name in ("a", "b"))
        await pair.source.ask(
            CREATE_PARTITIONS, CreatePartitionsRequest(topics=grown, timeout_ms=60_000)
        )
        await pair.until_state("MIRRORING", "b", 1)
        await until_told(pair, "a: no more")


async def until_told(pair: Pair, error: str, *, of: str = "m") -> None:
    async def is_told() -> bool:
        request = DescribeClusterMirrorsRequest(mirror_names=(of,))
        answer = await pair.destination.ask(DESCRIBE_CLUSTER_MIRRORS, request)
        return any(error in (task.error or "") for task in answer.mirrors[0].tasks)

    await until(is_told)


async def test_settings_of_a_source_that_are_none_here_are_told_and_harm_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def told(_: object, topics: Iterable[TopicName]) -> tuple[Overrides, Refusals]:
        return {name: {"segment.ms": "0"} for name in topics}, {}

    async with mirrored_pair(tmp_path, {"mirror.metadata.refresh.interval.ms": "50"}) as pair:
        await pair.make_topic("t")
        await pair.create()
        await pair.start("t")
        await pair.until_state("MIRRORING", "t")
        monkeypatch.setattr(mirror_sync, "told_overrides", told)
        await until_told(pair, "t: segment.ms=0")
        assert await pair.settings_here("t") == {}
        await pair.produce("t")
        await pair.until_level("t")


async def test_group_offsets_follow_within_what_is_mirrored_and_never_after_a_stop(
    tmp_path: Path,
) -> None:
    async with mirrored_pair(tmp_path) as pair:
        for topic in ("t", "u"):
            await pair.make_topic(topic)
            await pair.produce(topic, 3)
        await pair.create(groups_exclude="hidden")
        await pair.start("t")
        await pair.until_level("t")
        for group in ("g", "hidden"):
            await commit(pair, group, "t", 4)
            await commit(pair, group, "u", 4)
        await until_committed(pair, "g", {"t": 4})
        await commit(pair, "g", "t", 500)
        await until_committed(pair, "g", {"t": 6})
        assert await committed_here(pair, "hidden") == {}
        deleted = OffsetDeleteRequest(
            group_id="g",
            topics=(
                OffsetDeleteTopic(name="t", partitions=(OffsetDeletePartition(partition_index=0),)),
            ),
        )
        await pair.source.ask(OFFSET_DELETE, deleted)
        await until_committed(pair, "g", {})
        await commit(pair, "g", "t", 2)
        await until_committed(pair, "g", {"t": 2})
        await pair.stop("t")
        await pair.until_state("STOPPED", "t")
        await commit(pair, "g", "t", 5)
        await asyncio.sleep(0.2)  # four rounds of the sync
        assert await committed_here(pair, "g") == {"t": 2}
