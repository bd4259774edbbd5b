"""What is asked of a mirror's topics, all in one transaction, and only if it is still up to date.

Whoever decided by what was seen sends the metadata revision it was seen at; where a topic was
asked to be something else since, that is refused, in the transaction that would have changed it.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Final

from twinlog.broker.context import Broker
from twinlog.cluster.changes import Change
from twinlog.cluster.image import ClusterImage
from twinlog.cluster.mirrors import find_mirror, stop_topic, with_stopped_patterns
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import TopicName

Results = dict[TopicName, ApiError | None]
Rule = Callable[[ClusterImage, TopicName], tuple[Change, ...]]

UNCHECKED: Final = -1
"""In place of the revision that a request was decided at: do not check it."""


async def stop_topics(
    broker: Broker,
    mirror: str,
    topics: Iterable[TopicName],
    *,
    patterns: Collection[str] = (),
    decided_at: int = UNCHECKED,
) -> Results:
    """Ask for topics to be STOPPED; one result for each.

    The mirror is kept from starting again what ``patterns`` match, unless a topic was refused
    because it is not as it was when this was decided.
    """

    def keep_stopped(image: ClusterImage, results: Results) -> Iterable[Change]:
        if patterns and not any(_is_outdated(error) for error in results.values()):
            yield with_stopped_patterns(find_mirror(image, mirror), patterns)

    return await ask_topics(
        broker,
        topics,
        lambda image, name: stop_topic(image, mirror, name),
        also=keep_stopped,
        decided_at=decided_at,
    )


async def ask_topics(
    broker: Broker,
    topics: Iterable[TopicName],
    rule: Rule,
    *,
    also: Callable[[ClusterImage, Results], Iterable[Change]] | None = None,
    decided_at: int = UNCHECKED,
) -> Results:
    """Apply a rule of ``cluster/mirrors.py`` to each topic.

    A topic that is refused does not hold up the others. What is so already is never refused.
    """
    names = list(topics)
    results: Results = {}

    def decide(image: ClusterImage) -> list[Change]:
        changes: list[Change] = []
        for name in names:
            try:
                made = rule(image, name)
                if made:
                    check_decided_at(broker, name, decided_at)
                results[name] = None
                changes += made
            except ApiError as error:
                results[name] = _outdated(broker, name, decided_at) or error
        return changes + (list(also(image, results)) if also is not None else [])

    await broker.facts.change(decide)
    return results


def check_decided_at(broker: Broker, topic: TopicName, decided_at: int) -> None:
    """Raise ApiError INVALID_CLUSTER_MIRROR_STATE if the topic was asked something since then."""
    error = _outdated(broker, topic, decided_at)
    if error is not None:
        raise error


def _outdated(broker: Broker, topic: TopicName, decided_at: int) -> ApiError | None:
    changed_at = broker.facts.mirrored_since(topic)
    if decided_at < 0 or changed_at <= decided_at:
        return None
    fact = broker.facts.image.topics.get(topic)
    now = (
        "in no mirror"
        if fact is None or fact.mirror is None
        else f"asked to be {fact.mirror.desired_state.value} in mirror {fact.mirror.mirror}"
    )
    return ApiError(
        ErrorCode.INVALID_CLUSTER_MIRROR_STATE,
        f"topic {topic} is {now} since metadata revision {changed_at}, and this was decided at "
        f"revision {decided_at}: somebody else was faster",
    )


def _is_outdated(error: ApiError | None) -> bool:
    return error is not None and error.code is ErrorCode.INVALID_CLUSTER_MIRROR_STATE
