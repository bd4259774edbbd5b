"""The groups of a cluster and their committed offsets, read and written as an ordinary client."""

from collections.abc import Mapping
from dataclasses import dataclass

from twinlog.cli.cluster import Cluster
from twinlog.cli.failures import CliError, expect_ok
from twinlog.model.errors import ErrorCode
from twinlog.wire.messages import group_offsets as messages
from twinlog.wire.messages.groups import LIST_GROUPS, ListedGroup, ListGroupsRequest

Offsets = dict[tuple[str, int], int]
"""Offsets by topic and partition."""


@dataclass(frozen=True, slots=True)
class _Fetched:
    """One partition of an OffsetFetch answer, whatever its version."""

    topic: str
    partition: int
    offset: int
    error_code: int


async def every_group(cluster: Cluster) -> list[ListedGroup]:
    """Give the groups of all brokers, by name; each keeps its own."""
    found: dict[str, ListedGroup] = {}
    for broker in (await cluster.metadata([])).brokers:
        answer = await cluster.ask_node(broker.node_id, LIST_GROUPS, ListGroupsRequest())
        expect_ok(answer.error_code, None, doing=f"broker {broker.node_id} cannot list its groups")
        found |= {group.group_id: group for group in answer.groups}
    return [found[name] for name in sorted(found)]


async def committed_offsets(cluster: Cluster, group: str) -> Offsets:
    """Give every offset that ``group`` has committed."""
    answer = await cluster.ask_coordinator(
        group,
        messages.OFFSET_FETCH,
        messages.OffsetFetchRequest(
            group_id=group,
            topics=None,
            groups=(messages.OffsetFetchGroup(group_id=group, topics=None),),
        ),
        code_of=_fetch_code,
    )
    code = _fetch_code(answer)
    if code == ErrorCode.GROUP_ID_NOT_FOUND:
        return {}
    expect_ok(code, None, doing=f"the offsets of group {group} cannot be read")
    found: Offsets = {}
    for entry in _all_of(answer):
        doing = f"group {group}, {entry.topic}-{entry.partition}"
        expect_ok(entry.error_code, None, doing=doing)
        if entry.offset >= 0:
            found[entry.topic, entry.partition] = entry.offset
    return found


def _all_of(answer: messages.OffsetFetchResponse) -> list[_Fetched]:
    old = [
        _Fetched(t.name, p.partition_index, p.committed_offset, p.error_code)
        for t in answer.topics
        for p in t.partitions
    ]
    new = [
        _Fetched(t.name, p.partition_index, p.committed_offset, p.error_code)
        for g in answer.groups
        for t in g.topics
        for p in t.partitions
    ]
    return old + new


async def commit_offsets(
    cluster: Cluster, group: str, offsets: Mapping[tuple[str, int], int]
) -> None:
    """Commit for a group without members; CliError says so when it has some."""
    topics = sorted({topic for topic, _ in offsets})
    asked = tuple(
        messages.OffsetCommitTopic(
            name=topic,
            partitions=tuple(
                messages.OffsetCommitPartition(
                    partition_index=partition, committed_offset=offset, committed_metadata=""
                )
                for (name, partition), offset in sorted(offsets.items())
                if name == topic
            ),
        )
        for topic in topics
    )
    answer = await cluster.ask_coordinator(
        group,
        messages.OFFSET_COMMIT,
        messages.OffsetCommitRequest(group_id=group, topics=asked),
        code_of=_commit_code,
    )
    for told in answer.topics:
        for partition in told.partitions:
            if partition.error_code in (
                ErrorCode.UNKNOWN_MEMBER_ID,
                ErrorCode.ILLEGAL_GENERATION,
                ErrorCode.REBALANCE_IN_PROGRESS,
            ):
                raise CliError(f"group {group} has active members: stop them first")
            doing = f"offset of {told.name}-{partition.partition_index} was not committed"
            expect_ok(partition.error_code, None, doing=doing)


def _fetch_code(answer: messages.OffsetFetchResponse) -> int:
    return answer.groups[0].error_code if answer.groups else answer.error_code


def _commit_code(answer: messages.OffsetCommitResponse) -> int:
    codes = (p.error_code for topic in answer.topics for p in topic.partitions if p.error_code)
    return next(codes, ErrorCode.NONE)
