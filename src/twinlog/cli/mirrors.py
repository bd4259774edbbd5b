"""``kafka-cluster-mirrors.sh``: the verbs of mirrors, with KIP-1279's flags, columns and JSON."""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from twinlog.cli.cluster import Cluster, add_cluster_flags, cluster_of
from twinlog.cli.failures import EXIT_FAILED, EXIT_OK, CliError, UsageError, expect_ok, sentence
from twinlog.cli.mirror_tables import FailedView, ListView, PartitionRow, StateView
from twinlog.config.mirror import MIRROR, MIRROR_FAILED_RETRY_MAX_ATTEMPTS, matcher
from twinlog.config.read import read_settings
from twinlog.model.errors import ErrorCode, SettingsError
from twinlog.wire.messages import mirrors
from twinlog.wire.messages.configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    ResourceToDescribe,
)

RETRIES_IF_NOT_TOLD: Final = 10
BROKER_RESOURCE: Final = 4
EVERY_STATE: Final = ("MIRRORING", "PAUSED", "STOPPED")

Verb: TypeAlias = Callable[[Cluster, argparse.Namespace], Awaitable[int]]


def parser(prog: str) -> argparse.ArgumentParser:
    """Give the parser of the command's flags."""
    made = argparse.ArgumentParser(
        prog=prog,
        description="Mirror topics of another cluster into this one, byte for byte.",
        epilog="Topics are named with commas between them; each may be a regular expression.",
    )
    add_cluster_flags(made)
    action = made.add_mutually_exclusive_group(required=True)
    for verb, what in _ACTIONS.items():
        action.add_argument(f"--{verb}", dest="action", action="store_const", const=verb, help=what)
    made.add_argument("--mirror", metavar="NAME", help="the mirror")
    made.add_argument(
        "--mirror-config", type=Path, metavar="FILE", help="its properties, for --create"
    )
    made.add_argument("--topics", metavar="A,B,REGEX", help="the topics that are meant")
    made.add_argument("--exclude", metavar="A,REGEX", help="topics not to start")
    made.add_argument("--json", action="store_true", help="describe as JSON")
    made.add_argument("--failed", action="store_true", help="describe what has failed, and why")
    return made


def run(options: argparse.Namespace) -> int:
    """Do what the flags ask; give the exit code."""
    _check_flags(options)
    options.config = _config_of(options.mirror_config) if options.mirror_config else ()
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    async with cluster_of(options) as cluster:
        return await _VERBS[options.action](cluster, options)


def _check_flags(options: argparse.Namespace) -> None:
    """Refuse flags that the action needs and lacks, or has and does not know."""
    action = options.action
    if action not in ("list", "describe") and not options.mirror:
        raise UsageError(f"--{action} needs --mirror NAME")
    if action == "create" and options.mirror_config is None:
        raise UsageError("--create needs --mirror-config FILE, which names the source")
    if action in _TOPIC_ACTIONS and not _words(options.topics):
        raise UsageError(f"--{action} needs --topics A,B,REGEX")
    allowed = {
        "mirror_config": ("create",),
        "topics": _TOPIC_ACTIONS,
        "exclude": ("start",),
        "json": ("describe",),
        "failed": ("describe",),
    }
    for flag, actions in allowed.items():
        if getattr(options, flag) and action not in actions:
            known = " and ".join(f"--{a}" for a in actions)
            raise UsageError(f"--{flag.replace('_', '-')} goes with {known} only")
    try:
        matcher(_words(options.topics), _words(options.exclude))
    except SettingsError as error:
        raise UsageError(str(error)) from error


def _config_of(file: Path) -> tuple[mirrors.MirrorConfig, ...]:
    """Read a mirror's properties; raises SettingsError that names line, key, value and the fix."""
    settings = read_settings(MIRROR, file.read_text("utf-8"), file_name=str(file))
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
            include_patterns=_words(options.topics),
            exclude_patterns=_words(options.exclude),
            timeout_ms=cluster.timeout_ms,
        ),
    )
    started, code = _topics_done(answer, options)
    if started:
        print(f"Started {len(started)} topic(s) in mirror {options.mirror}:{_bracketed(started)}")
    elif code == EXIT_OK:
        print(
            f"No matching topics found yet. Patterns saved to mirror {options.mirror} "
            "for auto-discovery."
        )
    return code


async def _stop(cluster: Cluster, options: argparse.Namespace) -> int:
    matching = await _matching(cluster, options)
    answer = await cluster.ask(
        mirrors.STOP_MIRROR_TOPICS,
        mirrors.StopMirrorTopicsRequest(
            mirror_name=options.mirror,
            topics=_mirror_topics(matching),
            patterns=_words(options.topics),
        ),
    )
    stopped, code = _topics_done(answer, options)
    if stopped:
        print(f"Stopped{_bracketed(stopped)} topic(s) in mirror {options.mirror}")
    elif code == EXIT_OK:
        print(
            f"No matching topics in mirror {options.mirror}. "
            "Patterns removed from its auto-discovery."
        )
    return code


async def _pause(cluster: Cluster, options: argparse.Namespace) -> int:
    topics = await _some_matching(cluster, options)
    request = mirrors.PauseMirrorTopicsRequest(mirror_name=options.mirror, topics=topics)
    return _told(await cluster.ask(mirrors.PAUSE_MIRROR_TOPICS, request), options, "Paused")


async def _resume(cluster: Cluster, options: argparse.Namespace) -> int:
    topics = await _some_matching(cluster, options)
    request = mirrors.ResumeMirrorTopicsRequest(mirror_name=options.mirror, topics=topics)
    return _told(await cluster.ask(mirrors.RESUME_MIRROR_TOPICS, request), options, "Resumed")


async def _recover(cluster: Cluster, options: argparse.Namespace) -> int:
    topics = await _some_matching(cluster, options)
    request = mirrors.RecoverMirrorTopicsRequest(mirror_name=options.mirror, topics=topics)
    return _told(await cluster.ask(mirrors.RECOVER_MIRROR_TOPICS, request), options, "Recovered")


def _told(answer: mirrors.MirrorTopicsResponse, options: argparse.Namespace, done: str) -> int:
    names, code = _topics_done(answer, options)
    if names:
        print(f"{done} {len(names)} topic(s) in mirror {options.mirror}:{_bracketed(names)}")
    return code


async def _list(cluster: Cluster, options: argparse.Namespace) -> int:
    filters = (options.mirror,) if options.mirror else ()
    found = await _listed(cluster, mirrors.ListClusterMirrorsRequest(mirror_name_filter=filters))
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


async def _listed(
    cluster: Cluster, request: mirrors.ListClusterMirrorsRequest
) -> tuple[mirrors.ListedMirror, ...]:
    answer = await cluster.ask(mirrors.LIST_CLUSTER_MIRRORS, request)
    expect_ok(answer.error_code, answer.error_message, doing="mirrors cannot be listed")
    return answer.mirrors


async def _matching(cluster: Cluster, options: argparse.Namespace) -> list[str]:
    """Give the mirror's topics that the flags mean; CliError when there is no such mirror."""
    found = await _listed(
        cluster,
        mirrors.ListClusterMirrorsRequest(
            include_topic_names=True,
            mirror_name_filter=(options.mirror,),
            desired_state_filter=EVERY_STATE,
        ),
    )
    mirror = next((m for m in found if m.mirror_name == options.mirror), None)
    if mirror is None:
        known = sentence(ErrorCode.UNKNOWN_CLUSTER_MIRROR, f"there is no mirror {options.mirror}")
        raise CliError(known)
    is_meant = matcher(_words(options.topics), ())
    return sorted(name for name in mirror.topic_names or () if is_meant(name))


async def _some_matching(
    cluster: Cluster, options: argparse.Namespace
) -> tuple[mirrors.MirrorTopic, ...]:
    matching = await _matching(cluster, options)
    if not matching:
        raise CliError(
            f"no topic of mirror {options.mirror} matches {options.topics}: see them with "
            f"kafka-cluster-mirrors.sh --describe --mirror {options.mirror}"
        )
    return _mirror_topics(matching)


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


def _words(text: str | None) -> tuple[str, ...]:
    return tuple(word.strip() for word in (text or "").split(",") if word.strip())


def _bracketed(names: Sequence[str]) -> str:
    return f"[{', '.join(names)}]"


_ACTIONS: Final = {
    "create": "create a mirror from --mirror-config",
    "start": "mirror the source's topics that match --topics",
    "stop": "make topics writable here, where the mirror stands",
    "pause": "stop fetching, for a while",
    "resume": "fetch again after --pause",
    "delete": "delete a mirror without topics; the copies stay",
    "recover": "let failed topics try again",
    "list": "list the mirrors",
    "describe": "tell state and lag of every partition",
}
_TOPIC_ACTIONS: Final = ("start", "stop", "pause", "resume", "recover")
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
}
