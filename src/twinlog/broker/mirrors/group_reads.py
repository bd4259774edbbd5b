"""Reads from a source its consumer groups and what they have committed, many at a time."""

import asyncio
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from twinlog.broker.mirrors.permissions import DESCRIBE, lacking, with_lacking
from twinlog.broker.mirrors.source import SourceCluster
from twinlog.mirroring.group_sync import SourceOffset
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import BrokerId, LeaderEpoch, Offset, TopicName, TopicPartition
from twinlog.network.client import BrokerConnection
from twinlog.network.exchange import PeerUnavailable
from twinlog.network.peers import raise_for
from twinlog.wire.messages.group_offsets import (
    OFFSET_FETCH,
    OffsetFetchedPartition,
    OffsetFetchedPartitions,
    OffsetFetchGroup,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from twinlog.wire.messages.groups import LIST_GROUPS, ListGroupsRequest

GROUPS_PER_REQUEST_MAX: Final = 100
MANY_SINCE: Final = 8
NAMES_UNTIL: Final = 9
"""OffsetFetch v10 names topics by id; names are what both clusters have in common."""
CONSUMER_PROTOCOL: Final = "consumer"
_WITHOUT_OFFSETS: Final = (
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
)


@dataclass(slots=True)
class GroupAtSource:
    """What a group has committed; ``untold`` is where the source gave an error instead."""

    offsets: dict[TopicPartition, SourceOffset] = field(default_factory=dict)
    untold: set[TopicPartition] = field(default_factory=set)


Found = dict[str, GroupAtSource | ApiError]
"""By group: what it has committed, or why that is not known."""


async def consumer_groups(source: SourceCluster) -> tuple[set[str], list[str]]:
    """Give the ids of all consumer groups, and why some brokers did not tell theirs.

    A broker that cannot be asked hides its own groups only; it may be gone for good, and
    coordinates nothing then: the next round asks those that the source still has. Raises
    PeerUnavailable, ApiError when no broker tells any.
    """
    nodes = tuple(source.peers.nodes)
    # Side by side: one that hangs is waited for once, not before each of the others.
    told = await asyncio.gather(*(_groups_or_failure(source, node) for node in nodes))
    failures = [one for one in told if isinstance(one, Exception)]
    groups = {group for one in told if not isinstance(one, Exception) for group in one}
    if any(isinstance(failure, PeerUnavailable) for failure in failures):
        await source.peers.refresh(())
    if failures and len(failures) == len(nodes):
        raise failures[0]
    return groups, [str(failure) for failure in failures]


async def _groups_or_failure(
    source: SourceCluster, node: BrokerId
) -> set[str] | PeerUnavailable | ApiError:
    try:
        return await _groups_at(source, node)
    except (PeerUnavailable, ApiError) as failure:
        return failure


async def _groups_at(source: SourceCluster, node: BrokerId) -> set[str]:
    connection = await source.peers.connection_to(node)
    response = await connection.call(
        LIST_GROUPS, ListGroupsRequest(), timeout_s=source.request_timeout_s
    )
    why = lacking(source.security, response.error_code, DESCRIBE)
    raise_for(response.error_code, f"groups of source broker {node}", why)
    return {
        group.group_id
        for group in response.groups
        if group.protocol_type in (CONSUMER_PROTOCOL, "")
    }


async def offsets_of_groups(source: SourceCluster, groups: Collection[str]) -> Found:
    """Give what each group has committed, or why that is not known.

    A coordinator that cannot be reached concerns its own groups only. Raises PeerUnavailable when
    none of the source's brokers can be asked for the coordinators.
    """
    found: Found = {}
    homes: dict[BrokerId, list[str]] = {}
    for group, home in (await source.peers.coordinators_of(groups)).items():
        if isinstance(home, ApiError):
            why = with_lacking(home.why, source.security, home.code, DESCRIBE, group)
            found[group] = ApiError(home.code, why)
        else:
            homes.setdefault(home, []).append(group)
    told = await asyncio.gather(
        *(_committed_at(source, node, its_own) for node, its_own in homes.items())
    )
    for some in told:
        found |= some
    return found


async def _committed_at(source: SourceCluster, node: BrokerId, groups: list[str]) -> Found:
    """Ask one coordinator for its own groups, and no more once it cannot be asked."""
    found: Found = {}
    failed: ApiError | None = None
    for some in _parts(groups):
        if failed is None:
            try:
                found |= await _committed(source, node, some)
                continue
            except PeerUnavailable as failure:
                failed = ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(failure))
        found |= dict.fromkeys(some, failed)
    return found


async def _committed(source: SourceCluster, node: BrokerId, groups: list[str]) -> Found:
    connection = await source.peers.connection_to(node)
    version = min(connection.version_of(OFFSET_FETCH), NAMES_UNTIL)
    if version < MANY_SINCE:
        return {group: await _of_one(source, connection, group, version) for group in groups}
    request = OffsetFetchRequest(
        groups=tuple(OffsetFetchGroup(group_id=group, topics=None) for group in groups)
    )
    response = await _ask(source, connection, request, version)
    found: Found = {
        group: ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"offsets of group {group}: not told")
        for group in groups
    }
    for told in response.groups:
        if told.group_id not in found:
            continue  # nobody asked for it
        rows = ((t.name, partition) for t in told.topics for partition in t.partitions)
        found[told.group_id] = _group(source, told.group_id, told.error_code, rows)
    return found


async def _of_one(
    source: SourceCluster, connection: BrokerConnection, group: str, version: int
) -> GroupAtSource | ApiError:
    request = OffsetFetchRequest(group_id=group, topics=None)
    response = await _ask(source, connection, request, version)
    rows = ((t.name, partition) for t in response.topics for partition in t.partitions)
    return _group(source, group, response.error_code, rows)


async def _ask(
    source: SourceCluster, connection: BrokerConnection, request: OffsetFetchRequest, version: int
) -> OffsetFetchResponse:
    return await connection.call(
        OFFSET_FETCH, request, timeout_s=source.request_timeout_s, version=version
    )


def _group(
    source: SourceCluster,
    group: str,
    error_code: int,
    rows: Iterable[tuple[str, OffsetFetchedPartition | OffsetFetchedPartitions]],
) -> GroupAtSource | ApiError:
    made = GroupAtSource()
    if error_code in _WITHOUT_OFFSETS:
        return made
    try:
        why = lacking(source.security, error_code, DESCRIBE, group)
        raise_for(error_code, f"offsets of group {group}", why)
    except ApiError as error:
        return error
    for topic, told in rows:
        of = TopicPartition(TopicName(topic), told.partition_index)
        if told.error_code:
            made.untold.add(of)
            continue
        made.offsets[of] = SourceOffset(
            Offset(told.committed_offset),
            LeaderEpoch(told.committed_leader_epoch),
            told.metadata or "",
        )
    return made


def _parts(groups: list[str]) -> Iterator[list[str]]:
    for first in range(0, len(groups), GROUPS_PER_REQUEST_MAX):
        yield groups[first : first + GROUPS_PER_REQUEST_MAX]
