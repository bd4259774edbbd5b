"""Reads from a source what is synced on its own clock: topics, their settings, group offsets."""

from collections.abc import Iterable
from typing import Final

from twinlog.broker.mirrors.source import SourceCluster
from twinlog.mirroring.group_sync import SourceOffset
from twinlog.mirroring.topic_sync import SeenTopic
from twinlog.model.errors import ErrorCode
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


async def topic_overrides(
    source: SourceCluster, topics: Iterable[TopicName]
) -> dict[TopicName, dict[str, str]]:
    """Give the settings that were set for each topic itself. Raises PeerUnavailable, ApiError."""
    names = list(topics)
    found: dict[TopicName, dict[str, str]] = {}
    for first in range(0, len(names), TOPICS_PER_REQUEST_MAX):
        request = DescribeConfigsRequest(
            resources=tuple(
                ResourceToDescribe(resource_type=TOPIC_RESOURCE, resource_name=name)
                for name in names[first : first + TOPICS_PER_REQUEST_MAX]
            )
        )
        response = await source.peers.ask_any(DESCRIBE_CONFIGS, request)
        for result in response.results:
            if result.error_code in _WITHOUT_OFFSETS:
                continue
            raise_for(
                result.error_code, f"settings of {result.resource_name}", result.error_message
            )
            found[TopicName(result.resource_name)] = {
                config.name: config.value
                for config in result.configs
                if config.config_source == DYNAMIC_TOPIC_CONFIG and config.value is not None
            }
    return found


async def consumer_groups(source: SourceCluster) -> set[str]:
    """Give the ids of all consumer groups, asked of every broker. Raises as above."""
    groups: set[str] = set()
    for node in tuple(source.peers.nodes):
        connection = await source.peers.connection_to(node)
        response = await connection.call(
            LIST_GROUPS, ListGroupsRequest(), timeout_s=source.request_timeout_s
        )
        raise_for(response.error_code, f"groups of source broker {node}")
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
    raise_for(response.error_code, f"offsets of group {group}")
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
        raise_for(fetched.error_code, f"offsets of group {group}")
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
