"""Topic settings: each with the broker setting that it overrides."""

from collections.abc import Mapping
from typing import Any, Final

from twinlog.config import logs
from twinlog.config.checks import (
    ANY,
    THROTTLED_REPLICAS,
    Check,
    at_least,
    between,
    some_of,
)
from twinlog.config.declare import Setting, Settings, SettingSet, Source, Synonym, Update
from twinlog.config.foreign import is_foreign_to_a_topic
from twinlog.config.kinds import LONG_MAX, Kind


def _over(
    broker: Setting[Any],
    name: str,
    doc: str,
    check: Check | None = None,
    *,
    is_idle: bool = False,
) -> Setting[Any]:
    """Declare the topic's counterpart of a broker setting."""
    return Setting(
        name,
        broker.kind,
        broker.default,
        doc,
        broker.check if check is None else check,
        Update.CLUSTER_WIDE,
        (Synonym(broker), *broker.synonyms),
        is_idle,
    )


CLEANUP_POLICY: Final[Setting[tuple[str, ...]]] = _over(
    logs.LOG_CLEANUP_POLICY,
    "cleanup.policy",
    "delete: old segments go. compact: of each key, only the last record stays. Empty: all stays.",
    some_of("delete", "compact"),
)
COMPRESSION_TYPE: Final[Setting[str]] = _over(
    logs.COMPRESSION_TYPE,
    "compression.type",
    "How batches are stored; producer keeps them as they come.",
)
COMPRESSION_GZIP_LEVEL: Final = Setting(
    "compression.gzip.level",
    Kind.INT,
    -1,
    "Level when gzip is the type.",
    between(-1, 9),
    Update.CLUSTER_WIDE,
    is_idle=True,
)
COMPRESSION_LZ4_LEVEL: Final = Setting(
    "compression.lz4.level",
    Kind.INT,
    9,
    "Level when lz4 is the type.",
    between(1, 17),
    Update.CLUSTER_WIDE,
    is_idle=True,
)
COMPRESSION_ZSTD_LEVEL: Final = Setting(
    "compression.zstd.level",
    Kind.INT,
    3,
    "Level when zstd is the type.",
    between(-131_072, 22),
    Update.CLUSTER_WIDE,
    is_idle=True,
)
DELETE_RETENTION_MS: Final[Setting[int]] = _over(
    logs.LOG_CLEANER_DELETE_RETENTION_MS,
    "delete.retention.ms",
    "How long a compacted log keeps the records that delete a key.",
    is_idle=True,
)
FILE_DELETE_DELAY_MS: Final[Setting[int]] = _over(
    logs.LOG_SEGMENT_DELETE_DELAY_MS,
    "file.delete.delay.ms",
    "A deleted segment's file stays for so long, for those who still read it.",
)
FLUSH_MESSAGES: Final[Setting[int]] = _over(
    logs.LOG_FLUSH_INTERVAL_MESSAGES,
    "flush.messages",
    "Records after which the log is written through to the disk.",
)
FLUSH_MS: Final = Setting(
    "flush.ms",
    Kind.LONG,
    LONG_MAX,
    "Time after which the log is written through to the disk.",
    at_least(0),
    Update.CLUSTER_WIDE,
    (Synonym(logs.LOG_FLUSH_INTERVAL_MS),),
    is_idle=True,
)
INDEX_INTERVAL_BYTES: Final[Setting[int]] = _over(
    logs.LOG_INDEX_INTERVAL_BYTES,
    "index.interval.bytes",
    "Bytes of the log between two entries of its offset index.",
)
MAX_COMPACTION_LAG_MS: Final[Setting[int]] = _over(
    logs.LOG_CLEANER_MAX_COMPACTION_LAG_MS,
    "max.compaction.lag.ms",
    "How long a record may stay before the log is compacted.",
    is_idle=True,
)
MAX_MESSAGE_BYTES: Final[Setting[int]] = _over(
    logs.MESSAGE_MAX_BYTES, "max.message.bytes", "The largest batch that a producer may send."
)
MESSAGE_TIMESTAMP_AFTER_MAX_MS: Final[Setting[int]] = _over(
    logs.LOG_MESSAGE_TIMESTAMP_AFTER_MAX_MS,
    "message.timestamp.after.max.ms",
    "How far a record's time may lie after the broker's.",
)
MESSAGE_TIMESTAMP_BEFORE_MAX_MS: Final[Setting[int]] = _over(
    logs.LOG_MESSAGE_TIMESTAMP_BEFORE_MAX_MS,
    "message.timestamp.before.max.ms",
    "How far a record's time may lie before the broker's.",
)
MESSAGE_TIMESTAMP_TYPE: Final[Setting[str]] = _over(
    logs.LOG_MESSAGE_TIMESTAMP_TYPE,
    "message.timestamp.type",
    "Whether records keep the producer's time or get the broker's.",
)
MIN_CLEANABLE_DIRTY_RATIO: Final[Setting[float]] = _over(
    logs.LOG_CLEANER_MIN_CLEANABLE_RATIO,
    "min.cleanable.dirty.ratio",
    "The share of the log that is not yet compacted, from which on compacting is worth it.",
    is_idle=True,
)
MIN_COMPACTION_LAG_MS: Final[Setting[int]] = _over(
    logs.LOG_CLEANER_MIN_COMPACTION_LAG_MS,
    "min.compaction.lag.ms",
    "How long a record stays before it may be compacted away.",
    is_idle=True,
)
MIN_INSYNC_REPLICAS: Final[Setting[int]] = _over(
    logs.MIN_INSYNC_REPLICAS,
    "min.insync.replicas",
    "Replicas that must have a record before acks=all is answered.",
)
PREALLOCATE: Final[Setting[bool]] = _over(
    logs.LOG_PREALLOCATE, "preallocate", "Has no effect here.", is_idle=True
)
RETENTION_BYTES: Final[Setting[int]] = _over(
    logs.LOG_RETENTION_BYTES,
    "retention.bytes",
    "A partition that is larger loses its oldest segments; -1 keeps all.",
    ANY,
)
RETENTION_MS: Final[Setting[int]] = _over(
    logs.LOG_RETENTION_MS,
    "retention.ms",
    "A segment whose newest record is older is deleted; -1 keeps all.",
)
SEGMENT_BYTES: Final[Setting[int]] = _over(
    logs.LOG_SEGMENT_BYTES,
    "segment.bytes",
    "A segment of so many bytes is closed, and the next one begun.",
)
SEGMENT_INDEX_BYTES: Final[Setting[int]] = _over(
    logs.LOG_INDEX_SIZE_MAX_BYTES,
    "segment.index.bytes",
    "The largest index; a segment whose index is full is closed.",
)
SEGMENT_JITTER_MS: Final[Setting[int]] = _over(
    logs.LOG_ROLL_JITTER_MS,
    "segment.jitter.ms",
    "Up to so much is taken off segment.ms.",
    is_idle=True,
)
SEGMENT_MS: Final[Setting[int]] = _over(
    logs.LOG_ROLL_MS,
    "segment.ms",
    "A segment whose first record is so old is closed, and the next one begun.",
)
UNCLEAN_LEADER_ELECTION_ENABLE: Final[Setting[bool]] = _over(
    logs.UNCLEAN_LEADER_ELECTION_ENABLE,
    "unclean.leader.election.enable",
    "Whether a replica that lacks records may lead when no other is left.",
    is_idle=True,
)
LEADER_REPLICATION_THROTTLED_REPLICAS: Final[Setting[tuple[str, ...]]] = Setting(
    "leader.replication.throttled.replicas",
    Kind.LIST,
    (),
    "Replicas whose sending to followers is slowed down, as partition:broker; * is all.",
    THROTTLED_REPLICAS,
    Update.CLUSTER_WIDE,
    is_idle=True,
)
FOLLOWER_REPLICATION_THROTTLED_REPLICAS: Final[Setting[tuple[str, ...]]] = Setting(
    "follower.replication.throttled.replicas",
    Kind.LIST,
    (),
    "Replicas whose fetching from leaders is slowed down, as partition:broker; * is all.",
    THROTTLED_REPLICAS,
    Update.CLUSTER_WIDE,
    is_idle=True,
)
MIRROR_REPLICATION_THROTTLED_REPLICAS: Final[Setting[tuple[str, ...]]] = Setting(
    "mirror.replication.throttled.replicas",
    Kind.LIST,
    (),
    "Replicas whose fetching from a mirror's source is slowed down, as partition:broker; * is all. "
    "The broker's mirror.replication.throttled.rate says how far.",
    THROTTLED_REPLICAS,
    Update.CLUSTER_WIDE,
)
MIRROR_SUPPORT_UNCLEAN_LEADER_ELECTION: Final = Setting(
    "mirror.support.unclean.leader.election",
    Kind.BOOLEAN,
    False,
    "Whether a mirrored partition follows its source when that loses records by an unclean "
    "election: true truncates and goes on, false fails the partition until an operator decides.",
    ANY,
    Update.CLUSTER_WIDE,
)


def _lags_fit(settings: Settings) -> str | None:
    least, most = settings[MIN_COMPACTION_LAG_MS], settings[MAX_COMPACTION_LAG_MS]
    if least <= most:
        return None
    return (
        f"min.compaction.lag.ms={least} is above max.compaction.lag.ms={most}: "
        "lower the first or raise the second"
    )


TOPIC: Final = SettingSet(
    "topic",
    (
        CLEANUP_POLICY,
        COMPRESSION_TYPE,
        COMPRESSION_GZIP_LEVEL,
        COMPRESSION_LZ4_LEVEL,
        COMPRESSION_ZSTD_LEVEL,
        DELETE_RETENTION_MS,
        FILE_DELETE_DELAY_MS,
        FLUSH_MESSAGES,
        FLUSH_MS,
        INDEX_INTERVAL_BYTES,
        MAX_COMPACTION_LAG_MS,
        MAX_MESSAGE_BYTES,
        MESSAGE_TIMESTAMP_AFTER_MAX_MS,
        MESSAGE_TIMESTAMP_BEFORE_MAX_MS,
        MESSAGE_TIMESTAMP_TYPE,
        MIN_CLEANABLE_DIRTY_RATIO,
        MIN_COMPACTION_LAG_MS,
        MIN_INSYNC_REPLICAS,
        PREALLOCATE,
        RETENTION_BYTES,
        RETENTION_MS,
        SEGMENT_BYTES,
        SEGMENT_INDEX_BYTES,
        SEGMENT_JITTER_MS,
        SEGMENT_MS,
        UNCLEAN_LEADER_ELECTION_ENABLE,
        LEADER_REPLICATION_THROTTLED_REPLICAS,
        FOLLOWER_REPLICATION_THROTTLED_REPLICAS,
        MIRROR_REPLICATION_THROTTLED_REPLICAS,
        MIRROR_SUPPORT_UNCLEAN_LEADER_ELECTION,
    ),
    rules=(_lags_fit,),
    is_foreign=is_foreign_to_a_topic,
)


def topic_settings(overrides: Mapping[str, str], broker: Settings) -> Settings:
    """Give the settings of a topic: its overrides, over those of the broker."""
    return Settings.of(TOPIC, overrides, source=Source.TOPIC, beneath=broker)
