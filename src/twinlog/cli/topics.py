"""``kafka-topics.sh``: create, list, describe, alter and delete topics."""

import argparse
import asyncio
import re
import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeAlias

from twinlog.cli.cluster import Cluster, add_cluster_flags, cluster_of
from twinlog.cli.failures import EXIT_FAILED, EXIT_OK, CliError, UsageError, sentence
from twinlog.cli.output import base64_of
from twinlog.config.declare import Source
from twinlog.config.read import read_overrides
from twinlog.model.errors import ErrorCode, SettingsError
from twinlog.wire.messages import topics
from twinlog.wire.messages.configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    ResourceToDescribe,
)
from twinlog.wire.messages.metadata import MetadataPartition, MetadataTopic

TOPIC_RESOURCE: Final = 2

Verb: TypeAlias = Callable[[Cluster, argparse.Namespace], Awaitable[int]]


def parser(prog: str) -> argparse.ArgumentParser:
    """Give the parser of the command's flags."""
    made = argparse.ArgumentParser(prog=prog, description="Topics of a cluster.")
    add_cluster_flags(made)
    action = made.add_mutually_exclusive_group(required=True)
    for verb in _VERBS:
        action.add_argument(f"--{verb}", dest="action", action="store_const", const=verb)
    made.add_argument(
        "--topic", metavar="NAME", help="the topic; a regular expression except with --create"
    )
    made.add_argument("--partitions", type=int, metavar="N")
    made.add_argument("--replication-factor", type=int, metavar="N")
    made.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a topic setting, with --create; may be given again",
    )
    made.add_argument("--if-exists", action="store_true", help="a missing topic is no error")
    made.add_argument("--if-not-exists", action="store_true", help="an existing topic is no error")
    made.add_argument("--exclude-internal", action="store_true")
    made.add_argument(
        "--under-replicated-partitions", action="store_true", help="describe only these"
    )
    made.add_argument("--unavailable-partitions", action="store_true", help="describe only these")
    made.add_argument(
        "--topics-with-overrides", action="store_true", help="describe only topics with settings"
    )
    return made


def run(options: argparse.Namespace) -> int:
    """Do what the flags ask; give the exit code."""
    _check_flags(options)
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    async with cluster_of(options) as cluster:
        return await _VERBS[options.action](cluster, options)


def _check_flags(options: argparse.Namespace) -> None:
    action = options.action
    if action in ("create", "alter", "delete") and not options.topic:
        raise UsageError(f"--{action} needs --topic NAME")
    if action == "alter" and options.partitions is None:
        raise UsageError("--alter needs --partitions N")
    if options.config and action != "create":
        raise UsageError("--config goes with --create only; see kafka-configs.sh for the rest")
    for name in ("partitions", "replication_factor"):
        number = getattr(options, name)
        if number is not None and number < 1:
            raise UsageError(f"--{name.replace('_', '-')} must be at least 1")
    try:
        read_overrides(options.config)
        re.compile(options.topic or "")
    except (SettingsError, re.error) as error:
        raise UsageError(str(error)) from error


async def _create(cluster: Cluster, options: argparse.Namespace) -> int:
    configs = read_overrides(options.config)
    asked = topics.CreatableTopic(
        name=options.topic,
        num_partitions=options.partitions or -1,
        replication_factor=options.replication_factor or -1,
        configs=tuple(topics.TopicConfig(name=k, value=v) for k, v in configs.items()),
    )
    answer = await cluster.ask(
        topics.CREATE_TOPICS,
        topics.CreateTopicsRequest(topics=(asked,), timeout_ms=cluster.timeout_ms),
    )
    for created in answer.topics:
        exists = created.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        if created.error_code and not (exists and options.if_not_exists):
            why = sentence(created.error_code, created.error_message)
            raise CliError(f"topic {created.name} was not created: {why}")
        if not created.error_code:
            print(f"Created topic {created.name}.")
    return EXIT_OK


async def _list(cluster: Cluster, options: argparse.Namespace) -> int:
    for topic in await _matching(cluster, options):
        print(topic.name)
    return EXIT_OK


async def _describe(cluster: Cluster, options: argparse.Namespace) -> int:
    found = await _matching(cluster, options)
    if not found and not _is_absence_fine(options):
        return EXIT_FAILED
    configs = await _overrides_of(cluster, [topic.name or "" for topic in found])
    for topic in found:
        overrides = configs.get(topic.name or "", "")
        if options.topics_with_overrides and not overrides:
            continue
        wanted = [p for p in topic.partitions if _is_wanted(p, options)]
        is_filtered = options.under_replicated_partitions or options.unavailable_partitions
        if not is_filtered:
            print(_topic_line(topic, overrides))
        if not options.topics_with_overrides:
            for partition in sorted(wanted, key=lambda p: p.partition_index):
                print(_partition_line(topic, partition))
    return EXIT_OK


async def _alter(cluster: Cluster, options: argparse.Namespace) -> int:
    found = await _matching(cluster, options)
    if not found:
        return EXIT_OK if _is_absence_fine(options) else EXIT_FAILED
    asked = tuple(
        topics.CreatePartitionsTopic(name=topic.name or "", count=options.partitions)
        for topic in found
    )
    answer = await cluster.ask(
        topics.CREATE_PARTITIONS,
        topics.CreatePartitionsRequest(topics=asked, timeout_ms=cluster.timeout_ms),
    )
    return _told((r.name, r.error_code, r.error_message) for r in answer.results)


async def _delete(cluster: Cluster, options: argparse.Namespace) -> int:
    found = await _matching(cluster, options)
    if not found:
        return EXIT_OK if _is_absence_fine(options) else EXIT_FAILED
    names = tuple(topic.name or "" for topic in found)
    answer = await cluster.ask(
        topics.DELETE_TOPICS,
        topics.DeleteTopicsRequest(
            topics=tuple(topics.TopicToDelete(name=name) for name in names),
            topic_names=names,
            timeout_ms=cluster.timeout_ms,
        ),
    )
    return _told((r.name or "", r.error_code, r.error_message) for r in answer.responses)


async def _matching(cluster: Cluster, options: argparse.Namespace) -> list[MetadataTopic]:
    """Give the topics that the flags mean, by name."""
    pattern = re.compile(options.topic) if options.topic else None
    found = (await cluster.metadata()).topics
    return sorted(
        (
            topic
            for topic in found
            if topic.name is not None
            and (pattern is None or topic.name == options.topic or pattern.fullmatch(topic.name))
            and not (options.exclude_internal and topic.is_internal)
        ),
        key=lambda topic: topic.name or "",
    )


async def _overrides_of(cluster: Cluster, names: list[str]) -> dict[str, str]:
    """Give each topic's own settings as ``a=b,c=d``."""
    resources = tuple(
        ResourceToDescribe(resource_type=TOPIC_RESOURCE, resource_name=name) for name in names
    )
    if not resources:
        return {}
    answer = await cluster.ask(DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=resources))
    return {
        resource.resource_name: ",".join(
            f"{config.name}={config.value}"
            for config in sorted(resource.configs, key=lambda c: c.name)
            if config.config_source == Source.TOPIC
        )
        for resource in answer.results
    }


def _is_absence_fine(options: argparse.Namespace) -> bool:
    """Tell whether it is no error that nothing matches; if it is one, say so."""
    if not options.topic or options.if_exists:
        return True
    print(
        f"topic {options.topic} does not exist. See which there are with kafka-topics.sh --list.",
        file=sys.stderr,
    )
    return False


def _told(results: Iterable[tuple[str, int, str | None]]) -> int:
    code = EXIT_OK
    for name, error_code, why in results:
        if error_code:
            print(f"topic {name}: {sentence(error_code, why)}", file=sys.stderr)
            code = EXIT_FAILED
    return code


def _is_wanted(partition: MetadataPartition, options: argparse.Namespace) -> bool:
    if options.under_replicated_partitions:
        return len(partition.isr_nodes) < len(partition.replica_nodes)
    return not options.unavailable_partitions or partition.leader_id < 0


def _topic_line(topic: MetadataTopic, overrides: str) -> str:
    replicas = max((len(p.replica_nodes) for p in topic.partitions), default=0)
    return (
        f"Topic: {topic.name}\tTopicId: {base64_of(topic.topic_id)}"
        f"\tPartitionCount: {len(topic.partitions)}\tReplicationFactor: {replicas}"
        f"\tConfigs: {overrides}"
    )


def _partition_line(topic: MetadataTopic, partition: MetadataPartition) -> str:
    leader = "none" if partition.leader_id < 0 else str(partition.leader_id)
    return (
        f"\tTopic: {topic.name}\tPartition: {partition.partition_index}\tLeader: {leader}"
        f"\tReplicas: {','.join(map(str, partition.replica_nodes))}"
        f"\tIsr: {','.join(map(str, partition.isr_nodes))}"
    )


_VERBS: Final[dict[str, Verb]] = {
    "create": _create,
    "list": _list,
    "describe": _describe,
    "alter": _alter,
    "delete": _delete,
}
