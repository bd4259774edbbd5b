"""Every metric of a broker, declared once: the page docs/metrics.md is made from this.

Kafka's are named as the usual configuration of the JMX exporter names them, so that dashboards
made for Kafka fit; what Kafka has no word for begins with ``twinlog_``.
"""

from typing import Final

from twinlog.telemetry.metrics import Family, counter, gauge

_TOPIC: Final = "kafka_server_brokertopicmetrics"
_REPLICAS: Final = "kafka_server_replicamanager"
_CONTROLLER: Final = "kafka_controller_kafkacontroller"
_MANAGER: Final = "kafka_server_mirror_mirrormetadatamanager"
_SOCKETS: Final = "kafka_server_socket_server_metrics"

# ---- Traffic

MESSAGES_IN: Final = counter(f"{_TOPIC}_messagesin_total", "Records appended.", "topic")
BYTES_IN: Final = counter(f"{_TOPIC}_bytesin_total", "Bytes of producers appended.", "topic")
BYTES_OUT: Final = counter(f"{_TOPIC}_bytesout_total", "Bytes given to consumers.", "topic")
BYTES_REJECTED: Final = counter(
    f"{_TOPIC}_bytesrejected_total", "Bytes refused because a batch was too large.", "topic"
)
PRODUCE_REQUESTS: Final = counter(
    f"{_TOPIC}_totalproducerequests_total",
    "Appends asked for by producers, one for each partition of a request.",
    "topic",
)
FETCH_REQUESTS: Final = counter(
    f"{_TOPIC}_totalfetchrequests_total",
    "Reads asked for, one for each partition that was looked at.",
    "topic",
)
FAILED_PRODUCE_REQUESTS: Final = counter(
    f"{_TOPIC}_failedproducerequests_total", "Appends that were refused or failed.", "topic"
)
FAILED_FETCH_REQUESTS: Final = counter(
    f"{_TOPIC}_failedfetchrequests_total", "Reads that were refused or failed.", "topic"
)
REPLICATION_BYTES_IN: Final = counter(
    f"{_TOPIC}_replicationbytesin_total", "Bytes appended as a mirror of another cluster.", "topic"
)
REPLICATION_BYTES_OUT: Final = counter(
    f"{_TOPIC}_replicationbytesout_total", "Bytes given to followers.", "topic"
)

# ---- Requests and connections

REQUESTS: Final = counter(
    "kafka_network_requestmetrics_requests_total", "Requests received.", "request", "version"
)
ERRORS: Final = counter(
    "kafka_network_requestmetrics_errors_total",
    "Error codes in answers, each place of an answer counted; NONE is not. An answer that is "
    "kept and given again unchanged is counted once.",
    "request",
    "error",
)
CONNECTIONS: Final = gauge(
    f"{_SOCKETS}_connection_count", "Open connections.", "listener", "networkProcessor"
)
CONNECTIONS_MADE: Final = counter(
    f"{_SOCKETS}_connection_creation_total", "Connections let in.", "listener", "networkProcessor"
)
CONNECTIONS_REFUSED: Final = counter(
    "twinlog_listener_refused_connections_total",
    "Connections turned away because max.connections were open.",
    "listener",
)
CONNECTIONS_BROKEN: Final = counter(
    "twinlog_listener_broken_connections_total",
    "Connections closed because what they sent were no requests.",
    "listener",
)
LISTENER_HELD_BYTES: Final = gauge(
    "twinlog_listener_held_bytes", "Big requests being received or answered.", "listener"
)
FETCH_SESSIONS: Final = gauge(
    "kafka_server_fetchsessioncache_numincrementalfetchsessions", "Incremental fetch sessions."
)
FETCH_SESSION_PARTITIONS: Final = gauge(
    "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached",
    "Partitions in incremental fetch sessions.",
)
FETCH_SESSION_EVICTIONS: Final = counter(
    "kafka_server_fetchsessioncache_incrementalfetchsessionevictions_total",
    "Fetch sessions that had to make room for others.",
)

# ---- Partitions and the cluster

PARTITIONS: Final = gauge(f"{_REPLICAS}_partitioncount", "Partitions on this broker.")
LEADERS: Final = gauge(f"{_REPLICAS}_leadercount", "Partitions led by this broker.")
UNDER_REPLICATED: Final = gauge(
    f"{_REPLICAS}_underreplicatedpartitions", "Led partitions with a replica out of sync."
)
UNDER_MIN_ISR: Final = gauge(
    f"{_REPLICAS}_underminisrpartitioncount", "Led partitions that refuse acks=all."
)
AT_MIN_ISR: Final = gauge(
    f"{_REPLICAS}_atminisrpartitioncount", "Led partitions that just accept acks=all."
)
OFFLINE_REPLICAS: Final = gauge(
    f"{_REPLICAS}_offlinereplicacount",
    "Replicas this broker should hold and does not, as when a disk failed.",
)
ISR_SHRINKS: Final = counter(f"{_REPLICAS}_isrshrinks_total", "Replicas fell out of sync.")
ISR_EXPANDS: Final = counter(f"{_REPLICAS}_isrexpands_total", "Replicas came back in sync.")
ACTIVE_CONTROLLERS: Final = gauge(
    f"{_CONTROLLER}_activecontrollercount",
    "1 on one broker of a cluster. Here the metadata store takes the controller's place; the "
    "broker of the lowest id that serves tells it.",
)
ACTIVE_BROKERS: Final = gauge(f"{_CONTROLLER}_activebrokercount", "Brokers that serve.")
TOPICS: Final = gauge(f"{_CONTROLLER}_globaltopiccount", "Topics of the cluster.")
GLOBAL_PARTITIONS: Final = gauge(
    f"{_CONTROLLER}_globalpartitioncount", "Partitions of the cluster."
)
OFFLINE_PARTITIONS: Final = gauge(
    f"{_CONTROLLER}_offlinepartitionscount", "Partitions of the cluster without a leader."
)
BROKER_STATE: Final = gauge(
    "kafka_server_kafkaserver_brokerstate", "1 while starting, 3 when serving, 6 while stopping."
)
OFFLINE_LOG_DIRS: Final = gauge(
    "kafka_log_logmanager_offlinelogdirectorycount", "Folders of log.dirs that failed."
)
FAILED_LOGS: Final = gauge(
    "twinlog_failed_logs",
    "Partitions that take no records since their disk failed, until the broker is started again.",
)
LOG_SIZE: Final = gauge("kafka_log_log_size", "Bytes of a partition.", "topic", "partition")
LOG_START: Final = gauge(
    "kafka_log_log_logstartoffset", "The first offset there is.", "topic", "partition"
)
LOG_END: Final = gauge(
    "kafka_log_log_logendoffset", "The first offset not yet written.", "topic", "partition"
)
LOG_SEGMENTS: Final = gauge(
    "kafka_log_log_numlogsegments", "Segments of a partition.", "topic", "partition"
)
PARTITIONS_LEFT_OUT: Final = gauge(
    "twinlog_metrics_partitions_left_out",
    "Partitions without series of their own, because there are more than "
    "monitoring.partition.series.max.",
)

# ---- Coordinators

GROUP_COORDINATOR: Final = gauge(
    "kafka_server_group_coordinator_metrics_num_partitions",
    "Partitions of __consumer_offsets led here.",
    "state",
)
MIRROR_COORDINATOR: Final = gauge(
    "twinlog_mirror_coordinator_partitions", "Partitions of __mirror_state led here.", "state"
)

# ---- Mirrors

STATES: Final[dict[str, Family]] = {
    state: gauge(
        f"{_MANAGER}_{state.replace('_', '').lower()}partitionstate",
        f"Mirrored partitions on this broker that are {state}.",
    )
    for state in (
        "LOG_ALIGNMENT",
        "ULE_RECOVERY",
        "EPOCH_FENCING",
        "MIRRORING",
        "PAUSING",
        "PAUSED",
        "STOPPING",
        "STOPPED",
        "FAILED",
    )
}
MIRROR_TOPICS: Final = gauge(
    f"{_MANAGER}_mirrortopiccount", "Topics of a mirror, stopped ones too.", "mirrorname"
)
REFRESH_ERRORS: Final = counter(
    f"{_MANAGER}_topicmetadatarefresherror_total",
    "Times that the source's topics could not be looked at, or not be followed.",
)
CONFIG_ERRORS: Final = counter(
    f"{_MANAGER}_topicconfigsyncerror_total", "Times that topic settings could not be synced."
)
GROUP_ERRORS: Final = counter(
    f"{_MANAGER}_consumergroupoffsetsyncerror_total",
    "Times that group offsets could not be synced.",
)
ACL_ERRORS: Final = counter(
    f"{_MANAGER}_aclsyncerror_total", "Times that the source's ACLs could not be synced."
)
SYNC_ERRORS: Final = counter(
    "twinlog_mirror_sync_errors_total",
    "The same errors, for each mirror and task.",
    "mirror",
    "task",
)
MAX_LAG: Final = gauge(
    "kafka_server_mirrorfetchermanager_maxlag",
    "Records that the partition furthest behind its source still lacks.",
    "clientId",
)
FAILED_FETCHES: Final = gauge(
    "kafka_server_mirrorfetchermanager_failedpartitionscount",
    "Mirrored partitions that are FAILED.",
    "clientId",
)
CONSUMER_LAG: Final = gauge(
    "kafka_server_fetcherlagmetrics_consumerlag",
    "Records that a partition lacks, as far as its source has told; -1 if it never has.",
    "clientId",
    "topic",
    "partition",
)
LAG_RECORDS: Final = gauge(
    "twinlog_mirror_lag_records", "Records that a mirror's partitions lack together.", "mirror"
)
LAG_BYTES: Final = gauge(
    "twinlog_mirror_lag_bytes",
    "The same in bytes, judged by the size of the records that came; left out until any did.",
    "mirror",
)
LAG_SECONDS: Final = gauge(
    "twinlog_mirror_lag_seconds",
    "How long ago the partition furthest behind was level with its source. It grows while the "
    "source is dark, since what the source has meanwhile is not known.",
    "mirror",
)
PARTITION_LAG_RECORDS: Final = gauge(
    "twinlog_mirror_partition_lag_records",
    "Records that a partition lacks; -1 if its source has never answered.",
    "mirror",
    "topic",
    "partition",
)
PARTITION_LAG_BYTES: Final = gauge(
    "twinlog_mirror_partition_lag_bytes", "The same in bytes.", "mirror", "topic", "partition"
)
PARTITION_LAG_SECONDS: Final = gauge(
    "twinlog_mirror_partition_lag_seconds",
    "How long ago a partition was level with its source, or if it never was, was begun.",
    "mirror",
    "topic",
    "partition",
)
SOURCE_SILENT: Final = gauge(
    "twinlog_mirror_source_silent_seconds",
    "How long ago the source last answered a fetch; left out while nothing "
    "is fetched, also because the throttled rate is used up.",
    "mirror",
)
MIRROR_PARTITIONS: Final = gauge(
    "twinlog_mirror_partitions", "Mirrored partitions on this broker.", "mirror", "state"
)
MIRROR_FETCHES: Final = counter(
    "twinlog_mirror_fetch_requests_total", "Fetches that the source answered.", "mirror"
)
MIRROR_FETCH_FAILURES: Final = counter(
    "twinlog_mirror_fetch_failures_total", "Fetches that failed as a whole.", "mirror"
)
MIRROR_FETCH_BYTES: Final = counter(
    "twinlog_mirror_fetch_bytes_total", "Bytes of batches that the source gave.", "mirror"
)
THROTTLED: Final = gauge(
    "twinlog_mirror_throttled_partitions", "Partitions fetched at the throttled rate.", "mirror"
)
THROTTLED_RATE: Final = gauge(
    "twinlog_mirror_throttled_rate_bytes",
    "Bytes a second that they may fetch together; left out where there is no limit.",
)
LOSSES: Final = counter(
    "twinlog_mirror_losses_total",
    "Times that records were lost. Cause gap: the source deleted them before they came; "
    "truncation: the source does not have what was cut off here; restart: the whole log here was "
    "dropped to begin anew.",
    "mirror",
    "cause",
)
LOST_RECORDS: Final = counter(
    "twinlog_mirror_lost_records_total", "Offsets in those losses.", "mirror", "cause"
)

# ---- The process

BUILD: Final = gauge("twinlog_build_info", "Always 1.", "version")
PROCESS_CPU: Final = counter("process_cpu_seconds_total", "Processor time used, in seconds.")
PROCESS_RESIDENT: Final = gauge("process_resident_memory_bytes", "Memory in use.")
PROCESS_VIRTUAL: Final = gauge("process_virtual_memory_bytes", "Memory that has addresses.")
PROCESS_START: Final = gauge("process_start_time_seconds", "When the process started (Unix time).")
PROCESS_OPEN_FDS: Final = gauge("process_open_fds", "Open files and sockets.")
PROCESS_MAX_FDS: Final = gauge("process_max_fds", "How many of them may be open.")

TRAFFIC: Final = (
    MESSAGES_IN,
    BYTES_IN,
    BYTES_OUT,
    BYTES_REJECTED,
    PRODUCE_REQUESTS,
    FETCH_REQUESTS,
    FAILED_PRODUCE_REQUESTS,
    FAILED_FETCH_REQUESTS,
)

CHAPTERS: Final[tuple[tuple[str, tuple[Family, ...]], ...]] = (
    ("Traffic", (*TRAFFIC, REPLICATION_BYTES_IN, REPLICATION_BYTES_OUT)),
    (
        "Requests and connections",
        (
            REQUESTS,
            ERRORS,
            CONNECTIONS,
            CONNECTIONS_MADE,
            CONNECTIONS_REFUSED,
            CONNECTIONS_BROKEN,
            LISTENER_HELD_BYTES,
            FETCH_SESSIONS,
            FETCH_SESSION_PARTITIONS,
            FETCH_SESSION_EVICTIONS,
        ),
    ),
    (
        "Partitions and the cluster",
        (
            PARTITIONS,
            LEADERS,
            UNDER_REPLICATED,
            UNDER_MIN_ISR,
            AT_MIN_ISR,
            OFFLINE_REPLICAS,
            ISR_SHRINKS,
            ISR_EXPANDS,
            ACTIVE_CONTROLLERS,
            ACTIVE_BROKERS,
            TOPICS,
            GLOBAL_PARTITIONS,
            OFFLINE_PARTITIONS,
            BROKER_STATE,
            OFFLINE_LOG_DIRS,
            FAILED_LOGS,
            LOG_SIZE,
            LOG_START,
            LOG_END,
            LOG_SEGMENTS,
            PARTITIONS_LEFT_OUT,
        ),
    ),
    ("Coordinators", (GROUP_COORDINATOR, MIRROR_COORDINATOR)),
    (
        "Mirrors",
        (
            *STATES.values(),
            MIRROR_TOPICS,
            MIRROR_PARTITIONS,
            LAG_RECORDS,
            LAG_BYTES,
            LAG_SECONDS,
            PARTITION_LAG_RECORDS,
            PARTITION_LAG_BYTES,
            PARTITION_LAG_SECONDS,
            CONSUMER_LAG,
            MAX_LAG,
            FAILED_FETCHES,
            SOURCE_SILENT,
            MIRROR_FETCHES,
            MIRROR_FETCH_FAILURES,
            MIRROR_FETCH_BYTES,
            THROTTLED,
            THROTTLED_RATE,
            LOSSES,
            LOST_RECORDS,
            REFRESH_ERRORS,
            CONFIG_ERRORS,
            GROUP_ERRORS,
            ACL_ERRORS,
            SYNC_ERRORS,
        ),
    ),
    (
        "The process",
        (
            BUILD,
            PROCESS_CPU,
            PROCESS_RESIDENT,
            PROCESS_VIRTUAL,
            PROCESS_START,
            PROCESS_OPEN_FDS,
            PROCESS_MAX_FDS,
        ),
    ),
)
"""Every family there is, by chapter."""
