"""Group offsets that the source deleted go here too, and never those that a client committed."""

from collections.abc import Collection
from pathlib import Path

import pytest

from support.brokers import LocalBroker, local_broker
from support.committing import commit, committed, until_committed
from support.mirrored_pair import QUICK, Pair, until
from twinlog.broker.mirrors import group_following as module
from twinlog.broker.mirrors.group_following import Changes, GroupFollowing
from twinlog.model.ids import Offset, TopicName, TopicPartition
from twinlog.wire.messages.configs import (
    INCREMENTAL_ALTER_CONFIGS,
    ConfigAlteration,
    IncrementalAlterConfigsRequest,
    ResourceAlteration,
)
from twinlog.wire.messages.group_offsets import (
    OFFSET_COMMIT,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from twinlog.wire.messages.groups import (
    DELETE_GROUPS,
    FIND_COORDINATOR,
    DeleteGroupsRequest,
    FindCoordinatorRequest,
)
from twinlog.wire.messages.topics import DELETE_TOPICS, DeleteTopicsRequest, TopicToDelete

pytestmark = pytest.mark.slow
MIRROR_RESOURCE = 64
SET = 0


async def delete(broker: LocalBroker, *groups: str) -> None:
    answer = await broker.ask(DELETE_GROUPS, DeleteGroupsRequest(groups_names=groups))
    assert not any(result.error_code for result in answer.results), answer


async def begun(pair: Pair, **config: str) -> None:
    """Mirror ``t`` and ``u``, three batches of two records each."""
    for topic in ("t", "u"):
        await pair.make_topic(topic)
        await pair.produce(topic, 3)
    await pair.create(**config)
    await pair.start("t", "u")
    for topic in ("t", "u"):
        await pair.until_level(topic)


async def test_a_group_deleted_while_this_broker_was_down_goes_but_not_what_a_client_committed(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "destination"
    async with local_broker(tmp_path / "source", QUICK) as source:
        async with local_broker(folder, QUICK) as here:
            await begun(Pair(source, here))
            for group in ("gone", "moved", "equal"):
                await commit(source, group, t=2, u=4)
                await until_committed(here, group, t=2, u=4)
            await commit(here, "moved", t=2)  # as an operator moves it: equal, and a client's own
        await delete(source, "gone", "moved")
        async with local_broker(folder, QUICK) as here:
            await until_committed(here, "gone")
            await until_committed(here, "moved", t=2)
            await until_committed(here, "equal", t=2, u=4)


async def test_offsets_of_a_topic_that_the_source_deleted_stay_with_its_copy(
    tmp_path: Path,
) -> None:
    async with (
        local_broker(tmp_path / "source", QUICK) as source,
        local_broker(tmp_path / "destination", QUICK) as here,
    ):
        await begun(Pair(source, here))
        await commit(source, "g", t=2, u=4)
        await until_committed(here, "g", t=2, u=4)
        gone = DeleteTopicsRequest(topics=(TopicToDelete(name="t"),), timeout_ms=60_000)
        await source.ask(DELETE_TOPICS, gone)
        await commit(source, "g", u=5)
        await until_committed(here, "g", t=2, u=5)


async def test_a_group_of_which_nothing_is_left_is_asked_for_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_work: list[GroupFollowing] = []
    sync = GroupFollowing.sync

    async def noted(self: GroupFollowing) -> None:
        at_work[:] = [self]
        await sync(self)

    monkeypatch.setattr(GroupFollowing, "sync", noted)
    async with (
        local_broker(tmp_path / "source", QUICK) as source,
        local_broker(tmp_path / "destination", QUICK) as here,
    ):
        await begun(Pair(source, here))
        for group in ("kept", "gone", "taken"):
            await commit(source, group, t=2)
            await until_committed(here, group, t=2)
        await commit(here, "taken", t=2)
        await delete(source, "gone", "taken")
        await until_committed(here, "gone")

        async def is_forgotten() -> bool:
            return at_work[0]._brought == {"kept"}

        await until(is_forgotten)


async def test_a_group_that_is_excluded_later_is_left_alone_from_then_on(tmp_path: Path) -> None:
    async with (
        local_broker(tmp_path / "source", QUICK) as source,
        local_broker(tmp_path / "destination", QUICK) as here,
    ):
        await begun(Pair(source, here))
        await commit(source, "g", t=2)
        await until_committed(here, "g", t=2)
        exclude = ConfigAlteration(name="groups.exclude", config_operation=SET, value="g")
        resource = ResourceAlteration(
            resource_type=MIRROR_RESOURCE, resource_name="m", configs=(exclude,)
        )
        await here.ask(
            INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsRequest(resources=(resource,))
        )
        await delete(source, "g")
        for offset in (1, 2):
            await commit(source, "witness", t=offset)
            await until_committed(here, "witness", t=offset)
        assert await committed(here, "g") == {"t": 2}


async def test_offsets_planned_before_a_stop_are_not_committed_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    between = GroupFollowing._same_topics
    async with (
        local_broker(tmp_path / "source", QUICK) as source,
        local_broker(tmp_path / "destination", QUICK) as here,
    ):
        pair = Pair(source, here)
        await begun(pair)

        async def stopped_meanwhile(
            self: GroupFollowing, topics: Collection[TopicName]
        ) -> set[TopicName]:
            await pair.stop("t")
            return await between(self, topics)

        monkeypatch.setattr(GroupFollowing, "_same_topics", stopped_meanwhile)
        await commit(source, "g", t=2, u=4)
        await until_committed(here, "g", u=4)


async def test_offsets_planned_before_a_cut_are_not_beyond_what_it_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    between, write = GroupFollowing._same_topics, GroupFollowing._commit
    written: list[int] = []
    async with (
        local_broker(tmp_path / "source", QUICK) as source,
        local_broker(tmp_path / "destination", QUICK) as here,
    ):
        await begun(Pair(source, here))
        partition = here.server._partitions.find(TopicPartition(TopicName("t"), 0))
        assert partition is not None

        async def cut_meanwhile(
            self: GroupFollowing, topics: Collection[TopicName]
        ) -> set[TopicName]:
            partition.truncate_to(Offset(2))
            return await between(self, topics)

        async def noted(self: GroupFollowing, group: str, changes: Changes, mark: str) -> bool:
            written.extend(one.offset for one in changes.values() if one is not None)
            return await write(self, group, changes, mark)

        monkeypatch.setattr(GroupFollowing, "_same_topics", cut_meanwhile)
        monkeypatch.setattr(GroupFollowing, "_commit", noted)
        await commit(source, "g", t=6)
        await until_committed(here, "g", t=2)
    assert written == [2]


async def test_metadata_too_long_for_here_is_left_out(
    tmp_path: Path,
) -> None:
    longer = {**QUICK, "offset.metadata.max.bytes": "10000"}
    async with (
        local_broker(tmp_path / "source", longer) as source,
        local_broker(tmp_path / "destination", QUICK) as here,
    ):
        await begun(Pair(source, here))
        await source.ask(FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=("g",)))
        partition = OffsetCommitPartition(
            partition_index=0, committed_offset=2, committed_metadata="x" * 5_000
        )
        topics = (OffsetCommitTopic(name="t", partitions=(partition,)),)
        request = OffsetCommitRequest(group_id="g", topics=topics)
        answer = await source.ask(OFFSET_COMMIT, request, 8)
        assert not answer.topics[0].partitions[0].error_code
        await until_committed(here, "g", t=2)


def test_a_group_id_that_no_client_may_use_here_is_told_and_left_out() -> None:
    assert module._fits("g" * 16_000)
    assert not module._fits("g" * 16_001)
    assert len(module._too_long("g" * 16_001)) < 300
