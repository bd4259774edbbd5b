"""What a broker's metrics are at the moment, but for its mirrors'."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from twinlog.broker.context import Broker
from twinlog.broker.partitions import Partition
from twinlog.broker.traffic import TopicTraffic
from twinlog.cluster.facts import NO_LEADER, PartitionFact
from twinlog.config.monitoring import MONITORING_PARTITION_SERIES_MAX
from twinlog.network.listener import Listener
from twinlog.storage.logs import Logs
from twinlog.telemetry import families as of
from twinlog.telemetry.metrics import Family, Reading, one

STARTING: Final = 1
SERVING: Final = 3
STOPPING: Final = 6
NETWORK_PROCESSOR: Final = 0
"""Kafka has a number for each of its network threads; here there is one loop."""

_TRAFFIC: Final[tuple[tuple[Family, Callable[[TopicTraffic], int]], ...]] = (
    (of.MESSAGES_IN, lambda traffic: traffic.messages_in),
    (of.BYTES_IN, lambda traffic: traffic.bytes_in),
    (of.BYTES_OUT, lambda traffic: traffic.bytes_out),
    (of.BYTES_REJECTED, lambda traffic: traffic.bytes_rejected),
    (of.PRODUCE_REQUESTS, lambda traffic: traffic.produces),
    (of.FETCH_REQUESTS, lambda traffic: traffic.fetches),
    (of.FAILED_PRODUCE_REQUESTS, lambda traffic: traffic.failed_produces),
    (of.FAILED_FETCH_REQUESTS, lambda traffic: traffic.failed_fetches),
    (of.REPLICATION_BYTES_IN, lambda traffic: traffic.replication_bytes_in),
)


@dataclass(frozen=True, slots=True)
class Running:
    """What of a running broker is told beside what handlers know."""

    logs: Logs
    listeners: Callable[[], Mapping[str, Listener]]
    is_serving: Callable[[], bool]
    is_stopping: Callable[[], bool]
    group_progress: Callable[[], Mapping[int, bool]]
    mirror_progress: Callable[[], Mapping[int, bool]]


def broker_readings(broker: Broker, running: Running, version: str) -> Iterator[Reading]:
    """Read everything but the mirrors."""
    yield Reading(of.BUILD, [((version,), 1)])
    yield one(of.BROKER_STATE, _state(running))
    yield from _traffic(broker)
    yield from _requests(broker)
    yield from _listeners(running.listeners())
    yield from _cluster(broker)
    yield from _replicas(broker)
    yield from _logs(broker, running.logs)
    yield Reading(of.GROUP_COORDINATOR, _loaded(running.group_progress()))
    yield Reading(of.MIRROR_COORDINATOR, _loaded(running.mirror_progress()))


def _state(running: Running) -> int:
    if running.is_stopping():
        return STOPPING
    return SERVING if running.is_serving() else STARTING


def _traffic(broker: Broker) -> Iterator[Reading]:
    traffic = broker.partitions.traffic
    total = traffic.total()
    topics = (
        list(traffic) if len(traffic) <= broker.settings[MONITORING_PARTITION_SERIES_MAX] else []
    )
    for family, read in _TRAFFIC:
        told = [((name,), read(numbers)) for name, numbers in topics]
        yield Reading(family, [((), read(total)), *told])
    yield one(of.REPLICATION_BYTES_OUT, traffic.replication_bytes_out)
    yield one(of.ISR_SHRINKS, traffic.isr_shrinks)
    yield one(of.ISR_EXPANDS, traffic.isr_expands)


def _requests(broker: Broker) -> Iterator[Reading]:
    yield Reading(of.REQUESTS, broker.requests.requests())
    yield Reading(of.ERRORS, broker.requests.errors())
    sessions = broker.fetch_sessions
    yield one(of.FETCH_SESSIONS, len(sessions))
    yield one(of.FETCH_SESSION_PARTITIONS, sessions.partition_count)
    yield one(of.FETCH_SESSION_EVICTIONS, sessions.evictions)


def _listeners(listeners: Mapping[str, Listener]) -> Iterator[Reading]:
    named = [((name, NETWORK_PROCESSOR), door) for name, door in listeners.items()]
    yield Reading(of.CONNECTIONS, [(key, door.connection_count) for key, door in named])
    yield Reading(of.CONNECTIONS_MADE, [(key, door.accepted_count) for key, door in named])
    yield Reading(of.CONNECTIONS_REFUSED, [(key[:1], door.refused_count) for key, door in named])
    yield Reading(of.CONNECTIONS_BROKEN, [(key[:1], door.broken_count) for key, door in named])
    yield Reading(of.LISTENER_HELD_BYTES, [(key[:1], door.held_bytes) for key, door in named])


def _cluster(broker: Broker) -> Iterator[Reading]:
    image = broker.facts.image
    facts = [fact for topic in image.topics.values() for fact in topic.partitions]
    held = sum(broker.broker_id in fact.replicas for fact in facts)
    is_first = broker.broker_id == min(image.brokers, default=broker.broker_id)
    yield one(of.ACTIVE_CONTROLLERS, int(is_first))
    yield one(of.ACTIVE_BROKERS, len(image.brokers))
    yield one(of.TOPICS, len(image.topics))
    yield one(of.GLOBAL_PARTITIONS, len(facts))
    yield one(of.OFFLINE_PARTITIONS, sum(_is_offline(fact) for fact in facts))
    yield one(of.OFFLINE_REPLICAS, max(0, held - len(broker.partitions)))


def _is_offline(fact: PartitionFact) -> bool:
    return fact.leader == NO_LEADER


def _replicas(broker: Broker) -> Iterator[Reading]:
    partitions = list(broker.partitions)
    yield one(of.PARTITIONS, len(partitions))
    yield one(of.LEADERS, len(partitions))
    behind = sum(len(p.replica.isr) <= len(p.replica.followers) for p in partitions)
    yield one(of.UNDER_REPLICATED, behind)
    yield one(of.UNDER_MIN_ISR, sum(p.is_under_min_isr for p in partitions))
    yield one(of.AT_MIN_ISR, sum(len(p.replica.isr) == p.min_insync_replicas for p in partitions))


def _logs(broker: Broker, logs: Logs) -> Iterator[Reading]:
    yield one(of.OFFLINE_LOG_DIRS, len(logs.offline))
    yield one(of.FAILED_LOGS, sum(log.flushes.failure is not None for log in logs))
    partitions: Iterable[Partition] = broker.partitions
    count = len(broker.partitions)
    is_told = count <= broker.settings[MONITORING_PARTITION_SERIES_MAX]
    yield one(of.PARTITIONS_LEFT_OUT, 0 if is_told else count)
    if not is_told:
        return
    named = [((p.of.topic, p.of.partition), p.log) for p in partitions]
    yield Reading(of.LOG_SIZE, [(key, log.size_bytes) for key, log in named])
    yield Reading(of.LOG_START, [(key, log.start) for key, log in named])
    yield Reading(of.LOG_END, [(key, log.end) for key, log in named])
    yield Reading(of.LOG_SEGMENTS, [(key, log.segment_count) for key, log in named])


def _loaded(progress: Mapping[int, bool]) -> list[tuple[tuple[str], int]]:
    loaded = sum(progress.values())
    return [(("active",), loaded), (("loading",), len(progress) - loaded)]
