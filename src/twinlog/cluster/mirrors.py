"""What an operator may ask of mirrors (KIP-1279), giving changes or ApiError.

Rules of one topic give its changes, so that one refused topic does not stop the others of a
request. What a topic is asked to do is all that is decided here: where its partitions really are
is known to the mirror coordinator, and the caller checks that first.

Changes that need the mirror to stay put also set it to what it is: so they meet its deletion in
the store's compare-and-set.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from twinlog.cluster.changes import (
    Change,
    MirrorDeleted,
    MirrorSet,
    PartitionSet,
    TopicMirrorSet,
)
from twinlog.cluster.facts import DesiredState, MirrorFact, MirrorTopicFact, TopicFact
from twinlog.cluster.image import ClusterImage
from twinlog.cluster.topics import (
    Chance,
    CheckConfig,
    TopicDefaults,
    TopicWish,
    check_topic_name,
    create_topic,
    find_topic,
)
from twinlog.config.mirror import TOPICS_EXCLUDE as EXCLUDE_SETTING
from twinlog.config.mirror import matcher
from twinlog.model.bounds import MIRROR_NAME_CHARS_MAX
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import NO_TOPIC_ID, LeaderEpoch, TopicId, TopicName, TopicPartition

_LEGAL_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")
TOPICS_INCLUDE: Final = "topics.include"
TOPICS_EXCLUDE: Final = "topics.exclude"


@dataclass(frozen=True, slots=True)
class SourceTopic:
    """A topic as the source describes it.

    The id is ``NO_TOPIC_ID`` when the source is too old to have ids (before Kafka 2.8); the
    partition count is None while the source cannot tell it. One that was created since the mirror
    first looked ``is_newer``: all of it is to be mirrored.
    """

    name: str
    id: TopicId
    partition_count: int | None
    config: Mapping[str, str]
    is_newer: bool = False


def check_mirror_name(name: str) -> None:
    """Raise ApiError INVALID_REQUEST unless it can be a mirror's name."""
    if name in (".", "..") or not _LEGAL_NAME.fullmatch(name) or len(name) > MIRROR_NAME_CHARS_MAX:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"The mirror name {name[:300]!r} must be 1 to {MIRROR_NAME_CHARS_MAX} ASCII letters, "
            "digits, '.', '_' or '-', and neither '.' nor '..'.",
        )


def find_mirror(image: ClusterImage, name: str) -> MirrorFact:
    """Give a mirror by name. Raises ApiError UNKNOWN_CLUSTER_MIRROR."""
    mirror = image.mirrors.get(name)
    if mirror is None:
        known = ", ".join(sorted(image.mirrors)[:10]) or "none"
        raise ApiError(
            ErrorCode.UNKNOWN_CLUSTER_MIRROR, f"There is no mirror {name!r}; there is: {known}."
        )
    return mirror


def create_mirror(image: ClusterImage, mirror: MirrorFact) -> tuple[Change, ...]:
    """Give the new mirror, or raise ApiError. Its config and its source were checked before."""
    check_mirror_name(mirror.name)
    if mirror.name in image.mirrors:
        raise ApiError(
            ErrorCode.CLUSTER_MIRROR_ALREADY_EXISTS, f"Mirror {mirror.name} exists already."
        )
    if mirror.source_cluster_id == image.cluster_id:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Mirror {mirror.name} would copy this cluster ({image.cluster_id}) into itself: "
            "bootstrap.servers must be those of another cluster.",
        )
    return (MirrorSet(mirror),)


def delete_mirror(image: ClusterImage, name: str) -> tuple[Change, ...]:
    """Give the removal of a mirror, or raise ApiError while one of its topics is not stopped."""
    find_mirror(image, name)
    topics = tuple(image.topics_of_mirror(name))
    busy = sorted(topic.name for topic in topics if topic.read_only_for is not None)
    if busy:
        more = f" and {len(busy) - 5} more" if len(busy) > 5 else ""
        raise ApiError(
            ErrorCode.INVALID_CLUSTER_MIRROR_STATE,
            f"Mirror {name} still mirrors {', '.join(busy[:5])}{more}. Stop them first: "
            f"kafka-cluster-mirrors.sh --stop --mirror {name} --topics '.*'",
        )
    return (*(TopicMirrorSet(topic.name, None) for topic in topics), MirrorDeleted(name))


def start_topic(
    image: ClusterImage,
    mirror_name: str,
    source: SourceTopic,
    defaults: TopicDefaults,
    chance: Chance,
    check_config: CheckConfig,
) -> tuple[Change, ...]:
    """Give what makes a topic a mirror's topic, MIRRORING; nothing when it is so already.

    A topic that is absent is created with the source's id and partition count (with ``chance``'s
    id for a source without ids). While the source cannot tell the count, nothing is changed: the
    mirror's next refresh creates the topic.
    """
    mirror = find_mirror(image, mirror_name)
    check_topic_name(source.name)
    _check_id_is_free(image, source)
    topic = image.topics.get(TopicName(source.name))
    wanted = MirrorTopicFact(
        mirror_name, DesiredState.MIRRORING, _first_partitions(topic, mirror_name, source)
    )
    if topic is None:
        if source.partition_count is None:
            return ()
        wish = TopicWish(source.name, source.partition_count, config=source.config, mirror=wanted)
        topic_id = chance.topic_id if source.id == NO_TOPIC_ID else source.id
        created = create_topic(
            image, wish, defaults, replace(chance, topic_id=topic_id), check_config
        )
        return created, MirrorSet(mirror)
    if topic.mirror == wanted:
        return ()
    _check_can_start(topic, mirror_name, source)
    is_other = topic.mirror is None or topic.mirror.mirror != mirror_name
    handed_over = _hand_over(topic) if is_other else ()
    return *handed_over, TopicMirrorSet(topic.name, wanted), MirrorSet(mirror)


def _hand_over(topic: TopicFact) -> Iterator[PartitionSet]:
    """Mark when a topic's logs were given to another mirror, in an epoch that begins with it."""
    for index, now in enumerate(topic.partitions):
        yield PartitionSet(
            TopicPartition(topic.name, index),
            replace(
                now,
                leader_epoch=LeaderEpoch(now.leader_epoch + 1),
                partition_epoch=now.partition_epoch + 1,
                handed_over=(now.leader_epoch, now.handed_over[0]),
            ),
        )


def _first_partitions(topic: TopicFact | None, mirror_name: str, source: SourceTopic) -> int:
    """Give how many partitions begin where the operator wants; a restart changes nothing of it."""
    if topic is not None and topic.mirror is not None and topic.mirror.mirror == mirror_name:
        return topic.mirror.first_partitions
    return 0 if source.is_newer else source.partition_count or 0


def stop_topic(image: ClusterImage, mirror_name: str, topic_name: str) -> tuple[Change, ...]:
    """Give what asks for a topic to be STOPPED; nothing when that was asked already."""
    topic, desired = _topic_of(image, mirror_name, topic_name)
    if desired is DesiredState.STOPPED:
        return ()
    return (_desire(topic, DesiredState.STOPPED),)


def pause_topic(image: ClusterImage, mirror_name: str, topic_name: str) -> tuple[Change, ...]:
    """Give what asks for a topic to be PAUSED; nothing when that was asked already."""
    topic, desired = _topic_of(image, mirror_name, topic_name)
    if desired is DesiredState.STOPPED:
        raise ApiError(
            ErrorCode.MIRROR_TOPIC_BEING_STOPPED,
            f"Topic {topic_name} of mirror {mirror_name} is stopped or being stopped; "
            "only a mirrored topic can be paused.",
        )
    if desired is DesiredState.PAUSED:
        return ()
    return (_desire(topic, DesiredState.PAUSED),)


def resume_topic(image: ClusterImage, mirror_name: str, topic_name: str) -> tuple[Change, ...]:
    """Give what asks for a paused topic to be MIRRORING again, or raise ApiError."""
    topic, desired = _topic_of(image, mirror_name, topic_name)
    if desired is not DesiredState.PAUSED:
        raise ApiError(
            ErrorCode.MIRROR_TOPIC_NOT_PAUSED,
            f"Topic {topic_name} of mirror {mirror_name} is not paused, but {desired.value}"
            + ("; start it instead." if desired is DesiredState.STOPPED else "."),
        )
    return (_desire(topic, DesiredState.MIRRORING),)


def bump_leader_epochs(
    image: ClusterImage, wanted: Mapping[TopicPartition, LeaderEpoch]
) -> tuple[Change, ...]:
    """Give what raises each partition's leader epoch strictly above the epoch given for it.

    Epochs that are above already stay as they are. Partitions that are gone are passed over.
    """
    changes: list[Change] = []
    for of, min_epoch in wanted.items():
        now = image.partition(of)
        if now is not None and now.leader_epoch <= min_epoch:
            above = replace(
                now,
                leader_epoch=LeaderEpoch(min_epoch + 1),
                partition_epoch=now.partition_epoch + 1,
            )
            changes.append(PartitionSet(of, above))
    return tuple(changes)


def with_started_patterns(
    mirror: MirrorFact, include: Collection[str], exclude: Collection[str] = ()
) -> MirrorSet:
    """Give the mirror with its filters as a start with these names and patterns leaves them.

    The source was looked at for them by whoever starts them.
    """
    included, excluded = _filters(mirror)
    for pattern in include:
        included[pattern] = None
        excluded.pop(pattern, None)
    for pattern in exclude:
        excluded[pattern] = None
        included.pop(pattern, None)
    started = _with_filters(mirror, included, excluded).mirror
    if mirror.looked_for is not None:
        before = filter(None, mirror.looked_for[0].split(","))
        looked_for = ",".join(dict.fromkeys([*before, *include]))
        return MirrorSet(replace(started, looked_for=(looked_for, filters_of(started)[1])))
    has_more = any(pattern not in include for pattern in included)
    return MirrorSet(started if has_more else replace(started, looked_for=filters_of(started)))


def with_look(
    image: ClusterImage, mirror_name: str, looked_for: tuple[str, str]
) -> tuple[Change, ...]:
    """Give what notes the filters by which a mirror has looked for topics at its source.

    Nothing when they are others by now: whoever changed them may have looked for more.
    """
    mirror = image.mirrors.get(mirror_name)
    if mirror is None or mirror.looked_for == looked_for or filters_of(mirror) != looked_for:
        return ()
    return (MirrorSet(replace(mirror, looked_for=looked_for)),)


def filters_of(mirror: MirrorFact) -> tuple[str, str]:
    """Give the filters in effect, to include and to exclude."""
    included, excluded = _filters(mirror)
    return ",".join(included), ",".join(excluded)


def with_stopped_patterns(mirror: MirrorFact, patterns: Iterable[str]) -> MirrorSet:
    """Give the mirror with its filters so that it will not start these by itself again.

    What was included as it stands, or is matched as it stands, is included no more. Anything else
    is excluded, but only from what is still included: a later start would find nothing otherwise.
    """
    included, excluded = _filters(mirror)
    others: list[str] = []
    for pattern in patterns:
        covers = matcher((pattern,), ())
        stopped = [entry for entry in included if entry == pattern or covers(entry)]
        for entry in stopped:
            del included[entry]
        if pattern not in stopped:
            others.append(pattern)
    if included:
        excluded |= dict.fromkeys(others)
    return _with_filters(mirror, included, excluded)


def _check_id_is_free(image: ClusterImage, source: SourceTopic) -> None:
    if source.id == NO_TOPIC_ID:
        return
    same_id = image.topics_by_id.get(source.id)
    if same_id is not None and same_id.name != source.name:
        raise ApiError(
            ErrorCode.TOPIC_ALREADY_EXISTS,
            f"Topic {source.name} of the source has the id {source.id}, which topic "
            f"{same_id.name} has here; delete that topic first.",
        )


def _check_can_start(topic: TopicFact, mirror_name: str, source: SourceTopic) -> None:
    """Raise ApiError when a topic that exists cannot become the mirror's."""
    current = topic.mirror
    if current is not None and topic.read_only_for is not None:
        if current.mirror != mirror_name:
            raise ApiError(
                ErrorCode.TOPIC_ALREADY_IN_CLUSTER_MIRROR,
                f"Topic {topic.name} belongs to mirror {current.mirror}; stop it there first.",
            )
        raise ApiError(
            ErrorCode.MIRROR_TOPIC_NOT_STOPPED,
            f"Topic {topic.name} of mirror {mirror_name} is {current.desired_state.value}; "
            "resume it, or stop it before it is started again.",
        )
    if source.id == NO_TOPIC_ID:
        if current is None or current.mirror != mirror_name:
            raise ApiError(
                ErrorCode.TOPIC_ALREADY_EXISTS,
                f"Topic {topic.name} exists here, and the source is too old to give its topics "
                "ids: it cannot be known whether they are the same. Delete it here first.",
            )
    elif topic.id != source.id:
        raise ApiError(
            ErrorCode.INCONSISTENT_TOPIC_ID,
            f"Topic {topic.name} exists here with the id {topic.id}, at the source with "
            f"{source.id}: it is another topic. Delete it here first if it is not needed.",
        )
    if source.partition_count is not None and source.partition_count < len(topic.partitions):
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic {topic.name} has {len(topic.partitions)} partitions here and only "
            f"{source.partition_count} at the source; give it as many there first.",
        )


def _topic_of(
    image: ClusterImage, mirror_name: str, topic_name: str
) -> tuple[TopicFact, DesiredState]:
    find_mirror(image, mirror_name)
    topic = find_topic(image, topic_name)
    if topic.mirror is None or topic.mirror.mirror != mirror_name:
        of = f"belongs to mirror {topic.mirror.mirror}" if topic.mirror else "belongs to no mirror"
        raise ApiError(
            ErrorCode.TOPIC_NOT_IN_CLUSTER_MIRROR, f"Topic {topic_name} {of}, not to {mirror_name}."
        )
    return topic, topic.mirror.desired_state


def _desire(topic: TopicFact, state: DesiredState) -> TopicMirrorSet:
    assert topic.mirror is not None, f"{topic.name} is of no mirror"
    return TopicMirrorSet(topic.name, replace(topic.mirror, desired_state=state))


def _filters(mirror: MirrorFact) -> tuple[dict[str, None], dict[str, None]]:
    """Give the include and exclude lists in effect, in order and each entry once."""

    def entries(key: str, default: tuple[str, ...]) -> dict[str, None]:
        given = mirror.config.get(key)
        texts = default if given is None else (text.strip() for text in given.split(","))
        return dict.fromkeys(text for text in texts if text)

    return entries(TOPICS_INCLUDE, ()), entries(TOPICS_EXCLUDE, EXCLUDE_SETTING.default)


def _with_filters(
    mirror: MirrorFact, included: Mapping[str, None], excluded: Mapping[str, None]
) -> MirrorSet:
    config = dict(mirror.config)
    of_keys = (TOPICS_INCLUDE, included, ()), (TOPICS_EXCLUDE, excluded, EXCLUDE_SETTING.default)
    for key, entries, default in of_keys:
        if tuple(entries) != default or key in config:
            config[key] = ",".join(entries)
    return MirrorSet(replace(mirror, config=config))
