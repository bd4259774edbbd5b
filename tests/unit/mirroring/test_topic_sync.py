"""What brings a mirror's topics in step with its source."""

from uuid import UUID

from twinlog.mirroring.states import DesiredState
from twinlog.mirroring.topic_sync import (
    OwnTopic,
    SeenTopic,
    Suspicions,
    TopicPlan,
    plan_topics,
)
from twinlog.model.ids import NO_TOPIC_ID, TopicId, TopicName

ID = TopicId(UUID(int=1))
OTHER = TopicId(UUID(int=2))


def seen(name: str, count: int = 1, topic_id: TopicId = ID) -> SeenTopic:
    return SeenTopic(TopicName(name), topic_id, count)


def own(
    name: str, count: int = 1, desired: DesiredState = DesiredState.MIRRORING, id_: TopicId = ID
) -> OwnTopic:
    return OwnTopic(TopicName(name), id_, count, desired)


def plan(there: list[SeenTopic], here: list[OwnTopic]) -> TopicPlan:
    return plan_topics(
        {topic.name: topic for topic in there},
        here,
        lambda name: name.startswith("a"),
        lambda name: name.endswith("!"),
    )


def test_topics_that_are_wanted_and_new_are_started() -> None:
    found = plan([seen("a2"), seen("b"), seen("a1")], [own("a2")])
    assert [topic.name for topic in found.start] == ["a1"]


def test_a_stopped_topic_is_neither_started_again_nor_grown_nor_missed() -> None:
    stopped = own("a1", 1, DesiredState.STOPPED)
    assert plan([seen("a1", 5)], [stopped]) == TopicPlan()
    assert plan([], [stopped]) == TopicPlan()


def test_partitions_grow_with_the_source() -> None:
    assert plan([seen("a1", 3)], [own("a1", 2)]).grow == (seen("a1", 3),)


def test_topics_that_came_to_be_excluded_are_stopped() -> None:
    assert plan([seen("a1!")], [own("a1!")]).stop == ("a1!",)


def test_topics_that_are_gone_or_others_are_suspects() -> None:
    found = plan(
        [seen("a2", 1, OTHER), seen("a3", 1), seen("a4", 1, NO_TOPIC_ID)],
        [own("a1"), own("a2"), own("a3", 2), own("a4")],
    )
    assert sorted(found.suspects) == ["a1", "a2", "a3"]
    assert "deleted at the source" in found.suspects[TopicName("a1")]
    assert "created again" in found.suspects[TopicName("a2")]
    assert "1 partitions at the source and 2 here" in found.suspects[TopicName("a3")]


def test_a_suspicion_is_believed_the_second_time_in_a_row() -> None:
    suspicions = Suspicions()
    name = TopicName("a")
    assert suspicions.confirm({name: "gone"}) == {}
    assert suspicions.are_open
    assert suspicions.confirm({}) == {}
    assert suspicions.confirm({name: "gone"}) == {}
    assert suspicions.confirm({name: "gone"}) == {name: "gone"}
    assert not suspicions.are_open
