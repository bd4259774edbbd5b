"""What the verbs of mirrors ask first: which mirrors, topics and partitions there are."""

import argparse
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Final

from twinlog.cli.cluster import Cluster, cluster_at, connection_properties
from twinlog.cli.failures import CliError, expect_ok, sentence
from twinlog.cli.mirror_tables import PartitionRow
from twinlog.config.declare import Setting
from twinlog.config.mirror import TOPICS_EXCLUDE, TOPICS_INCLUDE, matcher
from twinlog.model.errors import ErrorCode, SettingsError
from twinlog.network.addresses import parse_addresses
from twinlog.wire.messages import mirrors
from twinlog.wire.messages.configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribedConfig,
    ResourceToDescribe,
)

EVERY_STATE: Final = ("MIRRORING", "PAUSED", "STOPPED")
EVERY_TOPIC: Final = ".*"
MIRROR_RESOURCE: Final = 64
TOPIC_RESOURCE: Final = 2


def words(text: str | None) -> tuple[str, ...]:
    """Read names with commas between them."""
    return tuple(word.strip() for word in (text or "").split(",") if word.strip())


async def listed(
    cluster: Cluster, request: mirrors.ListClusterMirrorsRequest
) -> tuple[mirrors.ListedMirror, ...]:
    """List mirrors."""
    answer = await cluster.ask(mirrors.LIST_CLUSTER_MIRRORS, request)
    expect_ok(answer.error_code, answer.error_message, doing="mirrors cannot be listed")
    return answer.mirrors


async def mirror_called(
    cluster: Cluster, name: str, states: Sequence[str] = EVERY_STATE
) -> mirrors.ListedMirror:
    """Give a mirror with its topics that are to be in one of ``states``.

    CliError when there is no such mirror.
    """
    found = await listed(
        cluster,
        mirrors.ListClusterMirrorsRequest(
            include_topic_names=True,
            mirror_name_filter=(name,),
            desired_state_filter=tuple(states),
        ),
    )
    mirror = next((m for m in found if m.mirror_name == name), None)
    if mirror is None:
        raise CliError(sentence(ErrorCode.UNKNOWN_CLUSTER_MIRROR, f"there is no mirror {name}"))
    return mirror


def matching(mirror: mirrors.ListedMirror, topics: str | None) -> list[str]:
    """Give the mirror's topics that ``--topics`` means: all of them if it is not there."""
    is_meant = matcher(words(topics) or (EVERY_TOPIC,), ())
    return sorted(name for name in mirror.topic_names or () if is_meant(name))


def without_match(mirror: mirrors.ListedMirror, topics: str | None) -> list[str]:
    """Give what is named in ``--topics`` and means no topic of the mirror."""
    return [word for word in words(topics) if not matching(mirror, word)]


def some_matching(mirror: mirrors.ListedMirror, topics: str | None) -> list[str]:
    """Give the mirror's topics that are meant.

    CliError if there is none, or if something that is named means none: whoever misspells one of
    two topics shall not read that all is well.
    """
    found, missing = matching(mirror, topics), without_match(mirror, topics)
    if missing or not found:
        what = f"no topic of mirror {mirror.mirror_name}"
        told = f"{what} matches {', '.join(missing)}" if missing else f"{what} is there"
        raise CliError(
            f"{told}: see them with "
            f"kafka-cluster-mirrors.sh --describe --mirror {mirror.mirror_name}"
        )
    return found


async def described(
    cluster: Cluster, mirror: str, topics: Collection[str] | None = None
) -> list[PartitionRow]:
    """Give the partitions of one mirror in order, or those of some of its topics."""
    wanted = None
    if topics is not None:
        wanted = tuple(mirrors.MirrorTopicToDescribe(topic_name=name) for name in topics)
    answer = await cluster.ask(
        mirrors.DESCRIBE_CLUSTER_MIRRORS,
        mirrors.DescribeClusterMirrorsRequest(mirror_names=(mirror,), topics=wanted),
    )
    doing = f"mirror {mirror} cannot be described"
    expect_ok(answer.error_code, answer.error_message, doing=doing)
    for told in answer.mirrors:
        expect_ok(told.error_code, told.error_message, doing=doing)
    return sorted(row for told in answer.mirrors for row in PartitionRow.all_of(told))


async def topics_not_here(
    cluster: Cluster, source: Cluster, mirror: str, topics: str | None
) -> list[str]:
    """Give what the mirror's filters, and ``--topics``, mean of the source and is not here yet."""
    include, exclude = await patterns_of(cluster, mirror, (TOPICS_INCLUDE, TOPICS_EXCLUDE))
    if not include:
        return []
    is_chosen, is_meant = matcher(include, exclude), matcher(words(topics) or (EVERY_TOPIC,), ())
    there = [t for t in (await source.metadata()).topics if not (t.is_internal or t.error_code)]
    here = {topic.name for topic in (await cluster.metadata()).topics}
    names = {topic.name for topic in there if topic.name} - here
    return sorted(name for name in names if is_chosen(name) and is_meant(name))


@asynccontextmanager
async def source_of(
    mirror: mirrors.ListedMirror, options: argparse.Namespace
) -> AsyncIterator[Cluster]:
    """Connect to a mirror's source as an ordinary client; CliError says why it cannot be."""
    given = connection_properties(options.source_command_config)
    servers = given.get("bootstrap.servers", mirror.source_bootstrap)
    key = f"bootstrap.servers of mirror {mirror.mirror_name}'s source"
    try:
        bootstrap = parse_addresses(servers, key=key)
    except SettingsError as error:
        raise CliError(str(error)) from error
    async with cluster_at(bootstrap, given, named_by=key) as source:
        cluster_id = (await source.metadata([])).cluster_id
        if mirror.source_cluster_id and cluster_id != mirror.source_cluster_id:
            raise CliError(
                f"the source of mirror {mirror.mirror_name} is cluster "
                f"{mirror.source_cluster_id}, but {cluster_id} answers at {servers}"
            )
        yield source


async def patterns_of(
    cluster: Cluster, mirror: str, settings: Sequence[Setting[tuple[str, ...]]]
) -> list[tuple[str, ...]]:
    """Give list settings of a mirror; what the broker does not tell has its default."""
    resource = ResourceToDescribe(
        resource_type=MIRROR_RESOURCE,
        resource_name=mirror,
        configuration_keys=tuple(setting.name for setting in settings),
    )
    answer = await cluster.ask(DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=(resource,)))
    told = {c.name: c.value for r in answer.results for c in r.configs if c.value is not None}
    return [
        words(told[setting.name]) if setting.name in told else setting.default
        for setting in settings
    ]


async def topic_configs(
    cluster: Cluster, topics: Sequence[str], names: tuple[str, ...] | None = None
) -> dict[str, tuple[DescribedConfig, ...]]:
    """Give all settings of topics, or those named; a topic that is not there is left out."""
    asked = tuple(
        ResourceToDescribe(
            resource_type=TOPIC_RESOURCE, resource_name=topic, configuration_keys=names
        )
        for topic in topics
    )
    answer = await cluster.ask(DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=asked))
    found: dict[str, tuple[DescribedConfig, ...]] = {}
    for told in answer.results:
        if told.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            continue
        doing = f"settings of topic {told.resource_name} cannot be read"
        expect_ok(told.error_code, told.error_message, doing=doing)
        found[told.resource_name] = told.configs
    return found
