"""Creating, growing and deleting topics: the rules, giving changes or ApiError."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from twinlog.cluster.changes import PartitionsAdded, TopicDeleted, TopicSet
from twinlog.cluster.facts import MirrorTopicFact, PartitionFact, TopicFact
from twinlog.cluster.image import ClusterImage, metric_name
from twinlog.cluster.placement import place
from twinlog.model.bounds import PARTITIONS_PER_TOPIC_MAX, TOPIC_NAME_CHARS_MAX
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import NO_TOPIC_ID, BrokerId, LeaderEpoch, TopicId, TopicName

LEFT_TO_BROKER: Final = -1
Replicas = tuple[BrokerId, ...]
CheckConfig = Callable[[Mapping[str, str]], None]
"""Raises ApiError INVALID_CONFIG when a topic cannot have these overrides."""

_LEGAL_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")


@dataclass(frozen=True, slots=True)
class TopicWish:
    """The topic a client asks for; -1 leaves a number to the broker.

    ``assignments`` gives each partition its replicas by hand, and then tells both numbers.
    """

    name: str
    partition_count: int = LEFT_TO_BROKER
    replication_factor: int = LEFT_TO_BROKER
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    mirror: MirrorTopicFact | None = None


@dataclass(frozen=True, slots=True)
class TopicDefaults:
    """What the broker gives a topic that leaves it open (num.partitions and its kin)."""

    partition_count: int
    replication_factor: int


@dataclass(frozen=True, slots=True)
class Chance:
    """What is random about a new topic: its id, and the place in the ring of its first leader."""

    topic_id: TopicId
    first_broker: int


def check_topic_name(name: str) -> None:
    """Raise ApiError INVALID_TOPIC_EXCEPTION unless Kafka would take the name."""
    if not name:
        why = "is empty"
    elif name in (".", ".."):
        why = "cannot be '.' or '..'"
    elif len(name) > TOPIC_NAME_CHARS_MAX:
        why = f"is longer than {TOPIC_NAME_CHARS_MAX} characters"
    elif not _LEGAL_NAME.fullmatch(name):
        why = "contains a character other than ASCII letters, digits, '.', '_' and '-'"
    else:
        return
    raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"The topic name {name[:300]!r} {why}.")


def create_topic(
    image: ClusterImage,
    wish: TopicWish,
    defaults: TopicDefaults,
    chance: Chance,
    check_config: CheckConfig,
) -> TopicSet:
    """Give the new topic, or raise ApiError."""
    check_topic_name(wish.name)
    _check_is_new(image, wish.name, chance.topic_id)
    replicas = (
        _assigned_by_hand(image, wish)
        if wish.assignments
        else _placed(image, wish, defaults, chance.first_broker)
    )
    check_config(wish.config)
    return TopicSet(
        TopicFact(
            TopicName(wish.name),
            chance.topic_id,
            _new_partitions(replicas),
            dict(wish.config),
            wish.mirror,
        )
    )


def grow_topic(
    image: ClusterImage,
    name: str,
    count: int,
    assignments: Sequence[Sequence[int]] | None,
    *,
    by_its_mirror: bool = False,
) -> PartitionsAdded:
    """Give the partitions that bring a topic to ``count``, or raise ApiError.

    A mirror's topic grows with its source only; ``by_its_mirror`` says that it is this.
    """
    topic = find_topic(image, name)
    if not by_its_mirror:
        check_not_mirrored(topic, "cannot be given partitions")
    old = len(topic.partitions)
    if count == old:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {count} partition(s).")
    if count < old:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {name} currently has {old} partition(s); {count} would not be an increase.",
        )
    _check_partition_count(count)
    copies = len(topic.partitions[0].replicas)
    if assignments is None:
        # The first leader follows the last one there is, so that leaders stay even.
        first = topic.partitions[-1].replicas[0]
        ring = sorted(image.brokers)
        placed = place(
            image.brokers,
            partition_count=count - old,
            replication_factor=copies,
            first=ring.index(first) + 1 if first in ring else 0,
        )
    else:
        if len(assignments) != count - old:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Increasing the number of partitions by {count - old} but "
                f"{len(assignments)} assignments provided.",
            )
        placed = tuple(_checked_replicas(image, replicas) for replicas in assignments)
        _check_even_copies((topic.partitions[0].replicas, *placed))
    return PartitionsAdded(topic.name, old, _new_partitions(placed))


def delete_topic(image: ClusterImage, topic: TopicFact) -> TopicDeleted:
    """Give the removal of a topic, or raise ApiError when a mirror keeps it."""
    assert image.topics.get(topic.name) is topic, f"{topic.name} is not of this image"
    check_not_mirrored(topic, "cannot be deleted")
    return TopicDeleted(topic.name)


def find_topic(image: ClusterImage, name: str) -> TopicFact:
    """Give a topic by name. Raises ApiError UNKNOWN_TOPIC_OR_PARTITION."""
    topic = image.topics.get(TopicName(name))
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name[:300]!r}.")
    return topic


def find_topic_by_id(image: ClusterImage, topic_id: TopicId) -> TopicFact:
    """Give a topic by id. Raises ApiError UNKNOWN_TOPIC_ID."""
    topic = image.topics_by_id.get(topic_id)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, f"There is no topic with the id {topic_id}.")
    return topic


def check_not_mirrored(topic: TopicFact, cannot: str) -> None:
    """Raise ApiError POLICY_VIOLATION while a mirror keeps the topic as its source has it."""
    mirror = topic.read_only_for
    if mirror is not None:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"Topic {topic.name} {cannot}: it is a read-only mirror topic of mirror {mirror}. "
            f"Stop the mirror for it first: kafka-cluster-mirrors.sh --stop --mirror {mirror} "
            f"--topics {topic.name}",
        )


def _check_is_new(image: ClusterImage, name: str, topic_id: TopicId) -> None:
    if TopicName(name) in image.topics:
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    other = image.names_by_metric.get(metric_name(name))
    if other is not None:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topic '{other}': "
            "'.' and '_' are the same in the names of metrics.",
        )
    same_id = image.topics_by_id.get(topic_id)
    if same_id is not None:
        raise ApiError(
            ErrorCode.TOPIC_ALREADY_EXISTS,
            f"Topic '{name}' cannot have the id {topic_id}: topic '{same_id.name}' has it.",
        )
    assert topic_id != NO_TOPIC_ID, f"topic {name} needs an id"


def _placed(
    image: ClusterImage, wish: TopicWish, defaults: TopicDefaults, first: int
) -> tuple[Replicas, ...]:
    count, copies = wish.partition_count, wish.replication_factor
    if count == LEFT_TO_BROKER:
        count = defaults.partition_count
    if copies == LEFT_TO_BROKER:
        copies = defaults.replication_factor
    _check_partition_count(count)
    if copies <= 0:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    return place(image.brokers, partition_count=count, replication_factor=copies, first=first)


def _check_partition_count(count: int) -> None:
    if count <= 0:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    if count > PARTITIONS_PER_TOPIC_MAX:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"A topic has at most {PARTITIONS_PER_TOPIC_MAX} partitions, not {count}.",
        )


def _assigned_by_hand(image: ClusterImage, wish: TopicWish) -> tuple[Replicas, ...]:
    for number, what in (
        (wish.replication_factor, "replication factor"),
        (wish.partition_count, "number of partitions"),
    ):
        if number != LEFT_TO_BROKER:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but the {what} was not set to -1.",
            )
    _check_partition_count(len(wish.assignments))
    if set(wish.assignments) != set(range(len(wish.assignments))):
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    ordered = (wish.assignments[index] for index in range(len(wish.assignments)))
    replicas = tuple(_checked_replicas(image, brokers) for brokers in ordered)
    _check_even_copies(replicas)
    return replicas


def _checked_replicas(image: ClusterImage, brokers: Sequence[int]) -> Replicas:
    if not brokers:
        why = "The manual partition assignment includes an empty replica list."
    elif len(set(brokers)) != len(brokers):
        why = f"The manual partition assignment has a broker more than once: {list(brokers)}."
    elif unknown := [broker for broker in brokers if broker not in image.brokers]:
        why = f"The manual partition assignment includes broker {unknown[0]}, which is unknown."
    else:
        return tuple(BrokerId(broker) for broker in brokers)
    raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)


def _check_even_copies(replicas: Sequence[Replicas]) -> None:
    counts = {len(brokers) for brokers in replicas}
    if len(counts) > 1:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"The manual partition assignment has partitions with {sorted(counts)} replicas; "
            "all must have as many.",
        )


def _new_partitions(replicas: Sequence[Replicas]) -> tuple[PartitionFact, ...]:
    return tuple(PartitionFact(r[0], LeaderEpoch(0), r, r) for r in replicas)
