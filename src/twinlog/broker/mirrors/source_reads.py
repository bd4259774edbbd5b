"""Reads from a source what is synced on its own clock: topics and their settings."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from twinlog.broker.mirrors.permissions import DESCRIBE, lacking
from twinlog.broker.mirrors.permissions import DESCRIBE_CONFIGS as DESCRIBE_CONFIGS_OF
from twinlog.broker.mirrors.source import SourceCluster
from twinlog.mirroring.topic_sync import SeenTopic
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import TopicName
from twinlog.network.peer_metadata import PeerTopic
from twinlog.network.peers import raise_for
from twinlog.wire.messages.configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    ResourceToDescribe,
)

TOPIC_RESOURCE: Final = 2
DYNAMIC_TOPIC_CONFIG: Final = 1
TOPICS_PER_REQUEST_MAX: Final = 500
_GONE: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


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
        if code not in _GONE:  # it is there, whatever else the source says of it
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
            if result.error_code in _GONE:
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
