"""What is read of a source on its own clock, in old versions and new ones."""

from pathlib import Path

import pytest

from support.mirror_bench import mirror_bench
from support.scripted_source import NODE, scripted_source
from twinlog.broker.mirrors.source_reads import (
    consumer_groups,
    group_offsets,
    seen_topics,
    tell_hidden_from_gone,
    told_overrides,
)
from twinlog.mirroring.group_sync import SourceOffset
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import BrokerId, LeaderEpoch, Offset, TopicName, TopicPartition
from twinlog.wire.messages.configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedConfig,
    DescribedResource,
)
from twinlog.wire.messages.group_offsets import (
    OFFSET_FETCH,
    OffsetFetchedGroup,
    OffsetFetchedPartition,
    OffsetFetchedPartitions,
    OffsetFetchedTopic,
    OffsetFetchedTopics,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from twinlog.wire.messages.groups import LIST_GROUPS, ListedGroup, ListGroupsResponse


async def test_topics_that_could_be_described_are_seen(tmp_path: Path) -> None:
    async with scripted_source() as source, mirror_bench(tmp_path, source.address) as bench:
        told = await bench.source.peers.refresh([TopicName("t"), TopicName("none")])
        assert [(s.name, s.partition_count) for s in seen_topics(told).values()] == [("t", 2)]


async def test_only_settings_of_the_topic_itself_are_overrides(tmp_path: Path) -> None:
    async with scripted_source() as source, mirror_bench(tmp_path, source.address) as bench:

        def described(request: DescribeConfigsRequest, _: int) -> DescribeConfigsResponse:
            own = DescribedConfig(name="retention.ms", value="5", config_source=1)
            default = DescribedConfig(name="segment.bytes", value="9", config_source=5)
            hidden = DescribedConfig(name="secret", value=None, config_source=1)
            results = [
                DescribedResource(
                    error_code=0 if one.resource_name == "t" else 3,
                    resource_type=2,
                    resource_name=one.resource_name,
                    configs=(own, default, hidden),
                )
                for one in request.resources
            ]
            return DescribeConfigsResponse(results=tuple(results))

        source.on(DESCRIBE_CONFIGS, described)
        found, refused = await told_overrides(bench.source, [TopicName("t"), TopicName("gone")])
        assert (found, refused) == ({"t": {"retention.ms": "5"}}, {})


async def test_topics_whose_settings_are_not_told_do_not_hold_up_the_others(
    tmp_path: Path,
) -> None:
    async with scripted_source() as source, mirror_bench(tmp_path, source.address) as bench:
        config = DescribedConfig(name="retention.ms", value="5", config_source=1)
        answer = DescribeConfigsResponse(
            results=(
                DescribedResource(error_code=29, resource_type=2, resource_name="a", configs=()),
                DescribedResource(resource_type=2, resource_name="b", configs=(config,)),
            )
        )
        source.on(DESCRIBE_CONFIGS, lambda *_: answer)
        names = [TopicName("a"), TopicName("b")]
        found, refused = await told_overrides(bench.source, names)
        assert found == {"b": {"retention.ms": "5"}}
        assert refused[names[0]].code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert refused[names[0]].why.endswith(
            "TOPIC_AUTHORIZATION_FAILED: User:ANONYMOUS needs DescribeConfigs on topic a there: "
            "kafka-acls.sh --add --allow-principal User:ANONYMOUS --operation DescribeConfigs "
            "--topic a"
        )


async def test_a_topic_that_may_not_be_described_is_not_taken_for_deleted(tmp_path: Path) -> None:
    async with scripted_source() as source, mirror_bench(tmp_path, source.address) as bench:
        source.topics |= dict.fromkeys(("hidden", "back", "another"), source.topics["t"])
        source.hidden.add("hidden")
        suspects = {
            TopicName(name): "was deleted" for name in ("hidden", "back", "another", "gone")
        }
        seen = [TopicName("another")]
        gone, hidden = await tell_hidden_from_gone(bench.source, suspects, seen)
        assert set(gone) == {"another", "gone"}
        assert set(hidden) == {"hidden"}
        assert "User:ANONYMOUS needs Describe on topic hidden" in hidden[TopicName("hidden")]
        assert await tell_hidden_from_gone(bench.source, {}, seen) == ({}, {})


async def test_groups_of_other_protocols_are_not_consumer_groups(tmp_path: Path) -> None:
    async with scripted_source() as source, mirror_bench(tmp_path, source.address) as bench:
        groups = tuple(
            ListedGroup(group_id=name, protocol_type=kind)
            for name, kind in (("a", "consumer"), ("b", ""), ("c", "connect"))
        )
        source.on(LIST_GROUPS, lambda *_: ListGroupsResponse(groups=groups))
        await bench.source.peers.refresh(())
        assert await consumer_groups(bench.source) == {"a", "b"}


def answer(request: OffsetFetchRequest, version: int) -> OffsetFetchResponse:
    if version < 8:
        assert request.topics is None
        old = (
            OffsetFetchedPartition(
                partition_index=0, committed_offset=5, committed_leader_epoch=2, metadata="m"
            ),
            OffsetFetchedPartition(partition_index=1, committed_offset=-1, error_code=3),
        )
        return OffsetFetchResponse(topics=(OffsetFetchedTopic(name="t", partitions=old),))
    new = (
        OffsetFetchedPartitions(
            partition_index=0, committed_offset=5, committed_leader_epoch=2, metadata="m"
        ),
        OffsetFetchedPartitions(partition_index=1, committed_offset=-1, error_code=3),
    )
    topics = (OffsetFetchedTopics(name="t", partitions=new),)
    group = request.groups[0].group_id
    return OffsetFetchResponse(groups=(OffsetFetchedGroup(group_id=group, topics=topics),))


@pytest.mark.parametrize("version", [5, 8, 10])
async def test_all_offsets_of_a_group_are_read(tmp_path: Path, version: int) -> None:
    ranges = {OFFSET_FETCH.key: (min(version, 8), version)}
    async with (
        scripted_source(ranges=ranges) as source,
        mirror_bench(tmp_path, source.address) as bench,
    ):
        source.on(OFFSET_FETCH, answer)
        await bench.source.peers.refresh(())
        found = await group_offsets(bench.source, "g", BrokerId(NODE))
        of = TopicPartition(TopicName("t"), 0)
        assert found == {of: SourceOffset(Offset(5), LeaderEpoch(2), "m")}


async def test_a_group_that_is_gone_has_no_offsets_and_a_refusal_is_an_error(
    tmp_path: Path,
) -> None:
    async with scripted_source() as source, mirror_bench(tmp_path, source.address) as bench:
        codes = [69, 30]

        def failed(_: OffsetFetchRequest, __: int) -> OffsetFetchResponse:
            group = OffsetFetchedGroup(group_id="g", topics=(), error_code=codes.pop(0))
            return OffsetFetchResponse(groups=(group,))

        source.on(OFFSET_FETCH, failed)
        await bench.source.peers.refresh(())
        assert await group_offsets(bench.source, "g", BrokerId(NODE)) == {}
        with pytest.raises(ApiError, match="offsets of group g"):
            await group_offsets(bench.source, "g", BrokerId(NODE))
