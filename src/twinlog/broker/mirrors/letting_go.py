"""Which topics cannot be started in a mirror yet, since their stop in another one is not through.

What a mirror noted of a partition stays when another mirror takes the log over. A stop that was
left half done would be ended when the topic comes back, and take what had been written meanwhile
for what both clusters agree on.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from twinlog.broker.context import Broker
from twinlog.broker.mirrors.asked_topics import Rule, check_decided_at
from twinlog.broker.mirrors.descriptions import keys_of, known_partitions, state_of
from twinlog.cluster.changes import Change
from twinlog.cluster.image import ClusterImage
from twinlog.mirroring.states import MirrorState
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import TopicName


@dataclass(frozen=True, slots=True)
class LettingGo:
    """What was seen of topics that other mirrors have, at a metadata revision."""

    broker: Broker
    looked_at: int
    topics: frozenset[TopicName]
    held: dict[TopicName, ApiError]

    @classmethod
    async def look(cls, broker: Broker, mirror: str, names: Iterable[TopicName]) -> "LettingGo":
        """Look which topics another mirror still has. Raises ApiError while a shard loads."""
        looked_at, image = broker.facts.image_revision, broker.facts.image
        found = [image.topics[name] for name in names if name in image.topics]
        of_others = [one for one in found if one.mirror and one.mirror.mirror != mirror]
        known = await known_partitions(broker) if of_others else {}
        held: dict[TopicName, ApiError] = {}
        for topic in of_others:
            assert topic.mirror is not None
            other = topic.mirror.mirror
            for of in keys_of(other, topic):
                state = state_of(known, of)
                if state not in (MirrorState.STOPPED, MirrorState.UNKNOWN):
                    held[topic.name] = ApiError(
                        ErrorCode.MIRROR_TOPIC_BEING_STOPPED,
                        f"Topic {topic.name} is not yet let go of by mirror {other}: "
                        f"{topic.name}-{of.partition} is {state.name} there. Start it once it is "
                        f"STOPPED: kafka-cluster-mirrors.sh --wait --state STOPPED --mirror "
                        f"{other} --topics '{topic.name}'",
                    )
        return cls(broker, looked_at, frozenset(topic.name for topic in of_others), held)

    def rule(self, start: Rule) -> Rule:
        """Give the rule of a start that holds back what is not let go of."""

        def decide(image: ClusterImage, name: TopicName) -> tuple[Change, ...]:
            changes = start(image, name)  # what it refuses anyhow, it says better
            if name in self.held:
                raise self.held[name]
            if name in self.topics:
                check_decided_at(self.broker, name, self.looked_at)
            return changes

        return decide
