"""Names of settings that Kafka knows and this broker does not look at (yet).

A file written for Kafka starts this broker, too; what has no effect is listed in a warning.
"""

import re
from typing import Final

# Families of which we have nothing (or one name): any member is Kafka's business.
_BROKER_FAMILIES: Final = re.compile(
    r"(ssl|sasl|security|zookeeper|controller|remote|share|quota|password\.encoder|kafka|metrics?"
    r"|metadata\.log|delegation\.token|group\.(share|consumer|streams|coordinator)|streams"
    r"|listener\.name|leader\.imbalance|config\.providers|confluent|internal|unstable"
    r"|client\.metrics|log\.cleaner\.io|errors\.deadletterqueue)\.[A-Za-z0-9._-]+"
)

# Families of which we have most: only these, so that a slip of the pen is not taken for Kafka's.
_BROKER_NAMES: Final = frozenset(
    [
        "add.partitions.to.txn.retry.backoff.max.ms",
        "add.partitions.to.txn.retry.backoff.ms",
        "allow.everyone.if.no.acl.found",
        "alter.config.policy.class.name",
        "alter.log.dirs.replication.quota.window.num",
        "alter.log.dirs.replication.quota.window.size.seconds",
        "authorizer.class.name",
        "auto.include.jmx.reporter",
        "auto.leader.rebalance.enable",
        "bootstrap.servers",
        "broker.heartbeat.interval.ms",
        "broker.id.generation.enable",
        "broker.session.timeout.ms",
        "client.quota.callback.class",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.zstd.level",
        "config.providers",
        "connection.failed.authentication.delay.ms",
        "connections.max.reauth.ms",
        "controlled.shutdown.enable",
        "controlled.shutdown.max.retries",
        "controlled.shutdown.retry.backoff.ms",
        "cordoned.log.dirs",
        "create.topic.policy.class.name",
        "delete.records.purgatory.purge.interval.requests",
        "early.start.listeners",
        "eligible.leader.replicas.enable",
        "fetch.purgatory.purge.interval.requests",
        "follower.fetch.last.tiered.offset.enable",
        "initial.broker.registration.timeout.ms",
        "inter.broker.protocol.version",
        "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.enable",
        "log.cleaner.threads",
        "log.dir.failure.timeout.ms",
        "log.initial.task.delay.ms",
        "log.local.retention.bytes",
        "log.local.retention.ms",
        "log.message.downconversion.enable",
        "log.message.format.version",
        "log.message.timestamp.difference.max.ms",
        "max.connection.creation.rate",
        "max.connections.per.ip.overrides",
        "metadata.max.idle.interval.ms",
        "metadata.max.retention.bytes",
        "metadata.max.retention.ms",
        "num.io.threads",
        "num.network.threads",
        "num.replica.alter.log.dirs.threads",
        "offsets.commit.required.acks",
        "offsets.load.buffer.size",
        "offsets.topic.compression.codec",
        "principal.builder.class",
        "process.roles",
        "producer.purgatory.purge.interval.requests",
        "replica.selector.class",
        "replica.socket.receive.buffer.bytes",
        "replication.quota.window.num",
        "replication.quota.window.size.seconds",
        "reserved.broker.max.id",
        "server.max.startup.time.ms",
        "socket.connection.setup.timeout.max.ms",
        "socket.connection.setup.timeout.ms",
        "super.users",
        "telemetry.max.bytes",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        "transaction.partition.verification.enable",
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        "transaction.state.log.load.buffer.size",
        "transaction.state.log.min.isr",
        "transaction.state.log.segment.bytes",
        "transaction.two.phase.commit.enable",
    ]
)

_TOPIC: Final = re.compile(
    r"""
    message\.format\.version | message\.downconversion\.enable
    | message\.timestamp\.difference\.max\.ms | remote\.[a-z.]+ | local\.retention\.(ms|bytes)
    | confluent\.[a-z.]+ | errors\.deadletterqueue\.[a-z.]+
    """,
    re.VERBOSE,
)

_MIRROR: Final = re.compile(
    r"ssl\.(protocol|provider|cipher\.suites|enabled\.protocols|(key|trust)manager\.algorithm"
    r"|secure\.random\.implementation|engine\.factory\.class|(key|trust)store\.password)"
    r"|sasl\.(kerberos|login|client|oauthbearer)\.[a-z.]+|security\.providers"
    r"|metrics?\.[a-z.]+|reconnect\.backoff(\.max)?\.ms"
    r"|retry\.backoff(\.max)?\.ms|retries|send\.buffer\.bytes|receive\.buffer\.bytes"
    r"|client\.dns\.lookup|default\.api\.timeout\.ms|metadata\.[a-z.]+"
)


def is_foreign_to_the_broker(name: str) -> bool:
    """Tell whether Kafka's broker knows ``name`` and this one does not look at it."""
    return name in _BROKER_NAMES or _BROKER_FAMILIES.fullmatch(name) is not None


def is_foreign_to_a_topic(name: str) -> bool:
    """Tell whether some version of Kafka knows ``name`` for topics; a mirror may bring it."""
    return _TOPIC.fullmatch(name) is not None


def is_foreign_to_a_mirror(name: str) -> bool:
    """Tell whether Kafka's clients know ``name`` and a mirror's connections do not need it."""
    return _MIRROR.fullmatch(name) is not None
