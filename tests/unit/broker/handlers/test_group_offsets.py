import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from support.brokers import LocalBroker, local_broker
from twinlog.model.errors import ErrorCode
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
    OffsetFetchTopic,
    OffsetFetchTopics,
)
from twinlog.wire.messages.groups import FIND_COORDINATOR, FindCoordinatorRequest
from twinlog.wire.messages.topics import DELETE_TOPICS, DeleteTopicsRequest, TopicToDelete

TWO_PARTITIONS = {"offsets.topic.num.partitions": "2"}
NO_ID = UUID(int=0)


class Groups:
    """Commits and fetches offsets of topic "t"."""

    def __init__(self, broker: LocalBroker, topic_id: UUID) -> None:
        self.broker = broker
        self.topic_id = topic_id
        self.group_id = "g"

    async def wait_until_loaded(self) -> None:
        """Ask until the coordinator has loaded the group."""
        request = OffsetFetchRequest(groups=(OffsetFetchGroup(group_id="g", topics=None),))
        async with asyncio.timeout(60):
            while True:
                (group,) = (await self.broker.ask(OFFSET_FETCH, request, 9)).groups
                if group.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                    return

    async def commit(self, version: int, offset: int, partition: int = 0, **more: Any) -> int:
        topic = OffsetCommitTopic(
            name=more.pop("name", "t"),
            topic_id=more.pop("topic_id", self.topic_id),
            partitions=(
                OffsetCommitPartition(
                    partition_index=partition,
                    committed_offset=offset,
                    committed_leader_epoch=7,
                    committed_metadata=more.pop("metadata", "note"),
                ),
            ),
        )
        request = OffsetCommitRequest(group_id=self.group_id, topics=(topic,), **more)
        answer = await self.broker.ask(OFFSET_COMMIT, request, version)
        return answer.topics[0].partitions[0].error_code

    async def fetch(self, version: int, *, names_topics: bool = True) -> list[Any]:
        """Give (partition, offset, epoch, metadata, error) of partitions 0 and 1, or of all."""
        old = OffsetFetchTopic(name="t", partition_indexes=(0, 1))
        new = OffsetFetchTopics(name="t", topic_id=self.topic_id, partition_indexes=(0, 1))
        request = OffsetFetchRequest(
            group_id="g",
            topics=(old,) if names_topics else None,
            groups=(OffsetFetchGroup(group_id="g", topics=(new,) if names_topics else None),),
        )
        answer = await self.broker.ask(OFFSET_FETCH, request, version)
        topics: Any = answer.topics if version < 8 else answer.groups[0].topics
        return [
            (p.partition_index, p.committed_offset, p.committed_leader_epoch, p.metadata)
            for topic in topics
            for p in topic.partitions
        ]


@pytest.fixture
async def groups(tmp_path: Path) -> AsyncIterator[Groups]:
    async with local_broker(tmp_path, {**TWO_PARTITIONS, "num.partitions": "2"}) as broker:
        topic = await broker.make_topic("t")
        request = FindCoordinatorRequest(coordinator_keys=("g",))
        await broker.ask(FIND_COORDINATOR, request)
        found = Groups(broker, topic.topic_id)
        await found.wait_until_loaded()
        await found.commit(9, 0, partition=1)
        yield found


@pytest.mark.parametrize("version", range(2, 11))
async def test_an_offset_is_committed_in_every_version(groups: Groups, version: int) -> None:
    assert await groups.commit(version, 42) == ErrorCode.NONE
    epoch = 7 if version >= 6 else -1
    assert (await groups.fetch(9))[0] == (0, 42, epoch, "note")


@pytest.mark.parametrize("version", range(1, 11))
async def test_offsets_are_fetched_in_every_version(groups: Groups, version: int) -> None:
    await groups.commit(9, 42)
    epoch = 7 if version >= 5 else -1
    assert await groups.fetch(version) == [(0, 42, epoch, "note"), (1, 0, epoch, "note")]


@pytest.mark.parametrize("version", range(2, 11))
async def test_all_offsets_of_a_group_can_be_asked_for(groups: Groups, version: int) -> None:
    epoch = 7 if version >= 5 else -1
    assert await groups.fetch(version, names_topics=False) == [(1, 0, epoch, "note")]


async def test_where_nothing_is_committed_the_offset_is_minus_one(groups: Groups) -> None:
    assert (await groups.fetch(9))[0] == (0, -1, -1, "")


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"name": "none"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"partition": 9}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"metadata": "x" * 5_000}, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ({"generation_id_or_member_epoch": 3}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"metadata": None}, ErrorCode.NONE),
    ],
)
async def test_a_commit_that_cannot_be_is_refused(
    groups: Groups, more: dict[str, Any], error: ErrorCode
) -> None:
    assert await groups.commit(9, 1, **more) == error


async def test_a_group_id_too_long_to_be_written_is_refused(groups: Groups) -> None:
    groups.group_id = "g" * 20_000
    assert await groups.commit(9, 1) == ErrorCode.INVALID_GROUP_ID


async def test_a_topic_by_an_unknown_id_is_refused(groups: Groups) -> None:
    assert await groups.commit(10, 1, topic_id=UUID(int=99)) == ErrorCode.UNKNOWN_TOPIC_ID
    assert await groups.commit(10, 1, partition=9) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    topic = OffsetFetchTopics(topic_id=UUID(int=99), partition_indexes=(0,))
    request = OffsetFetchRequest(groups=(OffsetFetchGroup(group_id="g", topics=(topic,)),))
    answer = await groups.broker.ask(OFFSET_FETCH, request, 10)
    (found,) = answer.groups[0].topics[0].partitions
    assert (found.error_code, found.committed_offset) == (ErrorCode.UNKNOWN_TOPIC_ID, -1)


async def test_several_groups_are_fetched_at_once(groups: Groups) -> None:
    asked = tuple(OffsetFetchGroup(group_id=name, topics=None) for name in ("g", "h"))
    answer = await groups.broker.ask(OFFSET_FETCH, OffsetFetchRequest(groups=asked), 9)
    assert [(g.group_id, len(g.topics)) for g in answer.groups] == [("g", 1), ("h", 0)]


async def test_without_a_coordinator_nothing_is_said_of_offsets(tmp_path: Path) -> None:
    async with local_broker(tmp_path, TWO_PARTITIONS) as broker:
        topic = OffsetFetchTopic(name="t", partition_indexes=(0,))
        request = OffsetFetchRequest(group_id="g", topics=(topic,))
        oldest = await broker.ask(OFFSET_FETCH, request, 1)
        (found,) = oldest.topics[0].partitions
        assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        old = await broker.ask(OFFSET_FETCH, request, 7)
        assert old.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        many = OffsetFetchRequest(groups=(OffsetFetchGroup(group_id="g", topics=None),))
        (group,) = (await broker.ask(OFFSET_FETCH, many, 8)).groups
        assert group.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_offsets_outlive_the_broker(tmp_path: Path) -> None:
    async with local_broker(tmp_path, TWO_PARTITIONS) as broker:
        topic = await broker.make_topic("t")
        await broker.ask(FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=("g",)))
        first = Groups(broker, topic.topic_id)
        await first.wait_until_loaded()
        await first.commit(9, 42)
    async with local_broker(tmp_path, TWO_PARTITIONS) as broker:
        again = Groups(broker, topic.topic_id)
        await again.wait_until_loaded()
        assert await again.fetch(9, names_topics=False) == [(0, 42, 7, "note")]


async def test_offsets_are_deleted(groups: Groups) -> None:
    def delete(name: str) -> OffsetDeleteRequest:
        partitions = (OffsetDeletePartition(partition_index=1),)
        topic = OffsetDeleteTopic(name=name, partitions=partitions)
        return OffsetDeleteRequest(group_id="g", topics=(topic,))

    answer = await groups.broker.ask(OFFSET_DELETE, delete("t"))
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
    assert await groups.fetch(9, names_topics=False) == []
    answer = await groups.broker.ask(OFFSET_DELETE, delete("none"))
    code = answer.topics[0].partitions[0].error_code
    assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("group_id", "error"),
    [("none", ErrorCode.GROUP_ID_NOT_FOUND), ("", ErrorCode.INVALID_GROUP_ID)],
)
async def test_offsets_of_no_group_cannot_be_deleted(
    groups: Groups, group_id: str, error: ErrorCode
) -> None:
    answer = await groups.broker.ask(
        OFFSET_DELETE, OffsetDeleteRequest(group_id=group_id, topics=())
    )
    assert answer.error_code == error


async def test_a_deleted_topic_takes_its_offsets_with_it(groups: Groups) -> None:
    topic = TopicToDelete(name="t")
    request = DeleteTopicsRequest(topics=(topic,), topic_names=("t",), timeout_ms=60_000)
    await groups.broker.ask(DELETE_TOPICS, request)
    assert await groups.fetch(9, names_topics=False) == []
