"""A mirror's topics in the cluster's facts: read, started, reconfigured."""

from collections.abc import Callable, Collection, Iterable, Mapping

from twinlog.broker.context import Broker
from twinlog.broker.mirrors.asked_topics import Rule
from twinlog.cluster.changes import Change, TopicConfigSet
from twinlog.cluster.facts import DesiredState as AskedState
from twinlog.cluster.facts import MirrorFact
from twinlog.cluster.image import ClusterImage
from twinlog.cluster.mirrors import SourceTopic, start_topic
from twinlog.config.mirror import matcher
from twinlog.config.topic import TOPIC
from twinlog.mirroring.config_sync import plan_config
from twinlog.mirroring.states import DesiredState
from twinlog.mirroring.topic_sync import OwnTopic, SeenTopic
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import TopicName


def desired_state(asked: AskedState) -> DesiredState:
    """Give what was asked of a topic in the words of its partitions' machines."""
    return DesiredState[asked.name]


def own_topics(image: ClusterImage, mirror: str) -> list[OwnTopic]:
    """Give all topics of a mirror, stopped ones too."""
    return [
        OwnTopic(
            topic.name,
            topic.id,
            len(topic.partitions),
            desired_state(topic.mirror.desired_state),
        )
        for topic in image.topics_of_mirror(mirror)
        if topic.mirror is not None
    ]


def known_topic_settings() -> frozenset[str]:
    """Give the names of the settings that a topic can have here."""
    return frozenset(setting.name for setting in TOPIC.settings)


def taken_over(overrides: Mapping[str, str], excluded: Collection[str]) -> dict[str, str]:
    """Give what a new topic takes over of its source's settings."""
    return dict(plan_config(overrides, {}, excluded, known_topic_settings()).to_set)


def newer_topics(mirror: MirrorFact | None) -> Callable[[str], bool]:
    """Give the test for topics that were created since the mirror last looked.

    What it looked for then and is not its own was not there.
    """
    if mirror is None or mirror.looked_for is None:
        return lambda _: False
    include, exclude = (words.split(",") if words else () for words in mirror.looked_for)
    return matcher(include, exclude)


def start_rule(
    broker: Broker,
    mirror: str,
    topics: Iterable[SeenTopic],
    overrides: Mapping[TopicName, Mapping[str, str]],
    excluded: Collection[str],
    is_newer: Callable[[str], bool] = lambda _: False,
) -> Rule:
    """Give the rule that makes a topic the mirror's, MIRRORING.

    Of one that ``is_newer`` than the mirror's last look, everything is mirrored.
    """
    by_name = {topic.name: topic for topic in topics}
    new = broker.new_topics

    def start(image: ClusterImage, name: TopicName) -> tuple[Change, ...]:
        topic = by_name[name]
        config = taken_over(overrides.get(name, {}), excluded)
        count = topic.partition_count
        source = SourceTopic(name, topic.id, count, config, is_newer=is_newer(name))
        return start_topic(image, mirror, source, new.defaults, new.chance(), new.check_config)

    return start


def filter_rule(start: Rule, mirror: str, is_newer: Callable[[str], bool]) -> Rule:
    """Give the rule of a start that only the filters ask for: what takes writes stays as it is.

    Its records of here would be cut off, and nobody asked for that. So it is for a topic that was
    stopped in another mirror. One of no mirror is taken by the first look with new filters, which
    are about what is there then, and by no later one: that one was let go of since.
    """

    def decide(image: ClusterImage, name: TopicName) -> tuple[Change, ...]:
        changes = start(image, name)
        topic = image.topics.get(name)
        if not changes or topic is None or not (topic.mirror or is_newer(name)):
            return changes
        stopped = f", since mirror {topic.mirror.mirror} was stopped for it" if topic.mirror else ""
        raise ApiError(
            ErrorCode.TOPIC_ALREADY_EXISTS,
            f"Topic {name} takes writes here{stopped}: it matches topics.include, but is started "
            f"by an operator only (kafka-cluster-mirrors.sh --start --mirror {mirror} --topics "
            f"'{name}'), as what was written here would be cut off. To leave it as it is, add it "
            "to topics.exclude.",
        )

    return decide


def config_changes(
    mirror: str,
    overrides: Mapping[TopicName, Mapping[str, str]],
    excluded: Collection[str],
    check_config: Callable[[Mapping[str, str]], None],
    refused: dict[TopicName, ApiError],
) -> Callable[[ClusterImage], list[Change]]:
    """Give the rule that brings the settings of a mirror's live topics in step.

    ``refused`` takes the topics whose settings no topic can have here, which stay as they are.
    """
    known = known_topic_settings()

    def decide(image: ClusterImage) -> list[Change]:
        changes: list[Change] = []
        for topic in image.topics_of_mirror(mirror):
            is_live = topic.mirror is not None and (
                topic.mirror.desired_state is not AskedState.STOPPED
            )
            if not is_live or topic.name not in overrides:
                continue
            plan = plan_config(overrides[topic.name], topic.config, excluded, known)
            if not plan.is_empty:
                kept = {k: v for k, v in topic.config.items() if k not in plan.to_delete}
                config = {**kept, **plan.to_set}
                try:
                    check_config(config)
                except ApiError as error:
                    refused[topic.name] = ApiError(error.code, f"{topic.name}: {error.why}")
                    continue
                changes.append(TopicConfigSet(topic.name, config))
        return changes

    return decide
