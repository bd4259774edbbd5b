"""The source cluster of a mirror, and what is wrong with a config."""

import pytest

from support.scripted_source import NODE, scripted_source
from twinlog.broker.mirrors.source import (
    SourceCluster,
    checked_settings,
    group_matcher,
    identify,
    topic_excluder,
    topic_matcher,
)
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import NO_TOPIC_ID, BrokerId, TopicName
from twinlog.network.exchange import PeerUnavailable
from twinlog.wire.messages.metadata import METADATA

ME = BrokerId(1)


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({}, "bootstrap.servers"),
        ({"bootstrap.servers": "a:1", "no.such.key": "1"}, "no.such.key"),
        ({"bootstrap.servers": "a:1", "groups.exclude": "("}, "groups.exclude"),
        ({"bootstrap.servers": "a"}, "bootstrap.servers"),
    ],
)
def test_a_wrong_config_is_refused_with_its_key(config: dict[str, str], why: str) -> None:
    with pytest.raises(ApiError, match=why) as caught:
        checked_settings(config)
    assert caught.value.code == ErrorCode.INVALID_CONFIG


def test_patterns_match_whole_names_and_exclusion_wins() -> None:
    settings = checked_settings(
        {
            "bootstrap.servers": "a:1",
            "topics.include": "a.*,b",
            "topics.exclude": "a!",
            "groups.exclude": "g.",
        }
    )
    is_wanted = topic_matcher(settings)
    assert [name for name in ("a", "ab", "a!", "b", "bb") if is_wanted(name)] == ["a", "ab", "b"]
    assert topic_excluder(settings)("a!")
    assert [group for group in ("g", "g1") if group_matcher(settings)(group)] == ["g"]


def test_internal_topics_are_never_mirrored_whatever_the_filters_say() -> None:
    given = {"bootstrap.servers": "a:1", "topics.include": ".*", "topics.exclude": ""}
    settings = checked_settings(given)
    names = ("__own", "__consumer_offsets", "__mirror_state", "__transaction_state")
    assert [name for name in names if topic_matcher(settings)(name)] == ["__own"]
    assert [name for name in names if not topic_excluder(settings)(name)] == ["__own"]


async def test_a_source_is_identified_and_must_be_the_one_that_is_named() -> None:
    async with scripted_source() as source:
        servers = {"bootstrap.servers": str(source.address)}
        settings = checked_settings(servers)
        assert await identify("m", settings, ME, 0.5) == "source-cluster"
        other = checked_settings({**servers, "source.cluster.id": "other"})
        with pytest.raises(ApiError, match=r"is source-cluster"):
            await identify("m", other, ME, 0.5)
        source.cluster_id = ""
        with pytest.raises(ApiError, match="does not tell its cluster id"):
            await identify("m", settings, ME, 0.5)


async def test_a_source_that_cannot_be_reached_is_named_with_the_reason() -> None:
    async with scripted_source() as source:
        settings = checked_settings({"bootstrap.servers": str(source.address)})
    with pytest.raises(ApiError, match=f"{source.address} cannot be reached.*refused"):
        await identify("m", settings, ME, 0.5)


async def test_a_server_that_is_no_broker_of_kafka_s_is_named_as_the_source() -> None:
    # So answers a controller: it is no broker, and knows no Metadata.
    async with scripted_source(ranges={METADATA.key: (90, 91)}) as source:
        settings = checked_settings({"bootstrap.servers": str(source.address)})
        said = f"the source at .*{source.address} cannot be mirrored.*METADATA"
        with pytest.raises(ApiError, match=said) as caught:
            await identify("m", settings, ME, 0.5)
        assert caught.value.code == ErrorCode.INVALID_CONFIG


async def test_fetchers_have_connections_of_their_own_named_after_the_mirror() -> None:
    async with scripted_source() as source:
        settings = checked_settings({"bootstrap.servers": str(source.address)})
        cluster = SourceCluster("m", settings, ME, 0.5)
        with pytest.raises(PeerUnavailable, match="not in its metadata"):
            await cluster.open_fetcher(BrokerId(NODE), 0)
        await cluster.peers.refresh([TopicName("t")])
        first = await cluster.open_fetcher(BrokerId(NODE), 3)
        assert first.client_id == "mirror-fetcher-3-m"
        assert cluster.topic_id(TopicName("t")).int == 42
        assert cluster.topic_id(TopicName("u")) == NO_TOPIC_ID
        await first.close()
        await cluster.close()
