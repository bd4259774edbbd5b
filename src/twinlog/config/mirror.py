"""Mirror settings: those of one mirror, and those that the broker has for all of them.

The names are KIP-1279's. ``mirror.gap.policy`` and ``groups.sync.interval.ms`` are ours.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from twinlog.config.checks import ANY, ENDPOINTS, PATTERNS, at_least, between, one_of
from twinlog.config.declare import Setting, Settings, SettingSet, Source, Update
from twinlog.config.foreign import is_foreign_to_a_mirror
from twinlog.config.kinds import LONG_MAX, Kind
from twinlog.model.errors import SettingsError

BOOTSTRAP_SERVERS: Final[Setting[tuple[str, ...]]] = Setting(
    "bootstrap.servers",
    Kind.LIST,
    (),
    "Brokers of the source cluster, as host:port; the others are learnt from them. Required.",
    ENDPOINTS,
    Update.CLUSTER_WIDE,
)
SOURCE_CLUSTER_ID: Final[Setting[str | None]] = Setting(
    "source.cluster.id",
    Kind.STRING,
    None,
    "The id of the source cluster, noted at the first contact: another cluster that later "
    "answers in its place is not mirrored.",
)
SECURITY_PROTOCOL: Final = Setting(
    "security.protocol",
    Kind.STRING,
    "PLAINTEXT",
    "What is spoken to the source; PLAINTEXT so far.",
    one_of("PLAINTEXT"),
    Update.CLUSTER_WIDE,
)
REQUEST_TIMEOUT_MS: Final = Setting(
    "request.timeout.ms",
    Kind.INT,
    30_000,
    "How long the source may take to answer.",
    at_least(1),
    Update.CLUSTER_WIDE,
)
SOCKET_CONNECTION_SETUP_TIMEOUT_MS: Final = Setting(
    "socket.connection.setup.timeout.ms",
    Kind.LONG,
    10_000,
    "How long a connection to the source may take to open, at first.",
    at_least(1),
    Update.CLUSTER_WIDE,
)
SOCKET_CONNECTION_SETUP_TIMEOUT_MAX_MS: Final = Setting(
    "socket.connection.setup.timeout.max.ms",
    Kind.LONG,
    30_000,
    "How long it may take after repeated failures.",
    at_least(1),
    Update.CLUSTER_WIDE,
    is_idle=True,
)
CONNECTIONS_MAX_IDLE_MS: Final = Setting(
    "connections.max.idle.ms",
    Kind.LONG,
    600_000,
    "A connection to the source that is unused for so long is closed; -1 never.",
    at_least(-1),
    Update.CLUSTER_WIDE,
    is_idle=True,
)
FETCH_WAIT_MAX_MS: Final = Setting(
    "fetch.wait.max.ms",
    Kind.INT,
    1_000,
    "How long the source waits for new records before it answers.",
    at_least(0),
    Update.CLUSTER_WIDE,
)
FETCH_BACKOFF_MS: Final = Setting(
    "fetch.backoff.ms",
    Kind.INT,
    1_000,
    "How long it is waited after a failed fetch.",
    at_least(0),
    Update.CLUSTER_WIDE,
)
FETCH_MIN_BYTES: Final = Setting(
    "fetch.min.bytes",
    Kind.INT,
    1,
    "Bytes that the source waits for before it answers.",
    at_least(0),
    Update.CLUSTER_WIDE,
)
FETCH_RESPONSE_MAX_BYTES: Final = Setting(
    "fetch.response.max.bytes",
    Kind.INT,
    10 << 20,
    "Bytes of one answer.",
    at_least(1),
    Update.CLUSTER_WIDE,
)
FETCH_MAX_BYTES: Final = Setting(
    "fetch.max.bytes",
    Kind.INT,
    1 << 20,
    "Bytes of one partition in an answer.",
    at_least(1),
    Update.CLUSTER_WIDE,
)
SOCKET_TIMEOUT_MS: Final = Setting(
    "socket.timeout.ms",
    Kind.INT,
    30_000,
    "How long a fetch may take beyond fetch.wait.max.ms.",
    at_least(1),
    Update.CLUSTER_WIDE,
)
SOCKET_RECEIVE_BUFFER_BYTES: Final = Setting(
    "socket.receive.buffer.bytes",
    Kind.INT,
    65_536,
    "SO_RCVBUF of the connections to the source; -1 leaves it to the operating system.",
    at_least(-1),
    Update.CLUSTER_WIDE,
    is_idle=True,
)
TOPICS_INCLUDE: Final[Setting[tuple[str, ...]]] = Setting(
    "topics.include",
    Kind.LIST,
    (),
    "Which topics are mirrored: regular expressions for whole names.",
    PATTERNS,
    Update.CLUSTER_WIDE,
)
TOPICS_EXCLUDE: Final[Setting[tuple[str, ...]]] = Setting(
    "topics.exclude",
    Kind.LIST,
    ("__.*",),
    "Which are not, whatever topics.include says.",
    PATTERNS,
    Update.CLUSTER_WIDE,
)
GROUPS_INCLUDE: Final[Setting[tuple[str, ...]]] = Setting(
    "groups.include",
    Kind.LIST,
    (".*",),
    "Whose offsets are mirrored: regular expressions for whole group ids.",
    PATTERNS,
    Update.CLUSTER_WIDE,
)
GROUPS_EXCLUDE: Final[Setting[tuple[str, ...]]] = Setting(
    "groups.exclude",
    Kind.LIST,
    (),
    "Whose are not, whatever groups.include says.",
    PATTERNS,
    Update.CLUSTER_WIDE,
)
GROUPS_SYNC_INTERVAL_MS: Final = Setting(
    "groups.sync.interval.ms",
    Kind.LONG,
    5_000,
    "How often group offsets are brought over. (Not a setting of the proposal.)",
    at_least(1),
    Update.CLUSTER_WIDE,
)
ACLS_INCLUDE: Final[Setting[tuple[str, ...]]] = Setting(
    "acls.include",
    Kind.LIST,
    ("*",),
    "Which ACLs are mirrored, as type;name;operation;permission;principal; * is any.",
    ANY,
    Update.CLUSTER_WIDE,
)
TOPIC_PROPERTIES_EXCLUDE: Final[Setting[tuple[str, ...]]] = Setting(
    "topic.properties.exclude",
    Kind.LIST,
    (
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "message.timestamp.difference.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.after.max.ms",
        "message.timestamp.type",
        "unclean.leader.election.enable",
        "min.insync.replicas",
        "mirror.replication.throttled.replicas",
        "mirror.support.unclean.leader.election",
    ),
    "Topic settings that are not taken over from the source.",
    ANY,
    Update.CLUSTER_WIDE,
)
MIRROR_GAP_POLICY: Final = Setting(
    "mirror.gap.policy",
    Kind.STRING,
    "continue",
    "When the source has deleted records before they were mirrored: continue after the gap, "
    "which is recorded, or fail the partition. (Not a setting of the proposal.)",
    one_of("continue", "fail"),
    Update.CLUSTER_WIDE,
)

MIRROR_COORDINATOR_WRITE_TIMEOUT_MS: Final = Setting(
    "mirror.coordinator.write.timeout.ms",
    Kind.INT,
    5_000,
    "How long a record of __mirror_state may wait for the replicas.",
    at_least(1),
    is_idle=True,
)
MIRROR_COORDINATOR_APPEND_LINGER_MS: Final = Setting(
    "mirror.coordinator.append.linger.ms",
    Kind.INT,
    10,
    "How long records of __mirror_state wait to be written together.",
    at_least(0),
    is_idle=True,
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
    "Bytes a second that throttled mirror partitions fetch together.",
    at_least(0),
    Update.PER_BROKER,
    is_idle=True,
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
)


def _has_a_source(settings: Settings) -> str | None:
    if settings[BOOTSTRAP_SERVERS]:
        return None
    return "bootstrap.servers is missing: name brokers of the source, as host:port,host:port"


MIRROR: Final = SettingSet(
    "mirror",
    (
        BOOTSTRAP_SERVERS,
        SOURCE_CLUSTER_ID,
        SECURITY_PROTOCOL,
        REQUEST_TIMEOUT_MS,
        SOCKET_CONNECTION_SETUP_TIMEOUT_MS,
        SOCKET_CONNECTION_SETUP_TIMEOUT_MAX_MS,
        CONNECTIONS_MAX_IDLE_MS,
        FETCH_WAIT_MAX_MS,
        FETCH_BACKOFF_MS,
        FETCH_MIN_BYTES,
        FETCH_RESPONSE_MAX_BYTES,
        FETCH_MAX_BYTES,
        SOCKET_TIMEOUT_MS,
        SOCKET_RECEIVE_BUFFER_BYTES,
        TOPICS_INCLUDE,
        TOPICS_EXCLUDE,
        GROUPS_INCLUDE,
        GROUPS_EXCLUDE,
        GROUPS_SYNC_INTERVAL_MS,
        ACLS_INCLUDE,
        TOPIC_PROPERTIES_EXCLUDE,
        MIRROR_GAP_POLICY,
    ),
    rules=(_has_a_source,),
    is_foreign=is_foreign_to_a_mirror,
)


def mirror_settings(overrides: Mapping[str, str], *, origin: str = "") -> Settings:
    """Give the settings of one mirror, checked."""
    return Settings.of(MIRROR, overrides, source=Source.CLUSTER_MIRROR, origin=origin)


def matcher(include: Iterable[str], exclude: Iterable[str]) -> Callable[[str], bool]:
    """Give the test for names that some pattern includes and none excludes.

    A pattern must match the whole name. Raises SettingsError for one that is no pattern.
    """
    wanted, unwanted = _joined(include), _joined(exclude)

    def is_match(name: str) -> bool:
        return bool(wanted and wanted.fullmatch(name)) and not (
            unwanted and unwanted.fullmatch(name)
        )

    return is_match


def _joined(patterns: Iterable[str]) -> re.Pattern[str] | None:
    listed = list(patterns)
    for pattern in listed:
        try:
            re.compile(pattern)
        except re.error as error:
            raise SettingsError(f"{pattern!r} is not a regular expression: {error}") from error
    return re.compile("|".join(f"(?:{pattern})" for pattern in listed)) if listed else None
