"""The settings of one mirror.

The names are KIP-1279's; those that are ours say so.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from twinlog.config.checks import ANY, ENDPOINTS, PATTERNS, at_least, one_of
from twinlog.config.client_security import CLIENT_SECURITY, security_problem
from twinlog.config.declare import Setting, Settings, SettingSet, Source, Update
from twinlog.config.foreign import is_foreign_to_a_mirror
from twinlog.config.kinds import Kind
from twinlog.config.mirror_start import MIRROR_START_OFFSET_SPEC
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
    "Which are not, whatever topics.include says. Internal topics never are.",
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


def _has_a_source(settings: Settings) -> str | None:
    if settings[BOOTSTRAP_SERVERS]:
        return None
    return "bootstrap.servers is missing: name brokers of the source, as host:port,host:port"


MIRROR: Final = SettingSet(
    "mirror",
    (
        BOOTSTRAP_SERVERS,
        SOURCE_CLUSTER_ID,
        *CLIENT_SECURITY,
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
        MIRROR_START_OFFSET_SPEC,
    ),
    rules=(_has_a_source, security_problem),
    is_foreign=is_foreign_to_a_mirror,
)


def mirror_settings(overrides: Mapping[str, str], *, origin: str = "") -> Settings:
    """Give the settings of one mirror, checked."""
    return Settings.of(MIRROR, overrides, source=Source.CLUSTER_MIRROR, origin=origin)


def matcher(include: Iterable[str], exclude: Iterable[str]) -> Callable[[str], bool]:
    """Give the test for names that some pattern includes and none excludes.

    A pattern must match the whole name. Raises SettingsError for one that is no pattern.
    """
    is_wanted, is_unwanted = _test_of(include), _test_of(exclude)
    return lambda name: is_wanted(name) and not is_unwanted(name)


def _test_of(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Give the test for names that one of the patterns matches.

    Joined they are fast, also thousands of names; but not those with a bracket: its group, its
    number and its flags would be those of all.
    """
    simple: list[str] = []
    alone: list[re.Pattern[str]] = []
    for pattern in patterns:
        try:
            compiled = re.compile(pattern)
        except re.error as error:
            raise SettingsError(f"{pattern!r} is not a regular expression: {error}") from error
        if "(" in pattern:
            alone.append(compiled)
        else:
            simple.append(pattern)
    if simple:
        alone.insert(0, re.compile("|".join(f"(?:{pattern})" for pattern in simple)))
    return lambda name: any(one.fullmatch(name) for one in alone)
