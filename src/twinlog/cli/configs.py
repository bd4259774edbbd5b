"""``kafka-configs.sh``: describes and alters the settings of topics, brokers and mirrors."""

import argparse
import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from twinlog.cli.cluster import Cluster, add_cluster_flags, cluster_of
from twinlog.cli.failures import EXIT_OK, CliError, UsageError, expect_ok
from twinlog.cli.text_files import text_of
from twinlog.config.declare import Source
from twinlog.config.read import properties
from twinlog.model.errors import SettingsError
from twinlog.wire.messages.configs import (
    DESCRIBE_CONFIGS,
    INCREMENTAL_ALTER_CONFIGS,
    LIST_CONFIG_RESOURCES,
    ConfigAlteration,
    DescribeConfigsRequest,
    DescribedConfig,
    DescribedResource,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
    ResourceAlteration,
    ResourceToDescribe,
)

TOPIC: Final = 2
BROKER: Final = 4
CLUSTER_MIRROR: Final = 64
KINDS: Final = {"topics": TOPIC, "brokers": BROKER, "cluster-mirrors": CLUSTER_MIRROR}
SET: Final = 0
DELETE: Final = 1
EVERY_BROKER: Final = ""


def parser(prog: str) -> argparse.ArgumentParser:
    """Give the parser of the command's flags."""
    made = argparse.ArgumentParser(
        prog=prog, description="Settings of topics, brokers and mirrors, while they run."
    )
    add_cluster_flags(made)
    action = made.add_mutually_exclusive_group(required=True)
    for verb in ("describe", "alter"):
        action.add_argument(f"--{verb}", dest="action", action="store_const", const=verb)
    made.add_argument("--entity-type", choices=sorted(KINDS), metavar="TYPE", help="of what")
    made.add_argument("--entity-name", metavar="NAME", help="of which")
    made.add_argument("--entity-default", action="store_true", help="of every broker")
    for short, kind in (("topic", "topics"), ("broker", "brokers")):
        made.add_argument(f"--{short}", metavar="NAME", help=f"short for --entity-type {kind}")
    made.add_argument("--all", action="store_true", help="describe the defaults, too")
    made.add_argument("--add-config", metavar="A=1,B=[X,Y]", help="what to set")
    made.add_argument(
        "--add-config-file",
        metavar="FILE",
        type=Path,
        help="properties to set; keeps secrets off the command line; --add-config wins over it",
    )
    made.add_argument("--delete-config", metavar="A,B", help="what to give its default again")
    return made


def run(options: argparse.Namespace) -> int:
    """Do what the flags ask; give the exit code."""
    kind, names = _meant(options)
    if options.action == "describe":
        if options.add_config or options.add_config_file or options.delete_config:
            raise UsageError("--add-config[-file] and --delete-config go with --alter only")
        return asyncio.run(_describe(options, kind, names))
    changes = _changes(options)
    if not names:
        raise UsageError("--alter needs --entity-name NAME or --entity-default")
    return asyncio.run(_alter(options, kind, names[0], changes))


def _changes(options: argparse.Namespace) -> tuple[ConfigAlteration, ...]:
    """Give what the flags ask; each setting once, with what was said of it last."""
    file: Path | None = options.add_config_file
    changes = [
        *(() if file is None else _of_file(file)),
        *_added(options.add_config or ""),
        *_deleted(options.delete_config or ""),
    ]
    if not changes and file is not None:
        raise CliError(f"{file} sets nothing")
    if not changes:
        raise UsageError(
            "--alter needs --add-config A=1,B=2, --add-config-file FILE or --delete-config A,B"
        )
    return tuple({change.name: change for change in changes}.values())


def _of_file(file: Path) -> Iterator[ConfigAlteration]:
    try:
        found = properties(text_of(file))
    except SettingsError as error:
        raise CliError(f"{file}: {error}") from error
    for each in found:
        yield ConfigAlteration(name=each.key, config_operation=SET, value=each.value.strip())


def _meant(options: argparse.Namespace) -> tuple[int, list[str]]:
    """Give the kind, and the name that is meant; no name is all of the kind."""
    if options.topic is not None:
        return TOPIC, [options.topic]
    if options.broker is not None:
        return BROKER, [options.broker]
    if options.entity_type is None:
        raise UsageError("say of what: --topic NAME, --broker ID, or --entity-type")
    kind = KINDS[options.entity_type]
    if options.entity_default:
        if kind != BROKER or options.entity_name is not None:
            raise UsageError("--entity-default goes with --entity-type brokers, without a name")
        return kind, [EVERY_BROKER]
    return kind, [] if options.entity_name is None else [options.entity_name]


def _added(text: str) -> Iterator[ConfigAlteration]:
    """Read ``a=1,b=[x,y]``: commas inside brackets are part of a value."""
    position = 0
    while position < len(text):
        name, equals, rest = text[position:].partition("=")
        name = name.strip()
        if not equals or not name or "," in name:
            raise UsageError(f"--add-config {text} is not A=1,B=2 or A=[X,Y]")
        if rest.startswith("["):
            value, closed, _ = rest[1:].partition("]")
            if not closed:
                raise UsageError(f"--add-config {text} has a [ without its ]")
            after = len(text) - len(rest) + len(value) + 2
            if text[after:].strip() and not text[after:].lstrip().startswith(","):
                raise UsageError(f"--add-config {name}=[...] goes on behind its ]")
            after += len(text[after:]) - len(text[after:].lstrip())
        else:
            value = rest.partition(",")[0]
            after = len(text) - len(rest) + len(value)
        yield ConfigAlteration(name=name, config_operation=SET, value=value)
        position = after + 1


def _deleted(text: str) -> Iterator[ConfigAlteration]:
    for name in text.split(","):
        if name.strip():
            yield ConfigAlteration(name=name.strip(), config_operation=DELETE, value=None)


async def _describe(options: argparse.Namespace, kind: int, names: list[str]) -> int:
    async with cluster_of(options) as cluster:
        for name in names or await _all_of(cluster, kind):
            found = await _described(cluster, kind, name)
            which = "All" if options.all else "Dynamic"
            what = _called(kind, name)
            print(f"{which} configs for {what} are:")
            for config in sorted(found.configs, key=lambda c: c.name):
                if options.all or _is_dynamic(config):
                    print(_line(config))
    return EXIT_OK


async def _all_of(cluster: Cluster, kind: int) -> list[str]:
    if kind == TOPIC:
        return sorted(topic.name or "" for topic in (await cluster.metadata()).topics)
    if kind == BROKER:
        brokers = (await cluster.metadata([])).brokers
        return [*(str(broker.node_id) for broker in brokers), EVERY_BROKER]
    answer = await cluster.ask(
        LIST_CONFIG_RESOURCES, ListConfigResourcesRequest(resource_types=(kind,))
    )
    expect_ok(answer.error_code, None, doing="mirrors cannot be listed")
    return sorted(r.resource_name for r in answer.config_resources if r.resource_type == kind)


async def _described(cluster: Cluster, kind: int, name: str) -> DescribedResource:
    request = DescribeConfigsRequest(
        resources=(ResourceToDescribe(resource_type=kind, resource_name=name),),
        include_synonyms=True,
    )
    if kind == BROKER and name != EVERY_BROKER:
        answer = await cluster.ask_node(await _broker_of(cluster, name), DESCRIBE_CONFIGS, request)
    else:
        answer = await cluster.ask(DESCRIBE_CONFIGS, request)
    (found,) = answer.results
    doing = f"configs for {_called(kind, name)} cannot be described"
    expect_ok(found.error_code, found.error_message, doing=doing)
    return found


async def _broker_of(cluster: Cluster, name: str) -> int:
    """Give the number of a broker that there is: each describes only itself."""
    known = {str(broker.node_id) for broker in (await cluster.metadata([])).brokers}
    if name not in known:
        raise CliError(f"there is no broker {name}; there are {', '.join(sorted(known))}")
    return int(name)


async def _alter(
    options: argparse.Namespace, kind: int, name: str, changes: tuple[ConfigAlteration, ...]
) -> int:
    resource = ResourceAlteration(resource_type=kind, resource_name=name, configs=changes)
    async with cluster_of(options) as cluster:
        await _expect_known(cluster, kind, name, changes)
        answer = await cluster.ask(
            INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsRequest(resources=(resource,))
        )
    what = _called(kind, name)
    for told in answer.responses:
        doing = f"configs for {what} were not altered"
        expect_ok(told.error_code, told.error_message, doing=doing)
    print(f"Completed updating config for {what}.")
    return EXIT_OK


async def _expect_known(
    cluster: Cluster, kind: int, name: str, changes: tuple[ConfigAlteration, ...]
) -> None:
    """Refuse to delete what no setting is called: a broker takes that for done.

    Not for brokers, which do not tell all that can be set.
    """
    deleted = [change.name for change in changes if change.config_operation == DELETE]
    if not deleted or kind == BROKER:
        return
    known = {config.name for config in (await _described(cluster, kind, name)).configs}
    unknown = [each for each in deleted if each not in known]
    if unknown:
        raise CliError(
            f"configs for {_called(kind, name)} were not altered: there is no setting "
            f"{', '.join(unknown)} to delete; --describe --all tells which there are"
        )


def _called(kind: int, name: str) -> str:
    if name == EVERY_BROKER:
        return "the default of every broker"
    singular = {TOPIC: "topic", BROKER: "broker", CLUSTER_MIRROR: "cluster mirror"}[kind]
    return f"{singular} {name}"


def _is_dynamic(config: DescribedConfig) -> bool:
    return config.config_source not in (Source.STATIC_BROKER, Source.DEFAULT)


def _line(config: DescribedConfig) -> str:
    synonyms = ", ".join(
        f"{_source(s.source)}:{s.name}={'null' if s.value is None else s.value}"
        for s in config.synonyms
    )
    sensitive = "true" if config.is_sensitive else "false"
    value = "null" if config.value is None else config.value
    return f"  {config.name}={value} sensitive={sensitive} synonyms={{{synonyms}}}"


def _source(number: int) -> str:
    names = {
        Source.TOPIC: "DYNAMIC_TOPIC_CONFIG",
        Source.DYNAMIC_BROKER: "DYNAMIC_BROKER_CONFIG",
        Source.DYNAMIC_DEFAULT_BROKER: "DYNAMIC_DEFAULT_BROKER_CONFIG",
        Source.STATIC_BROKER: "STATIC_BROKER_CONFIG",
        Source.DEFAULT: "DEFAULT_CONFIG",
        Source.CLUSTER_MIRROR: "DYNAMIC_CLUSTER_MIRROR_CONFIG",
    }
    try:
        return names[Source(number)]
    except ValueError:
        return str(number)
