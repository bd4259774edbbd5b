"""A source's topic that is deleted and made again is another topic: nothing of it comes here."""

from pathlib import Path

import pytest

from support.mirrored_pair import Pair, mirrored_pair, until
from twinlog.wire.messages.configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    ResourceToDescribe,
)
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
from twinlog.wire.messages.topics import DELETE_TOPICS, DeleteTopicsRequest, TopicToDelete

pytestmark = pytest.mark.slow
TOPIC_RESOURCE = 2
OFTEN = {"mirror.metadata.refresh.interval.ms": "50"}
NEVER = {"mirror.metadata.refresh.interval.ms": "0"}


async def made_again(pair: Pair, retention_ms: str = "3333") -> None:
    gone = DeleteTopicsRequest(topics=(TopicToDelete(name="t"),), timeout_ms=5_000)
    await pair.source.ask(DELETE_TOPICS, gone)
    await pair.make_topic("t", retention_ms=retention_ms)
    await pair.produce("t", 2)


async def commit(pair: Pair, **offsets: int) -> None:
    await pair.source.ask(FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=("g",)))
    topics = tuple(
        OffsetCommitTopic(
            name=topic,
            partitions=(OffsetCommitPartition(partition_index=0, committed_offset=offset),),
        )
        for topic, offset in offsets.items()
    )
    answer = await pair.source.ask(
        OFFSET_COMMIT, OffsetCommitRequest(group_id="g", topics=topics), 8
    )
    assert not any(topic.partitions[0].error_code for topic in answer.topics), answer


async def until_committed_here(pair: Pair, **offsets: int) -> None:
    async def is_so() -> bool:
        await pair.destination.ask(
            FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=("g",))
        )
        request = OffsetFetchRequest(groups=(OffsetFetchGroup(group_id="g"),))
        answer = await pair.destination.ask(OFFSET_FETCH, request, 8)
        here = {t.name: t.partitions[0].committed_offset for t in answer.groups[0].topics}
        return here == offsets

    await until(is_so)


async def settings_here(pair: Pair, topic: str) -> dict[str, str | None]:
    """Give what was set for a topic; nothing while it is not there."""
    wanted = ResourceToDescribe(resource_type=TOPIC_RESOURCE, resource_name=topic)
    answer = await pair.destination.ask(
        DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=(wanted,))
    )
    return {c.name: c.value for c in answer.results[0].configs if c.config_source == 1}


async def test_its_settings_are_not_those_of_the_copy(tmp_path: Path) -> None:
    async with mirrored_pair(tmp_path, OFTEN) as pair:
        await pair.make_topic("t", retention_ms="1111")
        await pair.create()
        await pair.start("t", "later.*")
        await made_again(pair, retention_ms="2222")
        await pair.until_state("FAILED", "t")
        for topic in ("later1", "later2"):  # the second: by a look after the one that had the first
            await pair.make_topic(topic)
            await pair.until_level(topic)
        assert await settings_here(pair, "t") == {"retention.ms": "1111"}


@pytest.mark.parametrize("looks", [OFTEN, NEVER], ids=["failed", "not yet seen"])
async def test_its_groups_offsets_are_not_those_of_the_copy(
    tmp_path: Path, looks: dict[str, str]
) -> None:
    async with mirrored_pair(tmp_path, looks) as pair:
        for topic in ("t", "u"):
            await pair.make_topic(topic)
            await pair.produce(topic, 3)
        await pair.create()
        await pair.start("t", "u")
        for topic in ("t", "u"):
            await pair.until_level(topic)
        await commit(pair, t=6, u=4)
        await until_committed_here(pair, t=6, u=4)
        await made_again(pair)
        if looks is OFTEN:
            await pair.until_state("FAILED", "t")
        await commit(pair, t=2, u=5)
        await until_committed_here(pair, t=6, u=5)
