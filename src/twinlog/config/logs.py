"""Broker settings: log dirs, and what holds for every partition log unless its topic says else."""

from typing import Any, Final

from twinlog.config.checks import ANY, NOT_EMPTY, at_least, between, one_of, some_of
from twinlog.config.declare import Setting, Synonym, Update
from twinlog.config.kinds import LONG_MAX, Kind

HOUR_MS: Final = 3_600_000
MINUTE_MS: Final = 60_000
COMPRESSION_NAMES: Final = ("uncompressed", "gzip", "snappy", "lz4", "zstd", "producer")

LOG_DIR: Final[Setting[tuple[str, ...]]] = Setting(
    "log.dir", Kind.LIST, ("data",), "As log.dirs, under its older name.", NOT_EMPTY
)
LOG_DIRS: Final[Setting[tuple[str, ...]]] = Setting(
    "log.dirs",
    Kind.LIST,
    ("data",),
    "The folders of the partition logs; a new partition goes to the one with the fewest. An "
    "empty folder is taken into use, one of another cluster is refused.",
    NOT_EMPTY,
    synonyms=(Synonym(LOG_DIR),),
)
LOG_SEGMENT_BYTES: Final = Setting(
    "log.segment.bytes",
    Kind.INT,
    1 << 30,
    "A segment of so many bytes is closed, and the next one begun.",
    at_least(14),
    Update.CLUSTER_WIDE,
)
LOG_ROLL_HOURS: Final = Setting(
    "log.roll.hours", Kind.INT, 168, "As log.roll.ms, in hours; that one wins.", at_least(1)
)
LOG_ROLL_MS: Final = Setting(
    "log.roll.ms",
    Kind.LONG,
    168 * HOUR_MS,
    "A segment whose first record is so old is closed, and the next one begun.",
    at_least(1),
    Update.CLUSTER_WIDE,
    (Synonym(LOG_ROLL_HOURS, HOUR_MS),),
)
LOG_ROLL_JITTER_HOURS: Final = Setting(
    "log.roll.jitter.hours",
    Kind.INT,
    0,
    "As log.roll.jitter.ms, in hours.",
    at_least(0),
    is_idle=True,
)
LOG_ROLL_JITTER_MS: Final = Setting(
    "log.roll.jitter.ms",
    Kind.LONG,
    0,
    "Up to so much is taken off log.roll.ms, so that segments do not all close at once.",
    at_least(0),
    Update.CLUSTER_WIDE,
    (Synonym(LOG_ROLL_JITTER_HOURS, HOUR_MS),),
    is_idle=True,
)
LOG_RETENTION_HOURS: Final = Setting(
    "log.retention.hours", Kind.INT, 168, "As log.retention.ms, in hours.", at_least(-1)
)
LOG_RETENTION_MINUTES: Final = Setting(
    "log.retention.minutes",
    Kind.INT,
    168 * 60,
    "As log.retention.ms, in minutes; it wins over log.retention.hours.",
    at_least(-1),
)
LOG_RETENTION_MS: Final = Setting(
    "log.retention.ms",
    Kind.LONG,
    168 * HOUR_MS,
    "A segment whose newest record is older is deleted; -1 keeps all.",
    at_least(-1),
    Update.CLUSTER_WIDE,
    (Synonym(LOG_RETENTION_MINUTES, MINUTE_MS), Synonym(LOG_RETENTION_HOURS, HOUR_MS)),
)
LOG_RETENTION_BYTES: Final = Setting(
    "log.retention.bytes",
    Kind.LONG,
    -1,
    "A partition that is larger loses its oldest segments; -1 keeps all.",
    at_least(-1),
    Update.CLUSTER_WIDE,
)
LOG_RETENTION_CHECK_INTERVAL_MS: Final = Setting(
    "log.retention.check.interval.ms",
    Kind.LONG,
    300_000,
    "How often it is looked for segments to delete.",
    at_least(1),
)
LOG_SEGMENT_DELETE_DELAY_MS: Final = Setting(
    "log.segment.delete.delay.ms",
    Kind.LONG,
    60_000,
    "A deleted segment's file stays for so long, for those who still read it.",
    at_least(0),
    Update.CLUSTER_WIDE,
)
LOG_CLEANUP_POLICY: Final[Setting[tuple[str, ...]]] = Setting(
    "log.cleanup.policy",
    Kind.LIST,
    ("delete",),
    "delete: old segments go. compact: of each key, only the last record stays. Empty: all stays.",
    some_of("delete", "compact"),
    Update.CLUSTER_WIDE,
)
LOG_FLUSH_INTERVAL_MESSAGES: Final = Setting(
    "log.flush.interval.messages",
    Kind.LONG,
    LONG_MAX,
    "Records after which a log is written through to the disk; normally replicas are the safety.",
    at_least(1),
    Update.CLUSTER_WIDE,
)
LOG_FLUSH_INTERVAL_MS: Final[Setting[int | None]] = Setting(
    "log.flush.interval.ms",
    Kind.LONG,
    None,
    "Time after which a log is written through to the disk; by default, when it rolls or closes.",
    ANY,
    Update.CLUSTER_WIDE,
    is_idle=True,
)
LOG_FLUSH_SCHEDULER_INTERVAL_MS: Final = Setting(
    "log.flush.scheduler.interval.ms",
    Kind.LONG,
    LONG_MAX,
    "How often it is looked for logs to write through.",
    is_idle=True,
)
LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS: Final = Setting(
    "log.flush.offset.checkpoint.interval.ms",
    Kind.INT,
    60_000,
    "How often the recovery points are written down.",
    at_least(0),
)
LOG_FLUSH_START_OFFSET_CHECKPOINT_INTERVAL_MS: Final = Setting(
    "log.flush.start.offset.checkpoint.interval.ms",
    Kind.INT,
    60_000,
    "How often the logs' start offsets are written down.",
    at_least(0),
    is_idle=True,
)
LOG_INDEX_INTERVAL_BYTES: Final = Setting(
    "log.index.interval.bytes",
    Kind.INT,
    4_096,
    "Bytes of a log between two entries of its offset index.",
    at_least(0),
    Update.CLUSTER_WIDE,
)
LOG_INDEX_SIZE_MAX_BYTES: Final = Setting(
    "log.index.size.max.bytes",
    Kind.INT,
    10 << 20,
    "The largest index; a segment whose index is full is closed.",
    at_least(4),
    Update.CLUSTER_WIDE,
)
LOG_PREALLOCATE: Final = Setting(
    "log.preallocate",
    Kind.BOOLEAN,
    False,
    "Kafka would reserve a segment's bytes when it begins; here it has no effect.",
    ANY,
    Update.CLUSTER_WIDE,
    is_idle=True,
)
LOG_MESSAGE_TIMESTAMP_TYPE: Final = Setting(
    "log.message.timestamp.type",
    Kind.STRING,
    "CreateTime",
    "Whether records keep the producer's time or get the broker's.",
    one_of("CreateTime", "LogAppendTime"),
    Update.CLUSTER_WIDE,
)
LOG_MESSAGE_TIMESTAMP_BEFORE_MAX_MS: Final = Setting(
    "log.message.timestamp.before.max.ms",
    Kind.LONG,
    LONG_MAX,
    "How far a record's time may lie before the broker's.",
    at_least(0),
    Update.CLUSTER_WIDE,
)
LOG_MESSAGE_TIMESTAMP_AFTER_MAX_MS: Final = Setting(
    "log.message.timestamp.after.max.ms",
    Kind.LONG,
    HOUR_MS,
    "How far a record's time may lie after the broker's.",
    at_least(0),
    Update.CLUSTER_WIDE,
)
COMPRESSION_TYPE: Final = Setting(
    "compression.type",
    Kind.STRING,
    "producer",
    "How batches are stored; producer keeps them as they come.",
    one_of(*COMPRESSION_NAMES),
    Update.CLUSTER_WIDE,
)
MESSAGE_MAX_BYTES: Final = Setting(
    "message.max.bytes",
    Kind.INT,
    1_048_588,
    "The largest batch that a producer may send.",
    at_least(0),
    Update.CLUSTER_WIDE,
)
MIN_INSYNC_REPLICAS: Final = Setting(
    "min.insync.replicas",
    Kind.INT,
    1,
    "Replicas that must have a record before acks=all is answered.",
    at_least(1),
    Update.CLUSTER_WIDE,
)
UNCLEAN_LEADER_ELECTION_ENABLE: Final = Setting(
    "unclean.leader.election.enable",
    Kind.BOOLEAN,
    False,
    "Whether a replica that lacks records may lead when no other is left.",
    ANY,
    Update.CLUSTER_WIDE,
    is_idle=True,
)
LOG_CLEANER_DELETE_RETENTION_MS: Final = Setting(
    "log.cleaner.delete.retention.ms",
    Kind.LONG,
    24 * HOUR_MS,
    "How long a compacted log keeps the records that delete a key.",
    at_least(0),
    Update.CLUSTER_WIDE,
    is_idle=True,
)
LOG_CLEANER_MIN_CLEANABLE_RATIO: Final = Setting(
    "log.cleaner.min.cleanable.ratio",
    Kind.DOUBLE,
    0.5,
    "The share of a log that is not yet compacted, from which on compacting is worth it.",
    between(0, 1),
    Update.CLUSTER_WIDE,
    is_idle=True,
)
LOG_CLEANER_MIN_COMPACTION_LAG_MS: Final = Setting(
    "log.cleaner.min.compaction.lag.ms",
    Kind.LONG,
    0,
    "How long a record stays before it may be compacted away.",
    at_least(0),
    Update.CLUSTER_WIDE,
    is_idle=True,
)
LOG_CLEANER_MAX_COMPACTION_LAG_MS: Final = Setting(
    "log.cleaner.max.compaction.lag.ms",
    Kind.LONG,
    LONG_MAX,
    "How long a record may stay before its log is compacted.",
    at_least(1),
    Update.CLUSTER_WIDE,
    is_idle=True,
)

SETTINGS: Final[tuple[Setting[Any], ...]] = (
    LOG_DIR,
    LOG_DIRS,
    LOG_SEGMENT_BYTES,
    LOG_ROLL_HOURS,
    LOG_ROLL_MS,
    LOG_ROLL_JITTER_HOURS,
    LOG_ROLL_JITTER_MS,
    LOG_RETENTION_HOURS,
    LOG_RETENTION_MINUTES,
    LOG_RETENTION_MS,
    LOG_RETENTION_BYTES,
    LOG_RETENTION_CHECK_INTERVAL_MS,
    LOG_SEGMENT_DELETE_DELAY_MS,
    LOG_CLEANUP_POLICY,
    LOG_FLUSH_INTERVAL_MESSAGES,
    LOG_FLUSH_INTERVAL_MS,
    LOG_FLUSH_SCHEDULER_INTERVAL_MS,
    LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS,
    LOG_FLUSH_START_OFFSET_CHECKPOINT_INTERVAL_MS,
    LOG_INDEX_INTERVAL_BYTES,
    LOG_INDEX_SIZE_MAX_BYTES,
    LOG_PREALLOCATE,
    LOG_MESSAGE_TIMESTAMP_TYPE,
    LOG_MESSAGE_TIMESTAMP_BEFORE_MAX_MS,
    LOG_MESSAGE_TIMESTAMP_AFTER_MAX_MS,
    COMPRESSION_TYPE,
    MESSAGE_MAX_BYTES,
    MIN_INSYNC_REPLICAS,
    UNCLEAN_LEADER_ELECTION_ENABLE,
    LOG_CLEANER_DELETE_RETENTION_MS,
    LOG_CLEANER_MIN_CLEANABLE_RATIO,
    LOG_CLEANER_MIN_COMPACTION_LAG_MS,
    LOG_CLEANER_MAX_COMPACTION_LAG_MS,
)
