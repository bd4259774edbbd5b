"""Source topics and a mirror's own -> what to start, grow and stop, and which are lost.

A source topic that is gone never takes its copy along. It is believed gone, or another one under
the same name, when that was seen twice in a row: metadata can lie for a moment.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from twinlog.mirroring.states import DesiredState
from twinlog.model.ids import NO_TOPIC_ID, TopicId, TopicName

OBSERVATIONS_NEEDED: Final = 2


@dataclass(frozen=True, slots=True)
class SeenTopic:
    """A topic at the source; the id is all zeroes where the source has none."""

    name: TopicName
    id: TopicId
    partition_count: int


@dataclass(frozen=True, slots=True)
class OwnTopic:
    """A topic of the mirror here."""

    name: TopicName
    id: TopicId
    partition_count: int
    desired: DesiredState


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """What would bring the mirror's topics in step with the source."""

    start: tuple[SeenTopic, ...] = ()
    grow: tuple[SeenTopic, ...] = ()
    stop: tuple[TopicName, ...] = ()
    """Topics that an exclude pattern matches by now."""
    suspects: Mapping[TopicName, str] = field(default_factory=dict)
    """Topics that are gone at the source, or others by now, and which of the two."""


def plan_topics(
    seen: Mapping[TopicName, SeenTopic],
    own: Iterable[OwnTopic],
    is_wanted: Callable[[str], bool],
    is_excluded: Callable[[str], bool],
) -> TopicPlan:
    """Compare all topics of the source with all of the mirror, stopped ones too.

    A stopped topic is left alone, and is not started again by itself.
    """
    start: list[SeenTopic] = []
    grow: list[SeenTopic] = []
    stop: list[TopicName] = []
    suspects: dict[TopicName, str] = {}
    known: set[TopicName] = set()
    for topic in own:
        known.add(topic.name)
        if topic.desired == DesiredState.STOPPED:
            continue
        if is_excluded(topic.name):
            stop.append(topic.name)
            continue
        there = seen.get(topic.name)
        why = _suspicion(topic, there)
        if why is not None:
            suspects[topic.name] = why
        elif there is not None and there.partition_count > topic.partition_count:
            grow.append(there)
    start = [seen[name] for name in sorted(seen) if name not in known and is_wanted(name)]
    return TopicPlan(tuple(start), tuple(grow), tuple(stop), suspects)


def is_same_topic(here: TopicId, there: TopicId) -> bool:
    """Compare the ids that a name has on two sides; one that has none leaves nothing to compare."""
    return NO_TOPIC_ID in (here, there) or here == there


def _suspicion(topic: OwnTopic, there: SeenTopic | None) -> str | None:
    if there is None:
        return f"topic {topic.name} was deleted at the source; what was mirrored is kept here"
    if is_same_topic(topic.id, there.id):
        if there.partition_count < topic.partition_count:
            return (
                f"topic {topic.name} has {there.partition_count} partitions at the source and "
                f"{topic.partition_count} here: it was deleted and created again"
            )
        return None
    return (
        f"topic {topic.name} was deleted at the source and created again (its id is {there.id} "
        f"there, {topic.id} here); what was mirrored is kept here and not mixed with the new one"
    )


class Suspicions:
    """Counts how often in a row a topic was missed at the source."""

    def __init__(self) -> None:
        self._counts: dict[TopicName, int] = {}

    def confirm(self, suspects: Mapping[TopicName, str]) -> dict[TopicName, str]:
        """Take one look's suspects; give those that were suspects often enough by now."""
        self._counts = {name: self._counts.get(name, 0) + 1 for name in suspects}
        return {
            name: why for name, why in suspects.items() if self._counts[name] >= OBSERVATIONS_NEEDED
        }

    @property
    def are_open(self) -> bool:
        """Whether some topic should be looked at again soon."""
        return any(count < OBSERVATIONS_NEEDED for count in self._counts.values())
