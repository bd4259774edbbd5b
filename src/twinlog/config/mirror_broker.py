"""The settings that a broker has for all of its mirrors.

The names are KIP-1279's, but for ``mirror.audit.log``.
"""

from typing import Any, Final

from twinlog.config.checks import at_least, between
from twinlog.config.declare import Setting, Settings, Update
from twinlog.config.kinds import LONG_MAX, Kind

MIRROR_COORDINATOR_WRITE_TIMEOUT_MS: Final = Setting(
    "mirror.coordinator.write.timeout.ms",
    Kind.INT,
    5_000,
    "How long a record of __mirror_state may wait for its commit, before it is tried again.",
    at_least(1),
)
MIRROR_COORDINATOR_APPEND_LINGER_MS: Final = Setting(
    "mirror.coordinator.append.linger.ms",
    Kind.INT,
    10,
    "How long records of __mirror_state wait to be written together; 0 writes each by itself.",
    at_least(0),
)
MIRROR_COORDINATOR_LOAD_BUFFER_SIZE: Final = Setting(
    "mirror.coordinator.load.buffer.size",
    Kind.INT,
    5 << 20,
    "Bytes of __mirror_state that are read at once when it is loaded.",
    at_least(1),
    is_idle=True,
)
MIRROR_COORDINATOR_THREADS: Final = Setting(
    "mirror.coordinator.threads",
    Kind.INT,
    1,
    "Threads of the mirror coordinator; here it is one event loop's work, whatever is set.",
    at_least(1),
    is_idle=True,
)
MIRROR_STATE_TOPIC_NUM_PARTITIONS: Final = Setting(
    "mirror.state.topic.num.partitions",
    Kind.INT,
    50,
    "Partitions of __mirror_state. Never change it once the topic exists.",
    at_least(1),
)
MIRROR_STATE_TOPIC_REPLICATION_FACTOR: Final = Setting(
    "mirror.state.topic.replication.factor",
    Kind.SHORT,
    3,
    "Replicas of __mirror_state; as many as there are brokers if there are fewer.",
    at_least(1),
    is_idle=True,
)
MIRROR_NUM_REPLICA_FETCHERS: Final = Setting(
    "mirror.num.replica.fetchers",
    Kind.INT,
    1,
    "Fetchers for each mirror and source broker.",
    at_least(1),
    Update.CLUSTER_WIDE,
)
MIRROR_METADATA_REFRESH_INTERVAL_MS: Final = Setting(
    "mirror.metadata.refresh.interval.ms",
    Kind.LONG,
    60_000,
    "How often the source's topics and their settings are looked at; 0 only when asked.",
    at_least(0),
    Update.CLUSTER_WIDE,
)
MIRROR_FAILED_RETRY_INITIAL_BACKOFF_MS: Final = Setting(
    "mirror.failed.retry.initial.backoff.ms",
    Kind.LONG,
    100,
    "How long a failed partition waits before its first retry.",
    at_least(1),
    Update.CLUSTER_WIDE,
)
MIRROR_FAILED_RETRY_MAX_BACKOFF_MS: Final = Setting(
    "mirror.failed.retry.max.backoff.ms",
    Kind.LONG,
    300_000,
    "How long it waits at most.",
    at_least(1),
    Update.CLUSTER_WIDE,
)
MIRROR_FAILED_RETRY_MAX_ATTEMPTS: Final = Setting(
    "mirror.failed.retry.max.attempts",
    Kind.INT,
    20,
    "How often it is retried; 0 never.",
    between(0, 32_767),
    Update.CLUSTER_WIDE,
)
MIRROR_REPLICATION_THROTTLED_RATE: Final = Setting(
    "mirror.replication.throttled.rate",
    Kind.LONG,
    LONG_MAX,
    "Bytes a second that throttled mirror partitions fetch together on a broker.",
    at_least(0),
    Update.PER_BROKER,
)
MIRROR_AUDIT_LOG: Final[Setting[str | None]] = Setting(
    "mirror.audit.log",
    Kind.STRING,
    None,
    "A file for what is asked of mirrors and how their partitions change state, one JSON object "
    "a line, beside the ordinary log; up to ten files of 16 MB. (Not a setting of the proposal.)",
)

BROKER_SETTINGS: Final[tuple[Setting[Any], ...]] = (
    MIRROR_COORDINATOR_THREADS,
    MIRROR_COORDINATOR_WRITE_TIMEOUT_MS,
    MIRROR_COORDINATOR_APPEND_LINGER_MS,
    MIRROR_COORDINATOR_LOAD_BUFFER_SIZE,
    MIRROR_STATE_TOPIC_NUM_PARTITIONS,
    MIRROR_STATE_TOPIC_REPLICATION_FACTOR,
    MIRROR_NUM_REPLICA_FETCHERS,
    MIRROR_METADATA_REFRESH_INTERVAL_MS,
    MIRROR_FAILED_RETRY_INITIAL_BACKOFF_MS,
    MIRROR_FAILED_RETRY_MAX_BACKOFF_MS,
    MIRROR_FAILED_RETRY_MAX_ATTEMPTS,
    MIRROR_REPLICATION_THROTTLED_RATE,
    MIRROR_AUDIT_LOG,
)


def write_timeout_s(settings: Settings) -> float:
    """Give ``mirror.coordinator.write.timeout.ms`` in seconds."""
    return settings[MIRROR_COORDINATOR_WRITE_TIMEOUT_MS] / 1000
