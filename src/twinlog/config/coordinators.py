"""Broker settings: groups, their offsets, transactions and producers."""

from typing import Any, Final

from twinlog.config.checks import at_least
from twinlog.config.declare import Setting, Settings, Update
from twinlog.config.kinds import INT_MAX, Kind

GROUP_MIN_SESSION_TIMEOUT_MS: Final = Setting(
    "group.min.session.timeout.ms",
    Kind.INT,
    6_000,
    "The shortest session timeout a member may ask for.",
    at_least(0),
)
GROUP_MAX_SESSION_TIMEOUT_MS: Final = Setting(
    "group.max.session.timeout.ms",
    Kind.INT,
    1_800_000,
    "The longest session timeout a member may ask for.",
    at_least(0),
)
GROUP_INITIAL_REBALANCE_DELAY_MS: Final = Setting(
    "group.initial.rebalance.delay.ms",
    Kind.INT,
    3_000,
    "How long an empty group waits for more members before its first rebalance.",
    at_least(0),
)
GROUP_MAX_SIZE: Final = Setting(
    "group.max.size",
    Kind.INT,
    INT_MAX,
    "The most members of a group.",
    at_least(1),
)
OFFSETS_TOPIC_NUM_PARTITIONS: Final = Setting(
    "offsets.topic.num.partitions",
    Kind.INT,
    50,
    "Partitions of __consumer_offsets. Never change it once the topic exists.",
    at_least(1),
)
OFFSETS_TOPIC_REPLICATION_FACTOR: Final = Setting(
    "offsets.topic.replication.factor",
    Kind.SHORT,
    3,
    "Replicas of __consumer_offsets; as many as there are brokers if there are fewer.",
    at_least(1),
    is_idle=True,
)
OFFSETS_TOPIC_SEGMENT_BYTES: Final = Setting(
    "offsets.topic.segment.bytes",
    Kind.INT,
    100 << 20,
    "Segment size of __consumer_offsets; small ones load faster.",
    at_least(1),
)
OFFSETS_RETENTION_MINUTES: Final = Setting(
    "offsets.retention.minutes",
    Kind.INT,
    10_080,
    "How long the offsets of a group without members are kept.",
    at_least(1),
)
OFFSETS_RETENTION_CHECK_INTERVAL_MS: Final = Setting(
    "offsets.retention.check.interval.ms",
    Kind.LONG,
    600_000,
    "How often it is looked for offsets to forget.",
    at_least(1),
)
OFFSETS_COMMIT_TIMEOUT_MS: Final = Setting(
    "offsets.commit.timeout.ms",
    Kind.INT,
    5_000,
    "How long a commit may wait for the replicas.",
    at_least(1),
)
OFFSET_METADATA_MAX_BYTES: Final = Setting(
    "offset.metadata.max.bytes",
    Kind.INT,
    4_096,
    "The longest text that a commit may carry.",
    at_least(0),
)
TRANSACTION_STATE_LOG_NUM_PARTITIONS: Final = Setting(
    "transaction.state.log.num.partitions",
    Kind.INT,
    50,
    "Partitions of __transaction_state. Never change it once the topic exists.",
    at_least(1),
    is_idle=True,
)
TRANSACTION_STATE_LOG_REPLICATION_FACTOR: Final = Setting(
    "transaction.state.log.replication.factor",
    Kind.SHORT,
    3,
    "Replicas of __transaction_state; as many as there are brokers if there are fewer.",
    at_least(1),
    is_idle=True,
)
TRANSACTION_MAX_TIMEOUT_MS: Final = Setting(
    "transaction.max.timeout.ms",
    Kind.INT,
    900_000,
    "The longest transaction timeout a producer may ask for.",
    at_least(1),
    is_idle=True,
)
TRANSACTIONAL_ID_EXPIRATION_MS: Final = Setting(
    "transactional.id.expiration.ms",
    Kind.INT,
    604_800_000,
    "How long an unused transactional id is remembered.",
    at_least(1),
    is_idle=True,
)
PRODUCER_ID_EXPIRATION_MS: Final = Setting(
    "producer.id.expiration.ms",
    Kind.INT,
    86_400_000,
    "How long a partition remembers a producer that writes no more.",
    at_least(1),
    Update.CLUSTER_WIDE,
)
PRODUCER_ID_EXPIRATION_CHECK_INTERVAL_MS: Final = Setting(
    "producer.id.expiration.check.interval.ms",
    Kind.INT,
    600_000,
    "How often it is looked for producers to forget.",
    at_least(1),
)
MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS: Final = Setting(
    "max.incremental.fetch.session.cache.slots",
    Kind.INT,
    1_000,
    "Fetch sessions kept; beyond them a consumer sends whole requests.",
    at_least(0),
)
FETCH_MAX_BYTES: Final = Setting(
    "fetch.max.bytes",
    Kind.INT,
    57_671_680,
    "The most bytes of records in one answer to a fetch.",
    at_least(1_024),
)
MAX_REQUEST_PARTITION_SIZE_LIMIT: Final = Setting(
    "max.request.partition.size.limit",
    Kind.INT,
    2_000,
    "The most partitions in one answer of DescribeTopicPartitions.",
    at_least(1),
    is_idle=True,
)

SETTINGS: Final[tuple[Setting[Any], ...]] = (
    GROUP_MIN_SESSION_TIMEOUT_MS,
    GROUP_MAX_SESSION_TIMEOUT_MS,
    GROUP_INITIAL_REBALANCE_DELAY_MS,
    GROUP_MAX_SIZE,
    OFFSETS_TOPIC_NUM_PARTITIONS,
    OFFSETS_TOPIC_REPLICATION_FACTOR,
    OFFSETS_TOPIC_SEGMENT_BYTES,
    OFFSETS_RETENTION_MINUTES,
    OFFSETS_RETENTION_CHECK_INTERVAL_MS,
    OFFSETS_COMMIT_TIMEOUT_MS,
    OFFSET_METADATA_MAX_BYTES,
    TRANSACTION_STATE_LOG_NUM_PARTITIONS,
    TRANSACTION_STATE_LOG_REPLICATION_FACTOR,
    TRANSACTION_MAX_TIMEOUT_MS,
    TRANSACTIONAL_ID_EXPIRATION_MS,
    PRODUCER_ID_EXPIRATION_MS,
    PRODUCER_ID_EXPIRATION_CHECK_INTERVAL_MS,
    MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS,
    FETCH_MAX_BYTES,
    MAX_REQUEST_PARTITION_SIZE_LIMIT,
)


def session_timeouts_fit(settings: Settings) -> str | None:
    """Check that the shortest session timeout is not longer than the longest."""
    shortest = settings[GROUP_MIN_SESSION_TIMEOUT_MS]
    longest = settings[GROUP_MAX_SESSION_TIMEOUT_MS]
    if shortest <= longest:
        return None
    return (
        f"group.min.session.timeout.ms={shortest} is above "
        f"group.max.session.timeout.ms={longest}: lower the first or raise the second"
    )
