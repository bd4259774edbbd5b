"""``kafka-cluster-mirrors.sh``: the verbs of mirrors, with KIP-1279's flags, columns and JSON."""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from twinlog.cli.cluster import Cluster, cluster_of
from twinlog.cli.failures import EXIT_FAILED, EXIT_OK, expect_ok, sentence
from twinlog.cli.mirror_asking import (
    listed,
    matching,
    mirror_called,
    patterns_of,
    some_matching,
    without_match,
    words,
)
from twinlog.cli.mirror_flags import WAIT, check_flags, mirrors_parser
from twinlog.cli.mirror_plan import plan_stop
from twinlog.cli.mirror_promote import promote
from twinlog.cli.mirror_tables import FailedView, ListView, PartitionRow, StateView, TasksView
from twinlog.cli.mirror_verify import verify
from twinlog.cli.mirror_wait import STATE_AFTER, STOPPED, wait, wait_after
from twinlog.cli.text_files import text_of
from twinlog.config.mirror import MIRROR, TOPICS_EXCLUDE, matcher
from twinlog.config.mirror_broker import MIRROR_FAILED_RETRY_MAX_ATTEMPTS
from twinlog.config.read import read_settings
from twinlog.wire.messages import mirrors
from twinlog.wire.messages.configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    ResourceToDescribe,
)

RETRIES_IF_NOT_TOLD: Final = 10
BROKER_RESOURCE: Final = 4
UNCHECKED: Final = -1

Verb: TypeAlias = Callable[[Cluster, argparse.Namespace], Awaitable[int]]


def parser(prog: str) -> argparse.ArgumentParser:
    """Give the parser of the command's flags."""
    return mirrors_parser(prog)


def run(options: argparse.Namespace) -> int:
    """Do what the flags ask; give the exit code."""
    check_flags(options)
    options.config = _config_of(options.mirror_config) if options.mirror_config else ()
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    async with cluster_of(options) as cluster:
        code = await _VERBS[options.action](cluster, options)
        is_done = code == EXIT_OK and not options.promote
        if is_done and options.wait and options.action in STATE_AFTER:
            return await wait_after(cluster, options)
        return code


def _config_of(file: Path) -> tuple[mirrors.MirrorConfig, ...]:
    """Read a mirror's properties; raises SettingsError that names line, key, value and the fix."""
    settings = read_settings(MIRROR, text_of(file), file_name=str(file))
    if settings.ignored:
        print(f"{file}: without effect: {', '.join(settings.ignored)}", file=sys.stderr)
    given = settings.overrides
    return tuple(
        mirrors.MirrorConfig(name=name, value=text)
        for name, text in given.items()
        if MIRROR.find(name) is not None
    )


async def _create(cluster: Cluster, options: argparse.Namespace) -> int:
    answer = await cluster.ask(
        mirrors.CREATE_CLUSTER_MIRROR,
        mirrors.CreateClusterMirrorRequest(mirror_name=options.mirror, config=options.config),
    )
    doing = f"mirror {options.mirror} was not created"
    expect_ok(answer.error_code, answer.error_message, doing=doing)
    print(f"Created mirror {options.mirror}")
    return EXIT_OK


async def _delete(cluster: Cluster, options: argparse.Namespace) -> int:
    answer = await cluster.ask(
        mirrors.DELETE_CLUSTER_MIRROR,
        mirrors.DeleteClusterMirrorRequest(mirror_name=options.mirror),
    )
    doing = f"mirror {options.mirror} was not deleted"
    expect_ok(answer.error_code, answer.error_message, doing=doing)
    print(f"Deleted mirror {options.mirror}")
    return EXIT_OK


async def _start(cluster: Cluster, options: argparse.Namespace) -> int:
    answer = await cluster.ask(
        mirrors.START_MIRROR_TOPICS,
        mirrors.StartMirrorTopicsRequest(
            mirror_name=options.mirror,
            include_patterns=words(options.topics),
            exclude_patterns=words(options.exclude),
            timeout_ms=cluster.timeout_ms,
        ),
    )
    started, code = _topics_done(answer, options)
    await _tell_left_out(cluster, options, {topic.topic_name for topic in answer.topics})
    if started:
        print(f"Started {len(started)} topic(s) in mirror {options.mirror}:{_bracketed(started)}")
    elif code == EXIT_OK:
        print(
            f"No matching topics found yet. Patterns saved to mirror {options.mirror} "
            "for auto-discovery."
        )
    return code


async def _tell_left_out(
    cluster: Cluster, options: argparse.Namespace, told: Collection[str]
) -> None:
    """Tell of stopped topics that are meant, and of which the answer to a start says nothing."""
    is_meant = matcher(words(options.topics), words(options.exclude))
    mirror = await mirror_called(cluster, options.mirror, (STOPPED,))
    left_out = [name for name in mirror.topic_names or () if is_meant(name) and name not in told]
    if not left_out:
        return
    (patterns,) = await patterns_of(cluster, options.mirror, (TOPICS_EXCLUDE,))
    is_excluded = matcher(patterns, ())
    excluded = sorted(filter(is_excluded, left_out))
    if excluded:
        print(
            f"Not started, since topics.exclude of mirror {options.mirror} matches: "
            f"{_bracketed(excluded)}. A stop puts there what it was given: start them by the same "
            "names and patterns, or alter topics.exclude (kafka-configs.sh --entity-type "
            "cluster-mirrors)",
            file=sys.stderr,
        )
    unseen = sorted(set(left_out) - set(excluded))
    if unseen:
        print(f"Not started, since the source shows none: {_bracketed(unseen)}", file=sys.stderr)


async def _stop(cluster: Cluster, options: argparse.Namespace) -> int:
    if options.plan:
        return await plan_stop(cluster, options)
    if options.promote:
        return await promote(cluster, options, lambda at: _stop_now(cluster, options, at))
    return await _stop_now(cluster, options)


async def _stop_now(
    cluster: Cluster, options: argparse.Namespace, decided_at: int = UNCHECKED
) -> int:
    """Stop, whatever others have asked for since, unless it was decided by what was seen."""
    mirror = await mirror_called(cluster, options.mirror)
    chosen = matching(mirror, options.topics)
    answer = await cluster.ask(
        mirrors.STOP_MIRROR_TOPICS,
        mirrors.StopMirrorTopicsRequest(
            mirror_name=options.mirror,
            topics=_mirror_topics(chosen),
            state_offset=decided_at,
            patterns=words(options.topics),
        ),
    )
    stopped, code = _topics_done(answer, options)
    if stopped:
        print(f"Stopped{_bracketed(stopped)} topic(s) in mirror {options.mirror}")
        if missing := without_match(mirror, options.topics):
            print(
                f"No topic of mirror {options.mirror} matches {', '.join(missing)}", file=sys.stderr
            )
    elif code == EXIT_OK:
        print(
            f"No matching topics in mirror {options.mirror}. "
            "Patterns removed from its auto-discovery."
        )
    return code


async def _pause(cluster: Cluster, options: argparse.Namespace) -> int:
    topics, seen_at = await _some_matching(cluster, options)
    request = mirrors.PauseMirrorTopicsRequest(
        mirror_name=options.mirror, topics=topics, state_offset=seen_at
    )
    return _told(await cluster.ask(mirrors.PAUSE_MIRROR_TOPICS, request), options, "Paused")


async def _resume(cluster: Cluster, options: argparse.Namespace) -> int:
    topics, seen_at = await _some_matching(cluster, options)
    request = mirrors.ResumeMirrorTopicsRequest(
        mirror_name=options.mirror, topics=topics, state_offset=seen_at
    )
    return _told(await cluster.ask(mirrors.RESUME_MIRROR_TOPICS, request), options, "Resumed")


async def _recover(cluster: Cluster, options: argparse.Namespace) -> int:
    topics, _ = await _some_matching(cluster, options)
    request = mirrors.RecoverMirrorTopicsRequest(mirror_name=options.mirror, topics=topics)
    return _told(await cluster.ask(mirrors.RECOVER_MIRROR_TOPICS, request), options, "Recovered")


def _told(answer: mirrors.MirrorTopicsResponse, options: argparse.Namespace, done: str) -> int:
    names, code = _topics_done(answer, options)
    if names:
        print(f"{done} {len(names)} topic(s) in mirror {options.mirror}:{_bracketed(names)}")
    return code


async def _list(cluster: Cluster, options: argparse.Namespace) -> int:
    found = await listed(
        cluster,
        mirrors.ListClusterMirrorsRequest(
            mirror_name_filter=words(options.mirror),
            source_cluster_id_filter=words(options.source_cluster_id),
            desired_state_filter=words(options.desired_state),
        ),
    )
    ListView(found).write(sys.stdout)
    return EXIT_OK


async def _describe(cluster: Cluster, options: argparse.Namespace) -> int:
    names = (options.mirror,) if options.mirror else None
    answer = await cluster.ask(
        mirrors.DESCRIBE_CLUSTER_MIRRORS, mirrors.DescribeClusterMirrorsRequest(mirror_names=names)
    )
    expect_ok(answer.error_code, answer.error_message, doing="mirrors cannot be described")
    code = EXIT_OK
    for mirror in answer.mirrors:
        if mirror.error_code:
            why = sentence(mirror.error_code, mirror.error_message)
            print(f"mirror {mirror.mirror_name} cannot be described: {why}", file=sys.stderr)
            code = EXIT_FAILED
    described = [mirror for mirror in answer.mirrors if not mirror.error_code]
    if code != EXIT_OK and not described:
        return code
    if options.tasks:
        TasksView(described).write(sys.stdout, as_json=options.json)
        return code
    rows = sorted(row for mirror in described for row in PartitionRow.all_of(mirror))
    if options.failed:
        FailedView(rows, await _retries_max(cluster)).write(sys.stdout, as_json=options.json)
    else:
        StateView(rows).write(sys.stdout, as_json=options.json)
    return code


async def _retries_max(cluster: Cluster) -> int:
    """Give how often the brokers retry; what the proposal's tool assumes if they do not tell."""
    broker = (await cluster.metadata([])).brokers[0].node_id
    name = MIRROR_FAILED_RETRY_MAX_ATTEMPTS.name
    resource = ResourceToDescribe(
        resource_type=BROKER_RESOURCE, resource_name=str(broker), configuration_keys=(name,)
    )
    answer = await cluster.ask_node(
        broker, DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=(resource,))
    )
    values = [c.value for r in answer.results for c in r.configs if c.name == name and c.value]
    return int(values[0]) if values else RETRIES_IF_NOT_TOLD


async def _some_matching(
    cluster: Cluster, options: argparse.Namespace
) -> tuple[tuple[mirrors.MirrorTopic, ...], int]:
    """Give the topics that are meant, and the metadata revision at which they were seen."""
    mirror = await mirror_called(cluster, options.mirror)
    return _mirror_topics(some_matching(mirror, options.topics)), mirror.state_offset


def _topics_done(
    answer: mirrors.MirrorTopicsResponse, options: argparse.Namespace
) -> tuple[list[str], int]:
    """Give the topics for which it was done, and the exit code; tell the errors of the others."""
    doing = f"--{options.action} of mirror {options.mirror} was refused"
    expect_ok(answer.error_code, answer.error_message, doing=doing)
    code = EXIT_OK
    for topic in answer.topics:
        if topic.error_code:
            why = sentence(topic.error_code, topic.error_message)
            print(f"topic {topic.topic_name}: {why}", file=sys.stderr)
            code = EXIT_FAILED
    return sorted(t.topic_name for t in answer.topics if not t.error_code), code


def _mirror_topics(names: Sequence[str]) -> tuple[mirrors.MirrorTopic, ...]:
    return tuple(mirrors.MirrorTopic(topic_name=name) for name in names)


def _bracketed(names: Sequence[str]) -> str:
    return f"[{', '.join(names)}]"


_VERBS: Final[dict[str, Verb]] = {
    "create": _create,
    "start": _start,
    "stop": _stop,
    "pause": _pause,
    "resume": _resume,
    "delete": _delete,
    "recover": _recover,
    "list": _list,
    "describe": _describe,
    "verify": verify,
    WAIT: wait,
}
