"""Reads from a source what is synced on its own clock: topics, their settings, group offsets."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from twinlog.broker.mirrors.permissions import DESCRIBE, lacking
from twinlog.broker.mirrors.permissions import DESCRIBE_CONFIGS as DESCRIBE_CONFIGS_OF
from twinlog.broker.mirrors.source import SourceCluster
from twinlog.mirroring.group_sync import SourceOffset
from twinlog.mirroring.topic_sync import SeenTopic
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import BrokerId, LeaderEpoch, Offset, TopicName, TopicPartition
from twinlog.network.client import BrokerConnection
from twinlog.network.peer_metadata import PeerTopic
from twinlog.network.peers import raise_for
from twinlog.wire.messages.configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    ResourceToDescribe,
)
from twinlog.wire.messages.group_offsets import (
    OFFSET_FETCH,
    OffsetFetchedPartition,
    OffsetFetchedPartitions,
    OffsetFetchGroup,
    OffsetFetchRequest,
)
from twinlog.wire.messages.groups import LIST_GROUPS, ListGroupsRequest

TOPIC_RESOURCE: Final = 2
DYNAMIC_TOPIC_CONFIG: Final = 1
TOPICS_PER_REQUEST_MAX: Final = 500
GROUPS_FORM_SINCE: Final = 8
NAMES_UNTIL: Final = 9
"""OffsetFetch v10 names topics by id; names are what both clusters have in common."""
CONSUMER_PROTOCOL: Final = "consumer"
_WITHOUT_OFFSETS: Final = (
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
)


def seen_topics(told: Iterable[PeerTopic]) -> dict[TopicName, SeenTopic]:
    """Give the topics that the source could describe."""
    return {
        topic.name: SeenTopic(topic.name, topic.topic_id, len(topic.partitions))
        for topic in told
        if not topic.error_code and topic.partitions
    }


async def tell_hidden_from_gone(
    source: SourceCluster, suspects: Mapping[TopicName, str], seen: Collection[TopicName]
) -> tuple[dict[TopicName, str], dict[TopicName, str]]:
    """Give the suspects that are gone indeed, and what to grant for those that are only hidden.

    A list of all topics leaves out what this mirror may not describe; asked for by its name, such
    a topic is refused and not unknown. Raises PeerUnavailable, ApiError.
    """
    unseen = [name for name in suspects if name not in seen]
    told = await source.peers.refresh(unseen) if unseen else ()
    codes = {topic.name: topic.error_code for topic in told}
    hidden: dict[TopicName, str] = {}
    gone = dict(suspects)
    for name, code in codes.items():
        needs = lacking(source.security, code, DESCRIBE, name)
        if needs:
            hidden[name] = f"{name}: {needs}"
        if needs or not code:
            gone.pop(name, None)
    return gone, hidden


Overrides = dict[TopicName, dict[str, str]]
Refusals = dict[TopicName, ApiError]


async def told_overrides(
    source: SourceCluster, topics: Iterable[TopicName]
) -> tuple[Overrides, Refusals]:
    """Give the settings that were set for each topic itself, and why those of some are not told.

    Raises PeerUnavailable, and ApiError when no version is common.
    """
    names = list(topics)
    found: Overrides = {}
    refused: Refusals = {}
    for first in range(0, len(names), TOPICS_PER_REQUEST_MAX):
        request = DescribeConfigsRequest(
            resources=tuple(
                ResourceToDescribe(resource_type=TOPIC_RESOURCE, resource_name=name)
                for name in names[first : first + TOPICS_PER_REQUEST_MAX]
            )
        )
        response = await source.peers.ask_any(DESCRIBE_CONFIGS, request)
        for result in response.results:
            name = TopicName(result.resource_name)
            if result.error_code in _WITHOUT_OFFSETS:
                continue
            try:
                code, told = result.error_code, result.error_message
                why = lacking(source.security, code, DESCRIBE_CONFIGS_OF, name) or told
                raise_for(code, f"settings of {name}", why)
            except ApiError as error:
                refused[name] = error
                continue
            found[name] = {
                config.name: config.value
                for config in result.configs
                if config.config_source == DYNAMIC_TOPIC_CONFIG and config.value is not None
            }
    return found, refused


async def consumer_groups(source: SourceCluster) -> set[str]:
    """Give the ids of all consumer groups, asked of every broker. Raises as above."""
    groups: set[str] = set()
    for node in tuple(source.peers.nodes):
        connection = await source.peers.connection_to(node)
        response = await connection.call(
            LIST_GROUPS, ListGroupsRequest(), timeout_s=source.request_timeout_s
        )
        why = lacking(source.security, response.error_code, DESCRIBE)
        raise_for(response.error_code, f"groups of source broker {node}", why)
        groups |= {
            group.group_id
            for group in response.groups
            if group.protocol_type in (CONSUMER_PROTOCOL, "")
        }
    return groups


async def group_offsets(
    source: SourceCluster, group: str, coordinator: BrokerId
) -> dict[TopicPartition, SourceOffset]:
    """Give all offsets that a group has committed. Raises PeerUnavailable, ApiError."""
    connection = await source.peers.connection_to(coordinator)
    version = min(connection.version_of(OFFSET_FETCH), NAMES_UNTIL)
    if version >= GROUPS_FORM_SINCE:
        return await _offsets_by_group(source, connection, group, version)
    request = OffsetFetchRequest(group_id=group, topics=None)
    response = await connection.call(
        OFFSET_FETCH, request, timeout_s=source.request_timeout_s, version=version
    )
    why = lacking(source.security, response.error_code, DESCRIBE, group)
    raise_for(response.error_code, f"offsets of group {group}", why)
    return {
        TopicPartition(TopicName(topic.name), partition.partition_index): _offset(partition)
        for topic in response.topics
        for partition in topic.partitions
        if not partition.error_code
    }


async def _offsets_by_group(
    source: SourceCluster, connection: BrokerConnection, group: str, version: int
) -> dict[TopicPartition, SourceOffset]:
    request = OffsetFetchRequest(groups=(OffsetFetchGroup(group_id=group, topics=None),))
    response = await connection.call(
        OFFSET_FETCH, request, timeout_s=source.request_timeout_s, version=version
    )
    found: dict[TopicPartition, SourceOffset] = {}
    for fetched in response.groups:
        if fetched.error_code in _WITHOUT_OFFSETS:
            continue
        why = lacking(source.security, fetched.error_code, DESCRIBE, group)
        raise_for(fetched.error_code, f"offsets of group {group}", why)
        for topic in fetched.topics:
            for partition in topic.partitions:
                if not partition.error_code:
                    of = TopicPartition(TopicName(topic.name), partition.partition_index)
                    found[of] = _offset(partition)
    return found


def _offset(told: OffsetFetchedPartition | OffsetFetchedPartitions) -> SourceOffset:
    return SourceOffset(
        Offset(told.committed_offset),
        LeaderEpoch(told.committed_leader_epoch),
        told.metadata or "",
    )
