"""Broker settings: who the broker is, what new topics are like, replication; the whole set."""

from typing import Any, Final

from twinlog.config import coordinators, logs, mirror_broker, monitoring, network
from twinlog.config.checks import NOT_EMPTY, at_least, one_of
from twinlog.config.declare import Setting, Settings, SettingSet, Synonym, Update
from twinlog.config.foreign import is_foreign_to_the_broker
from twinlog.config.kinds import Kind

BROKER_ID: Final = Setting(
    "broker.id", Kind.INT, 0, "As node.id, under its older name.", at_least(0)
)
NODE_ID: Final = Setting(
    "node.id",
    Kind.INT,
    0,
    "The number of this broker, another for each broker of a cluster.",
    at_least(0),
    synonyms=(Synonym(BROKER_ID),),
)
CLUSTER_ID: Final[Setting[str | None]] = Setting(
    "cluster.id",
    Kind.STRING,
    None,
    "The id a new cluster gets; by default one is drawn. (Kafka takes it when formatting.)",
    NOT_EMPTY,
)
BROKER_RACK: Final[Setting[str | None]] = Setting(
    "broker.rack", Kind.STRING, None, "Where the broker stands, so that replicas are spread."
)
METADATA_STORE: Final = Setting(
    "metadata.store",
    Kind.STRING,
    "sqlite",
    "Where the cluster's facts are kept: sqlite, a file in the first log dir; or memory, which "
    "forgets them at the end. (Not a setting of Kafka.)",
    one_of("sqlite", "memory"),
)
NUM_PARTITIONS: Final = Setting(
    "num.partitions",
    Kind.INT,
    1,
    "Partitions of a topic that is created without a number.",
    at_least(1),
)
DEFAULT_REPLICATION_FACTOR: Final = Setting(
    "default.replication.factor",
    Kind.INT,
    1,
    "Replicas of a topic that is created without a number.",
    at_least(1),
)
AUTO_CREATE_TOPICS_ENABLE: Final = Setting(
    "auto.create.topics.enable",
    Kind.BOOLEAN,
    True,
    "Whether a topic is created when somebody asks for it.",
)
DELETE_TOPIC_ENABLE: Final = Setting(
    "delete.topic.enable", Kind.BOOLEAN, True, "Whether topics can be deleted."
)
BACKGROUND_THREADS: Final = Setting(
    "background.threads",
    Kind.INT,
    4,
    "Threads for what takes long on the disk: flush, recovery, deletion.",
    at_least(1),
    is_idle=True,
)
NUM_RECOVERY_THREADS_PER_DATA_DIR: Final = Setting(
    "num.recovery.threads.per.data.dir",
    Kind.INT,
    2,
    "Threads that look through the logs of one folder at start.",
    at_least(1),
    is_idle=True,
)
CONTROLLED_SHUTDOWN_DRAIN_MS: Final = Setting(
    "controlled.shutdown.drain.ms",
    Kind.INT,
    5_000,
    "How long running requests may take to end when the broker stops. (Not a setting of Kafka.)",
    at_least(0),
)
REPLICA_LAG_TIME_MAX_MS: Final = Setting(
    "replica.lag.time.max.ms",
    Kind.LONG,
    30_000,
    "A follower that has not caught up for so long leaves the in-sync replicas.",
    at_least(1),
    is_idle=True,
)
REPLICA_FETCH_MAX_BYTES: Final = Setting(
    "replica.fetch.max.bytes",
    Kind.INT,
    1 << 20,
    "Bytes that a follower asks of one partition.",
    at_least(0),
    is_idle=True,
)
REPLICA_FETCH_RESPONSE_MAX_BYTES: Final = Setting(
    "replica.fetch.response.max.bytes",
    Kind.INT,
    10 << 20,
    "Bytes that a follower asks for at once.",
    at_least(0),
    is_idle=True,
)
REPLICA_FETCH_WAIT_MAX_MS: Final = Setting(
    "replica.fetch.wait.max.ms",
    Kind.INT,
    500,
    "How long a follower's fetch waits for records.",
    at_least(0),
    is_idle=True,
)
REPLICA_FETCH_MIN_BYTES: Final = Setting(
    "replica.fetch.min.bytes",
    Kind.INT,
    1,
    "Bytes that a follower's fetch waits for.",
    at_least(0),
    is_idle=True,
)
REPLICA_FETCH_BACKOFF_MS: Final = Setting(
    "replica.fetch.backoff.ms",
    Kind.INT,
    1_000,
    "How long a follower waits after a failed fetch.",
    at_least(0),
    is_idle=True,
)
REPLICA_SOCKET_TIMEOUT_MS: Final = Setting(
    "replica.socket.timeout.ms",
    Kind.INT,
    30_000,
    "How long a follower waits for an answer.",
    at_least(1),
    is_idle=True,
)
REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS: Final = Setting(
    "replica.high.watermark.checkpoint.interval.ms",
    Kind.LONG,
    5_000,
    "How often the high watermarks are written down.",
    at_least(1),
)
NUM_REPLICA_FETCHERS: Final = Setting(
    "num.replica.fetchers",
    Kind.INT,
    1,
    "Fetches to each leader at the same time.",
    at_least(1),
    Update.CLUSTER_WIDE,
    is_idle=True,
)

_OWN: Final[tuple[Setting[Any], ...]] = (
    BROKER_ID,
    NODE_ID,
    CLUSTER_ID,
    BROKER_RACK,
    METADATA_STORE,
    NUM_PARTITIONS,
    DEFAULT_REPLICATION_FACTOR,
    AUTO_CREATE_TOPICS_ENABLE,
    DELETE_TOPIC_ENABLE,
    BACKGROUND_THREADS,
    NUM_RECOVERY_THREADS_PER_DATA_DIR,
    CONTROLLED_SHUTDOWN_DRAIN_MS,
    REPLICA_LAG_TIME_MAX_MS,
    REPLICA_FETCH_MAX_BYTES,
    REPLICA_FETCH_RESPONSE_MAX_BYTES,
    REPLICA_FETCH_WAIT_MAX_MS,
    REPLICA_FETCH_MIN_BYTES,
    REPLICA_FETCH_BACKOFF_MS,
    REPLICA_SOCKET_TIMEOUT_MS,
    REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS,
    NUM_REPLICA_FETCHERS,
)


def _ids_agree(settings: Settings) -> str | None:
    given = settings.overrides
    if "node.id" in given and "broker.id" in given and settings[NODE_ID] != settings[BROKER_ID]:
        return (
            f"node.id={settings[NODE_ID]} and broker.id={settings[BROKER_ID]} differ: "
            "they are two names of one setting, remove broker.id"
        )
    return None


BROKER: Final = SettingSet(
    "broker",
    (
        *_OWN,
        *network.SETTINGS,
        *monitoring.SETTINGS,
        *logs.SETTINGS,
        *coordinators.SETTINGS,
        *mirror_broker.BROKER_SETTINGS,
    ),
    rules=(
        _ids_agree,
        network.listeners_fit,
        monitoring.monitoring_listener_fits,
        coordinators.session_timeouts_fit,
    ),
    is_foreign=is_foreign_to_the_broker,
)
