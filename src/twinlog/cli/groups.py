"""``kafka-consumer-groups.sh``: list, describe, delete groups and reset their offsets."""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from twinlog.cli.cluster import Cluster, add_cluster_flags, cluster_of
from twinlog.cli.failures import EXIT_FAILED, EXIT_OK, CliError, UsageError, expect_ok, sentence
from twinlog.cli.group_tables import (
    GroupRow,
    assigned_to,
    members_table,
    offsets_table,
    states_table,
)
from twinlog.cli.offsets import commit_offsets, committed_offsets, every_group
from twinlog.cli.output import fitted, write_table
from twinlog.cli.reading import LATEST, list_offsets
from twinlog.cli.resets import NewOffset, add_reset_flags, check_reset_flags, new_offsets
from twinlog.model.errors import ErrorCode
from twinlog.wire.messages import groups

INACTIVE: Final = ("Empty", "Dead")

Verb: TypeAlias = Callable[[Cluster, argparse.Namespace], Awaitable[int]]


def parser(prog: str) -> argparse.ArgumentParser:
    """Give the parser of the command's flags."""
    made = argparse.ArgumentParser(prog=prog, description="Consumer groups of a cluster.")
    add_cluster_flags(made)
    action = made.add_mutually_exclusive_group(required=True)
    for verb in _VERBS:
        action.add_argument(f"--{verb}", dest="action", action="store_const", const=verb)
    made.add_argument("--group", action="append", default=[], metavar="ID", help="may come again")
    made.add_argument("--all-groups", action="store_true")
    made.add_argument("--members", action="store_true", help="describe the members")
    made.add_argument("--offsets", action="store_true", help="describe the offsets (the default)")
    made.add_argument("--state", action="store_true", help="list or describe the states of groups")
    add_reset_flags(made)
    return made


def run(options: argparse.Namespace) -> int:
    """Do what the flags ask; give the exit code."""
    if options.action != "list" and not options.group and not options.all_groups:
        raise UsageError(f"--{options.action} needs --group ID or --all-groups")
    check_reset_flags(options)
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    async with cluster_of(options) as cluster:
        return await _VERBS[options.action](cluster, options)


async def _list(cluster: Cluster, options: argparse.Namespace) -> int:
    found = await every_group(cluster)
    if options.state:
        rows = [(group.group_id, group.group_state or None) for group in found]
        write_table(fitted(("GROUP", "STATE"), rows), rows, sys.stdout)
    else:
        for group in found:
            print(group.group_id)
    return EXIT_OK


async def _meant(cluster: Cluster, options: argparse.Namespace) -> list[str]:
    if options.all_groups:
        return [group.group_id for group in await every_group(cluster)]
    return list(dict.fromkeys(options.group))


async def _describe(cluster: Cluster, options: argparse.Namespace) -> int:
    code = EXIT_OK
    for group in await _meant(cluster, options):
        described = await _described(cluster, group)
        offsets = await committed_offsets(cluster, group)
        if described.group_state == "Dead" and not offsets:
            why = sentence(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group}")
            print(why, file=sys.stderr)
            code = EXIT_FAILED
            continue
        if not described.members:
            print(f"\nConsumer group '{group}' has no active members.", file=sys.stderr)
        print()
        if options.members:
            members_table(described).write(sys.stdout)
        elif options.state:
            coordinator = await cluster.coordinator_of(group)
            address = (await cluster.connection_to(coordinator)).address
            states_table(described, f"{address} ({coordinator})").write(sys.stdout)
        else:
            offsets_table(group, await _rows(cluster, described, offsets)).write(sys.stdout)
    return code


async def _described(cluster: Cluster, group: str) -> groups.DescribedGroup:
    answer = await cluster.ask_coordinator(
        group,
        groups.DESCRIBE_GROUPS,
        groups.DescribeGroupsRequest(groups=(group,)),
        code_of=lambda told: told.groups[0].error_code,
    )
    found = answer.groups[0]
    if found.error_code != ErrorCode.GROUP_ID_NOT_FOUND:
        doing = f"group {group} cannot be described"
        expect_ok(found.error_code, found.error_message, doing=doing)
    return found


async def _rows(
    cluster: Cluster, described: groups.DescribedGroup, offsets: dict[tuple[str, int], int]
) -> list[GroupRow]:
    """Give a row for each partition with an offset or a member."""
    owners = {place: member for member in described.members for place in assigned_to(member)}
    places = sorted({*offsets, *owners})
    ends: dict[tuple[str, int], int] = {}
    existing = {topic.name for topic in (await cluster.metadata()).topics}
    for topic in sorted({topic for topic, _ in places} & {name for name in existing if name}):
        asked = {partition: LATEST for name, partition in places if name == topic}
        found = await list_offsets(cluster, topic, asked)
        ends |= {(topic, partition): offset for partition, offset in found.items()}
    return [
        GroupRow(
            topic=topic,
            partition=partition,
            current=offsets.get((topic, partition)),
            end=ends.get((topic, partition)),
            member=owners.get((topic, partition)),
        )
        for topic, partition in places
    ]


async def _delete(cluster: Cluster, options: argparse.Namespace) -> int:
    code, done = EXIT_OK, []
    for group in await _meant(cluster, options):
        answer = await cluster.ask_coordinator(
            group,
            groups.DELETE_GROUPS,
            groups.DeleteGroupsRequest(groups_names=(group,)),
            code_of=lambda told: told.results[0].error_code,
        )
        told = answer.results[0]
        if told.error_code:
            why = sentence(told.error_code, told.error_message)
            print(f"group {group} was not deleted: {why}", file=sys.stderr)
            code = EXIT_FAILED
        else:
            done.append(f"'{group}'")
    if done:
        print(f"Deletion of requested consumer groups ({', '.join(done)}) was successful.")
    return code


async def _reset_offsets(cluster: Cluster, options: argparse.Namespace) -> int:
    rows: list[NewOffset] = []
    for group in await _meant(cluster, options):
        state = (await _described(cluster, group)).group_state
        if state not in INACTIVE:
            raise CliError(
                f"offsets can only be reset while a group is inactive, but {group} is {state}: "
                "stop its members first"
            )
        new = await new_offsets(cluster, group, options)
        if options.execute and new:
            offsets = {(entry.topic, entry.partition): entry.offset for entry in new}
            await commit_offsets(cluster, group, offsets)
        rows += new
    cells = [(row.group, row.topic, row.partition, row.offset) for row in rows]
    headings = ("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")
    write_table(fitted(headings, cells), cells, sys.stdout)
    if not options.execute:
        print("Nothing was changed: pass --execute to do it.", file=sys.stderr)
    return EXIT_OK


_VERBS: Final[dict[str, Verb]] = {
    "list": _list,
    "describe": _describe,
    "delete": _delete,
    "reset-offsets": _reset_offsets,
}
