"""Names and patterns are looked for at the source; what cannot be begun says why."""

from pathlib import Path

from support.mirror_bench import mirror_bench
from support.scripted_source import scripted_source
from twinlog.broker.mirrors.choosing import choose_topics
from twinlog.broker.mirrors.source import checked_settings, topic_excluder
from twinlog.broker.mirrors.source_reads import seen_topics
from twinlog.model.errors import ErrorCode
from twinlog.model.ids import TopicName
from twinlog.wire.messages.configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedResource,
)

in_all = topic_excluder(checked_settings({"bootstrap.servers": "s:1", "topics.exclude": ""}))


def described(request: DescribeConfigsRequest, version: int) -> DescribeConfigsResponse:
    """Tell of all topics but ``secret``."""
    return DescribeConfigsResponse(
        results=tuple(
            DescribedResource(
                error_code=29 if one.resource_name == "secret" else 0,
                resource_type=2,
                resource_name=one.resource_name,
                configs=(),
            )
            for one in request.resources
        )
    )


async def test_topics_are_chosen_by_name_and_by_pattern_and_the_others_told_why(
    tmp_path: Path,
) -> None:
    async with scripted_source() as source, mirror_bench(tmp_path, source.address) as bench:
        more = ("a1", "a2", "hidden", "left-out", "secret", "unwanted")
        source.topics |= dict.fromkeys(more, source.topics["t"])
        source.hidden.add("hidden")
        source.on(DESCRIBE_CONFIGS, described)
        seen = seen_topics(await bench.source.peers.refresh(None))
        names = ["t", "hidden", "gone", "left-out"]
        choice = await choose_topics(
            bench.source, seen, names, ["a.*", "secret"], lambda name: name in ("a2", "left-out")
        )
        assert [topic.name for topic in choice.topics] == ["t", "a1"]
        assert set(choice.overrides) == {"t", "a1"}
        told = {str(name): (error.code, error.why) for name, error in choice.refused.items()}
        assert set(told) == {"hidden", "gone", "left-out", "secret"}
        denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert told["hidden"][0] == told["secret"][0] == denied
        assert "needs Describe on topic hidden" in told["hidden"][1]
        assert "needs DescribeConfigs on topic secret" in told["secret"][1]
        assert told["gone"] == (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "there is no topic gone at the source",
        )
        assert "matches topics.exclude" in told["left-out"][1]
        source.topics["__consumer_offsets"] = source.topics["t"]
        seen = seen_topics(await bench.source.peers.refresh(None))
        kept = await choose_topics(bench.source, seen, [], ["__.*", "__consumer_offsets"], in_all)
        assert kept.topics == ()
        assert (
            "is internal: each cluster keeps" in kept.refused[TopicName("__consumer_offsets")].why
        )
        spelt = await choose_topics(bench.source, seen, [], ["t", "a.*"], lambda name: name != "a1")
        assert [topic.name for topic in spelt.topics] == ["a1"]
        assert {str(name) for name in spelt.refused} == {"t"}
