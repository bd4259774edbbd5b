"""A mirror's topics in the cluster's facts."""

from collections.abc import Mapping
from uuid import UUID

import pytest

from twinlog.broker.mirrors.own_topics import (
    config_changes,
    desired_state,
    filter_rule,
    known_topic_settings,
    newer_topics,
    own_topics,
    taken_over,
)
from twinlog.cluster.changes import TopicConfigSet, TopicMirrorSet, TopicSet
from twinlog.cluster.facts import DesiredState as AskedState
from twinlog.cluster.facts import MirrorFact, MirrorTopicFact, PartitionFact, TopicFact
from twinlog.cluster.image import ClusterImage
from twinlog.mirroring.states import DesiredState
from twinlog.mirroring.topic_sync import OwnTopic
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import BrokerId, LeaderEpoch, TopicId, TopicName

ME = BrokerId(1)
LED = PartitionFact(ME, LeaderEpoch(0), (ME,), (ME,))


def image_of(*topics: tuple[str, AskedState | None, dict[str, str]]) -> ClusterImage:
    changes = [
        TopicSet(
            TopicFact(
                TopicName(name),
                TopicId(UUID(int=number)),
                (LED, LED),
                config,
                None if asked is None else MirrorTopicFact("m", asked),
            )
        )
        for number, (name, asked, config) in enumerate(topics, 1)
    ]
    return ClusterImage().with_changes(changes)


def test_every_topic_of_the_mirror_is_given_stopped_ones_too() -> None:
    image = image_of(("a", AskedState.STOPPED, {}), ("b", None, {}))
    assert own_topics(image, "m") == [
        OwnTopic(TopicName("a"), TopicId(UUID(int=1)), 2, DesiredState.STOPPED)
    ]
    assert own_topics(image, "n") == []


def test_the_two_words_for_what_was_asked_mean_the_same() -> None:
    assert [desired_state(asked) for asked in AskedState] == list(DesiredState)


def test_a_new_topic_takes_over_what_it_can_have_here() -> None:
    overrides = {"retention.ms": "5", "min.insync.replicas": "2", "of.another": "x"}
    assert taken_over(overrides, {"min.insync.replicas"}) == {"retention.ms": "5"}
    assert "retention.ms" in known_topic_settings()


def test_settings_of_live_topics_are_brought_in_step_and_of_no_others() -> None:
    image = image_of(
        ("live", AskedState.MIRRORING, {"retention.ms": "5", "segment.bytes": "9000000"}),
        ("same", AskedState.PAUSED, {"retention.ms": "6"}),
        ("stopped", AskedState.STOPPED, {"retention.ms": "5"}),
        ("unknown", AskedState.MIRRORING, {"retention.ms": "5"}),
    )
    overrides = {
        TopicName(name): {"retention.ms": "6"} for name in ("live", "same", "stopped", "other")
    }
    refused: dict[TopicName, ApiError] = {}
    changes = config_changes("m", overrides, frozenset(), lambda _: None, refused)(image)
    assert changes == [TopicConfigSet(TopicName("live"), {"retention.ms": "6"})]
    assert not refused


def test_settings_that_no_topic_can_have_here_are_refused_and_hold_up_no_other() -> None:
    def check(config: Mapping[str, str]) -> None:
        if config.get("segment.ms") == "0":
            raise ApiError(ErrorCode.INVALID_CONFIG, "segment.ms=0 cannot be")

    image = image_of(("bad", AskedState.MIRRORING, {}), ("good", AskedState.MIRRORING, {}))
    overrides = {TopicName("bad"): {"segment.ms": "0"}, TopicName("good"): {"segment.ms": "9"}}
    refused: dict[TopicName, ApiError] = {}
    changes = config_changes("m", overrides, frozenset(), check, refused)(image)
    assert changes == [TopicConfigSet(TopicName("good"), {"segment.ms": "9"})]
    assert refused[TopicName("bad")].why == "bad: segment.ms=0 cannot be"


def test_a_topic_that_was_looked_for_and_not_found_is_newer_than_the_look() -> None:
    is_newer = newer_topics(MirrorFact("m", {}, "c", ("a.*,b", "ax")))
    assert [name for name in ("a1", "ax", "b", "b1") if is_newer(name)] == ["a1", "b"]
    assert not newer_topics(MirrorFact("m", {}, "c"))("a1")
    assert not newer_topics(MirrorFact("m", {}, "c", ("", "__.*")))("a1")
    assert not newer_topics(None)("a1")


def test_a_filter_starts_what_is_not_here_and_what_is_of_no_mirror_at_its_first_look() -> None:
    made = (TopicMirrorSet(TopicName("t"), MirrorTopicFact("n", AskedState.MIRRORING)),)
    image = image_of(("stopped", AskedState.STOPPED, {}), ("free", None, {}))
    first = filter_rule(lambda *_: made, "n", lambda _: False)
    later = filter_rule(lambda *_: made, "n", lambda _: True)
    for name in ("absent", "free"):
        assert first(image, TopicName(name)) == made
    assert later(image, TopicName("absent")) == made
    for rule, name in ((first, "stopped"), (later, "stopped"), (later, "free")):
        with pytest.raises(ApiError, match=f"Topic {name} takes writes here") as refused:
            rule(image, TopicName(name))
        assert refused.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
        assert f"--start --mirror n --topics '{name}'" in refused.value.why
    assert filter_rule(lambda *_: (), "n", lambda _: True)(image, TopicName("free")) == ()
