"""Changes of the cluster's facts as keys and values of the metadata store, and back.

A key is a path, a value is JSON, so that an operator can read both. One key holds one fact that is
changed as a whole: a topic with all its partitions, a broker, a mirror. Two writers of the same
topic meet in the store's compare-and-set; a topic is found by name, so that two cannot have one.

=========================  ====================================================================
``twinlog/cluster``        ``{"id"}``
``twinlog/producer-ids``   ``{"next"}``
``twinlog/brokers/N``      ``{"host", "port", "rack", "epoch"}``
``twinlog/configs/N``      ``{"config"}``; N is a broker's id, or ``default`` for all brokers
``twinlog/mirrors/NAME``   ``{"source", "config", "looked_for": [include, exclude] or null}``
``twinlog/topics/NAME``    ``{"id", "config", "mirror": [name, state, first partitions] or null,
                           "partitions": [[leader, leader epoch, [replicas], [isr], epoch,
                           [handed over at, and before that] if it was], ...]}``
=========================  ====================================================================
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, assert_never
from uuid import UUID

from twinlog.cluster.changes import (
    BrokerConfigSet,
    BrokerRemoved,
    BrokerSet,
    Change,
    ClusterNamed,
    MirrorDeleted,
    MirrorSet,
    PartitionsAdded,
    PartitionSet,
    ProducerIdsTaken,
    TopicConfigSet,
    TopicDeleted,
    TopicMirrorSet,
    TopicSet,
)
from twinlog.cluster.facts import (
    NEVER_HANDED_OVER,
    BrokerFact,
    DesiredState,
    MirrorFact,
    MirrorTopicFact,
    PartitionFact,
    TopicFact,
)
from twinlog.cluster.image import ClusterImage
from twinlog.model.ids import BrokerId, LeaderEpoch, TopicId, TopicName

ROOT: Final = b"twinlog/"
DEFAULT_BROKER: Final = "default"


class FactError(Exception):
    """A stored fact cannot be read; the message names its key."""


@dataclass(frozen=True, slots=True)
class StoredFact:
    """A key and its value; None says that the key is to be removed, or was."""

    key: bytes
    value: bytes | None


def stored_facts(changes: Iterable[Change], after: ClusterImage) -> tuple[StoredFact, ...]:
    """Give what to write so that the store says what ``after`` says; it has the changes in it."""
    keys = dict.fromkeys(_key_of(change) for change in changes)
    return tuple(StoredFact(_path(*key), _value_of(*key, after)) for key in keys)


def change_of(fact: StoredFact) -> Change:
    """Give the change that a stored fact means. Raises FactError."""
    try:
        kind, _, name = fact.key.removeprefix(ROOT).decode().partition("/")
        if fact.value is None:
            return _removal(kind, name)
        return _setting(kind, name, json.loads(fact.value))
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise FactError(
            f"metadata store: {fact.key.decode(errors='replace')} cannot be read: {error!r}; "
            "was it written by another version of twinlog?"
        ) from error


def image_of(facts: Iterable[StoredFact]) -> ClusterImage:
    """Give the image that the facts of a whole store make. Raises FactError."""
    return ClusterImage().with_changes(change_of(fact) for fact in facts)


def _path(kind: str, name: str) -> bytes:
    return ROOT + (f"{kind}/{name}" if name else kind).encode()


def _key_of(change: Change) -> tuple[str, str]:
    match change:
        case TopicSet(topic):
            return "topics", topic.name
        case PartitionSet(of):
            return "topics", of.topic
        case TopicDeleted(name):
            return "topics", name
        case PartitionsAdded(name) | TopicConfigSet(name) | TopicMirrorSet(name):
            return "topics", name
        case MirrorSet(mirror):
            return "mirrors", mirror.name
        case MirrorDeleted(mirror_name):
            return "mirrors", mirror_name
        case ClusterNamed():
            return "cluster", ""
        case ProducerIdsTaken():
            return "producer-ids", ""
        case _:
            return _broker_key_of(change)


def _broker_key_of(change: BrokerSet | BrokerRemoved | BrokerConfigSet) -> tuple[str, str]:
    match change:
        case BrokerSet(broker):
            return "brokers", str(broker.id)
        case BrokerRemoved(broker_id):
            return "brokers", str(broker_id)
        case BrokerConfigSet(of):
            return "configs", DEFAULT_BROKER if of is None else str(of)
        case _:
            assert_never(change)


def _value_of(kind: str, name: str, image: ClusterImage) -> bytes | None:
    """Encode what the image says under a key; None when it says nothing."""
    value: dict[str, Any] | None
    match kind:
        case "topics":
            topic = image.topics.get(TopicName(name))
            value = None if topic is None else _topic_value(topic)
        case "mirrors":
            mirror = image.mirrors.get(name)
            value = None if mirror is None else _mirror_value(mirror)
        case "brokers":
            broker = image.brokers.get(BrokerId(int(name)))
            value = None if broker is None else _broker_value(broker)
        case "configs":
            config = image.broker_configs.get(_broker_of(name))
            value = {"config": dict(config)} if config else None
        case "cluster":
            value = {"id": image.cluster_id}
        case _:
            value = {"next": image.next_producer_id}
    return json.dumps(value, separators=(",", ":")).encode() if value else None


def _broker_value(broker: BrokerFact) -> dict[str, Any]:
    return {"host": broker.host, "port": broker.port, "rack": broker.rack, "epoch": broker.epoch}


def _mirror_value(mirror: MirrorFact) -> dict[str, Any]:
    return {
        "source": mirror.source_cluster_id,
        "config": dict(mirror.config),
        "looked_for": mirror.looked_for,
    }


def _topic_value(topic: TopicFact) -> dict[str, Any]:
    mirror = topic.mirror
    return {
        "id": topic.id.hex,
        "config": dict(topic.config),
        "mirror": mirror and [mirror.mirror, mirror.desired_state.value, mirror.first_partitions],
        "partitions": [
            [p.leader, p.leader_epoch, p.replicas, p.isr, p.partition_epoch, *_handed_over(p)]
            for p in topic.partitions
        ],
    }


def _handed_over(partition: PartitionFact) -> Iterator[tuple[LeaderEpoch, LeaderEpoch]]:
    if partition.handed_over != NEVER_HANDED_OVER:
        yield partition.handed_over


def _removal(kind: str, name: str) -> Change:
    match kind:
        case "topics":
            return TopicDeleted(TopicName(name))
        case "mirrors":
            return MirrorDeleted(name)
        case "brokers":
            return BrokerRemoved(BrokerId(int(name)))
        case "configs":
            return BrokerConfigSet(_broker_of(name), {})
        case _:
            raise ValueError("a fact that is never removed")


def _setting(kind: str, name: str, value: dict[str, Any]) -> Change:
    match kind:
        case "topics":
            return TopicSet(_topic_fact(TopicName(name), value))
        case "mirrors":
            return MirrorSet(_mirror_fact(name, value))
        case "brokers":
            return BrokerSet(
                BrokerFact(
                    BrokerId(int(name)), value["host"], value["port"], value["rack"], value["epoch"]
                )
            )
        case "configs":
            return BrokerConfigSet(_broker_of(name), value["config"])
        case "cluster":
            return ClusterNamed(value["id"])
        case "producer-ids":
            return ProducerIdsTaken(value["next"])
        case _:
            raise ValueError("an unknown kind of fact")


def _mirror_fact(name: str, value: dict[str, Any]) -> MirrorFact:
    looked_for = value.get("looked_for")
    return MirrorFact(
        name, value["config"], value["source"], tuple(looked_for) if looked_for else None
    )


def _topic_fact(name: TopicName, value: dict[str, Any]) -> TopicFact:
    mirror = value["mirror"]
    return TopicFact(
        name,
        TopicId(UUID(value["id"])),
        tuple(_partition_fact(fields) for fields in value["partitions"]),
        value["config"],
        mirror and MirrorTopicFact(mirror[0], DesiredState(mirror[1]), *mirror[2:]),
    )


def _partition_fact(fields: Sequence[Any]) -> PartitionFact:
    leader, leader_epoch, replicas, isr, *later = fields
    partition_epoch, handed_over = (*later, NEVER_HANDED_OVER)[:2]
    now, before = handed_over
    return PartitionFact(
        leader,
        LeaderEpoch(leader_epoch),
        tuple(replicas),
        tuple(isr),
        partition_epoch,
        (LeaderEpoch(now), LeaderEpoch(before)),
    )


def _broker_of(name: str) -> BrokerId | None:
    return None if name == DEFAULT_BROKER else BrokerId(int(name))
