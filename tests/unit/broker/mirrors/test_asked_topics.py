"""What is asked of topics is done together, and not by who decided on what is no longer so."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from twinlog.broker.mirrors.asked_topics import ask_topics, check_decided_at, stop_topics
from twinlog.cluster.changes import Change, MirrorSet, TopicMirrorSet, TopicSet
from twinlog.cluster.facts import DesiredState, MirrorFact, MirrorTopicFact, TopicFact
from twinlog.cluster.image import ClusterImage
from twinlog.cluster.mirrors import pause_topic
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import TopicId, TopicName

A, B = TopicName("a"), TopicName("b")
PAUSED = MirrorTopicFact("m", DesiredState.PAUSED)
STOPPED = MirrorTopicFact("m", DesiredState.STOPPED)


class Facts:
    """An image whose topics were asked something at the revisions given, and what changes it."""

    def __init__(self, **since: int) -> None:
        live = MirrorTopicFact("m", DesiredState.MIRRORING)
        self.since = since
        self.made: list[Change] = []
        self.image = ClusterImage().with_changes(
            [
                MirrorSet(MirrorFact("m", {"topics.include": "a,b"}, "c")),
                *(
                    TopicSet(TopicFact(name, TopicId(UUID(int=n)), (), mirror=live))
                    for n, name in enumerate((A, B), 1)
                ),
            ]
        )

    def mirrored_since(self, topic: str) -> int:
        return self.since.get(topic, 0)

    async def change(self, decide: Any) -> None:
        self.made = list(decide(self.image))
        self.image = self.image.with_changes(self.made)


def broker_of(**since: int) -> Any:
    return SimpleNamespace(facts=Facts(**since))


def pause(image: ClusterImage, name: TopicName) -> tuple[Change, ...]:
    return pause_topic(image, "m", name)


def codes(results: dict[TopicName, ApiError | None]) -> dict[str, ErrorCode | None]:
    return {name: None if error is None else error.code for name, error in results.items()}


async def test_a_topic_that_was_asked_something_since_is_refused_and_the_others_are_not() -> None:
    broker = broker_of(a=7, b=5)
    results = await ask_topics(broker, [A, B], pause, decided_at=6)
    assert codes(results) == {A: ErrorCode.INVALID_CLUSTER_MIRROR_STATE, B: None}
    assert str(results[A]).endswith(
        "topic a is asked to be MIRRORING in mirror m since metadata revision 7, and this was "
        "decided at revision 6: somebody else was faster"
    )
    assert broker.facts.made == [TopicMirrorSet(B, PAUSED)]


async def test_who_decided_by_the_newest_or_by_nothing_is_not_refused() -> None:
    for decided_at in (7, 8, -1):
        results = await ask_topics(broker_of(a=7), [A], pause, decided_at=decided_at)
        assert codes(results) == {A: None}


async def test_what_is_so_already_is_no_matter_of_who_was_faster() -> None:
    broker = broker_of(a=7)
    await ask_topics(broker, [A], pause)
    assert codes(await ask_topics(broker, [A], pause, decided_at=1)) == {A: None}


async def test_what_cannot_be_is_refused_as_outdated_first() -> None:
    broker = broker_of(a=7)
    await stop_topics(broker, "m", [A])
    newest = await ask_topics(broker, [A], pause, decided_at=7)
    assert codes(newest) == {A: ErrorCode.MIRROR_TOPIC_BEING_STOPPED}
    outdated = await ask_topics(broker, [A], pause, decided_at=6)
    assert codes(outdated) == {A: ErrorCode.INVALID_CLUSTER_MIRROR_STATE}


async def test_a_stop_keeps_its_patterns_from_starting_again_unless_it_was_outdated() -> None:
    broker = broker_of(a=7)
    await stop_topics(broker, "m", [A, B], patterns=["a"], decided_at=6)
    assert broker.facts.made == [TopicMirrorSet(B, STOPPED)]
    await stop_topics(broker, "m", [A, B], patterns=["a"], decided_at=7)
    stopped, filtered = broker.facts.made
    assert stopped == TopicMirrorSet(A, STOPPED)
    assert isinstance(filtered, MirrorSet)
    assert filtered.mirror.config["topics.include"] == "b"


def test_one_topic_is_checked_by_itself() -> None:
    broker = broker_of(a=7)
    check_decided_at(broker, A, 7)
    check_decided_at(broker, A, -1)
    with pytest.raises(ApiError, match="somebody else was faster"):
        check_decided_at(broker, A, 6)
