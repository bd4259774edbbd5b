from pathlib import Path
from uuid import UUID

import pytest

from support.brokers import local_broker
from twinlog.model.errors import ErrorCode
from twinlog.wire.messages.metadata import (
    DESCRIBE_CLUSTER,
    DESCRIBE_TOPIC_PARTITIONS,
    METADATA,
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
    TopicToDescribe,
)


def named(*names: str, may_create: bool = True) -> MetadataRequest:
    topics = tuple(MetadataRequestTopic(name=name) for name in names)
    return MetadataRequest(topics=topics, allow_auto_topic_creation=may_create)


async def test_a_missing_topic_is_made_and_told_in_the_same_answer(tmp_path: Path) -> None:
    async with local_broker(tmp_path, {"num.partitions": "3"}) as broker:
        answer = await broker.ask(METADATA, named("t", "t"))
        topic = answer.topics[0]
        assert (topic.error_code, len(topic.partitions)) == (ErrorCode.NONE, 3)
        assert {p.leader_id for p in topic.partitions} == {1}


async def test_a_topic_is_not_made_when_client_or_broker_forbid_it(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        answer = await broker.ask(METADATA, named("t", may_create=False))
        assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    async with local_broker(tmp_path, {"auto.create.topics.enable": "false"}) as broker:
        answer = await broker.ask(METADATA, named("t"))
        assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_name_no_topic_can_have_is_refused(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        await broker.make_topic("a.b")
        answer = await broker.ask(METADATA, named("no spaces", "a_b"))
        codes = [topic.error_code for topic in answer.topics]
        assert codes == [ErrorCode.INVALID_TOPIC_EXCEPTION] * 2


async def test_null_asks_for_all_topics_and_the_empty_list_for_none(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        await broker.make_topic("t")
        everything = await broker.ask(METADATA, MetadataRequest(topics=None))
        nothing = await broker.ask(METADATA, MetadataRequest(topics=()))
        oldest = await broker.ask(METADATA, MetadataRequest(topics=()), 0)
        assert [t.name for t in everything.topics] == ["t"]
        assert nothing.topics == ()
        assert [t.name for t in oldest.topics] == ["t"]


async def test_a_topic_is_found_by_id_alone(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        made = await broker.make_topic("t")
        ids = (made.topic_id, UUID(int=5))
        topics = tuple(MetadataRequestTopic(topic_id=id_, name=None) for id_ in ids)
        answer = await broker.ask(METADATA, MetadataRequest(topics=topics))
        assert answer.topics[0].name == "t"
        assert answer.topics[1].error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("version", range(METADATA.max_version + 1))
async def test_every_version_is_answered(tmp_path: Path, version: int) -> None:
    async with local_broker(tmp_path) as broker:
        await broker.make_topic("t")
        answer = await broker.ask(METADATA, named("t"), version)
        assert answer.topics[0].name == "t"
        assert answer.brokers[0].port == broker.address.port


async def test_cluster_id_and_topics_stay_the_same_over_a_restart(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        before = await broker.ask(METADATA, named("t"))
    async with local_broker(tmp_path) as broker:
        after = await broker.ask(METADATA, named("t"))
    assert before.cluster_id == after.cluster_id
    assert before.topics[0].topic_id == after.topics[0].topic_id
    old, new = before.topics[0].partitions[0], after.topics[0].partitions[0]
    assert new.leader_epoch > old.leader_epoch


async def test_the_cluster_is_described_and_controllers_are_not(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        answer = await broker.ask(DESCRIBE_CLUSTER, DescribeClusterRequest())
        assert [b.broker_id for b in answer.brokers] == [1]
        answer = await broker.ask(DESCRIBE_CLUSTER, DescribeClusterRequest(endpoint_type=2))
        assert answer.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE


async def test_topics_are_described_page_by_page(tmp_path: Path) -> None:
    async with local_broker(tmp_path, {"num.partitions": "3"}) as broker:
        for name in ("a", "b"):
            await broker.make_topic(name)
        names = tuple(TopicToDescribe(name=name) for name in ("a", "b", "c"))
        seen: list[tuple[str | None, int, int]] = []
        cursor = None
        for _ in range(10):
            request = DescribeTopicPartitionsRequest(
                topics=names, response_partition_limit=2, cursor=cursor
            )
            answer = await broker.ask(DESCRIBE_TOPIC_PARTITIONS, request)
            for topic in answer.topics:
                seen += [
                    (topic.name, topic.error_code, p.partition_index) for p in topic.partitions
                ]
                if not topic.partitions:
                    seen.append((topic.name, topic.error_code, -1))
            cursor = answer.next_cursor
            if cursor is None:
                break
        expected = [(name, 0, index) for name in "ab" for index in range(3)]
        assert seen == [*expected, ("c", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)]
