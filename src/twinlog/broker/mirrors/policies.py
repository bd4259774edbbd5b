"""What the settings of a mirror, of this broker and of a topic decide for its partitions."""

from collections.abc import Iterator
from dataclasses import replace

from twinlog.cluster.facts import TopicFact
from twinlog.config import mirror as keys
from twinlog.config import mirror_broker as broker_keys
from twinlog.config.declare import Settings
from twinlog.config.mirror_start import EARLIEST, MIRROR_START_OFFSET_SPEC, start_timestamp_ms
from twinlog.config.topic import (
    MIRROR_REPLICATION_THROTTLED_REPLICAS,
    MIRROR_SUPPORT_UNCLEAN_LEADER_ELECTION,
    topic_settings,
)
from twinlog.mirroring.policy import GapPolicy, MirrorPolicy, RetryPolicy, StartSpec
from twinlog.mirroring.throttle import is_throttled
from twinlog.model.ids import BrokerId, TopicPartition


def policy_of(
    topic: TopicFact, mirror: Settings, broker: Settings, *, is_first: bool
) -> MirrorPolicy:
    """Give the policy of partitions; the first of a topic begin where the operator wants."""
    of_topic = topic_settings(topic.config, broker)
    policy = MirrorPolicy(
        gap=GapPolicy(mirror[keys.MIRROR_GAP_POLICY]),
        supports_unclean_election=of_topic[MIRROR_SUPPORT_UNCLEAN_LEADER_ELECTION],
        failed=RetryPolicy(
            backoff_ms_min=broker[broker_keys.MIRROR_FAILED_RETRY_INITIAL_BACKOFF_MS],
            backoff_ms_max=broker[broker_keys.MIRROR_FAILED_RETRY_MAX_BACKOFF_MS],
            attempts_max=broker[broker_keys.MIRROR_FAILED_RETRY_MAX_ATTEMPTS],
        ),
    )
    spec: str = mirror[MIRROR_START_OFFSET_SPEC]
    if is_first and spec != EARLIEST:
        policy = replace(policy, start=StartSpec(spec, start_timestamp_ms(spec)))
    return policy


def throttled_partitions(
    topic: TopicFact, broker: Settings, broker_id: BrokerId
) -> Iterator[TopicPartition]:
    """Give the partitions of a topic that are fetched at the throttled rate here."""
    if MIRROR_REPLICATION_THROTTLED_REPLICAS.name not in topic.config:
        return
    replicas: tuple[str, ...] = topic_settings(topic.config, broker)[
        MIRROR_REPLICATION_THROTTLED_REPLICAS
    ]
    for partition in range(len(topic.partitions)):
        if is_throttled(replicas, partition, broker_id):
            yield TopicPartition(topic.name, partition)
