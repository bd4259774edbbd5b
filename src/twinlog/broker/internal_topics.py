"""The internal topics that coordinators keep their state in: partition counts and settings."""

from collections.abc import Mapping
from dataclasses import dataclass

from twinlog.cluster.facts import CONSUMER_OFFSETS, MIRROR_STATE
from twinlog.config.coordinators import OFFSETS_TOPIC_NUM_PARTITIONS, OFFSETS_TOPIC_SEGMENT_BYTES
from twinlog.config.declare import Settings
from twinlog.config.mirror_broker import MIRROR_STATE_TOPIC_NUM_PARTITIONS
from twinlog.model.ids import TopicName


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """What an internal topic is made with, on first need."""

    name: TopicName
    partition_count: int
    config: Mapping[str, str]


def offsets_topic(settings: Settings) -> InternalTopic:
    """Give ``__consumer_offsets``."""
    return InternalTopic(
        CONSUMER_OFFSETS,
        settings[OFFSETS_TOPIC_NUM_PARTITIONS],
        {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(settings[OFFSETS_TOPIC_SEGMENT_BYTES]),
        },
    )


def mirror_state_topic(settings: Settings) -> InternalTopic:
    """Give ``__mirror_state``."""
    return InternalTopic(
        MIRROR_STATE,
        settings[MIRROR_STATE_TOPIC_NUM_PARTITIONS],
        {"cleanup.policy": "compact", "compression.type": "producer"},
    )
