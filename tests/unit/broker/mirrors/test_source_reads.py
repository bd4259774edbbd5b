"""What is read of a source on its own clock, in old versions and new ones."""

from dataclasses import replace
from pathlib import Path

from support.mirror_bench import mirror_bench
from support.scripted_source import scripted_source
from twinlog.broker.mirrors.source_reads import (
    seen_topics,
    tell_hidden_from_gone,
    told_overrides,
)
from twinlog.model.errors import ErrorCode
from twinlog.model.ids import TopicName
from twinlog.wire.messages.configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedConfig,
    DescribedResource,
)
from twinlog.wire.messages.metadata import METADATA, MetadataTopic


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


async def test_a_topic_that_the_source_cannot_describe_for_now_is_not_taken_for_deleted(
    tmp_path: Path,
) -> None:
    async with scripted_source() as source, mirror_bench(tmp_path, source.address) as bench:
        troubled = MetadataTopic(error_code=ErrorCode.LEADER_NOT_AVAILABLE, name="t", partitions=())
        source.on(METADATA, lambda *of: replace(source._metadata(*of), topics=(troubled,)))
        suspects = {TopicName("t"): "was deleted"}
        assert await tell_hidden_from_gone(bench.source, suspects, ()) == ({}, {})


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
