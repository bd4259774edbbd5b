"""Commits a group's offsets without being a member of it, and reads them."""

from support.brokers import LocalBroker
from support.mirrored_pair import until
from twinlog.wire.messages.group_offsets import (
    OFFSET_COMMIT,
    OFFSET_FETCH,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
    OffsetFetchGroup,
    OffsetFetchRequest,
)
from twinlog.wire.messages.groups import FIND_COORDINATOR, FindCoordinatorRequest


async def commit(broker: LocalBroker, group: str, **offsets: int) -> None:
    """Commit offsets of partition 0; keywords are topics."""
    await broker.ask(FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=(group,)))
    topics = tuple(
        OffsetCommitTopic(
            name=topic,
            partitions=(OffsetCommitPartition(partition_index=0, committed_offset=offset),),
        )
        for topic, offset in offsets.items()
    )
    answer = await broker.ask(OFFSET_COMMIT, OffsetCommitRequest(group_id=group, topics=topics), 8)
    assert not any(topic.partitions[0].error_code for topic in answer.topics)


async def committed(broker: LocalBroker, group: str) -> dict[str, int]:
    """Give what a group has committed of partition 0 of each topic."""
    await broker.ask(FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=(group,)))
    request = OffsetFetchRequest(groups=(OffsetFetchGroup(group_id=group),))
    answer = await broker.ask(OFFSET_FETCH, request, 8)
    return {topic.name: topic.partitions[0].committed_offset for topic in answer.groups[0].topics}


async def until_committed(broker: LocalBroker, group: str, **offsets: int) -> None:
    """Wait until a group has committed just that."""

    async def is_so() -> bool:
        return await committed(broker, group) == offsets

    await until(is_so)
