from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from support.clusters import CLUSTER_ID, image_with, mirrored, topic, topic_id
from twinlog.cluster.changes import Change, MirrorDeleted, MirrorSet
from twinlog.cluster.facts import DesiredState, MirrorFact, MirrorTopicFact
from twinlog.cluster.image import ClusterImage
from twinlog.cluster.mirrors import (
    SourceTopic,
    bump_leader_epochs,
    check_mirror_name,
    create_mirror,
    delete_mirror,
    filters_of,
    find_mirror,
    pause_topic,
    resume_topic,
    start_topic,
    stop_topic,
    with_look,
    with_started_patterns,
    with_stopped_patterns,
)
from twinlog.cluster.topics import Chance, TopicDefaults
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import NO_TOPIC_ID, LeaderEpoch, TopicName, TopicPartition

MIRROR = MirrorFact("a-to-b", {"bootstrap.servers": "a:9092"}, "source")
MIRRORING, PAUSED, STOPPED = DesiredState.MIRRORING, DesiredState.PAUSED, DesiredState.STOPPED
ORDERS = TopicName("orders")


def takes_all(_: Mapping[str, str]) -> None:
    return


def mirrored_image(*changes: Change) -> ClusterImage:
    return image_with(MirrorSet(MIRROR), MirrorSet(MirrorFact("other", {}, "third")), *changes)


def start(image: ClusterImage, **source: Any) -> tuple[Change, ...]:
    fields: dict[str, Any] = {"name": "orders", "id": topic_id(1), "partition_count": 2}
    return start_topic(
        image,
        "a-to-b",
        SourceTopic(**{**fields, "config": {"retention.ms": "5"}, **source}),
        TopicDefaults(9, 1),
        Chance(topic_id(77), 0),
        takes_all,
    )


def code_of(refused: pytest.ExceptionInfo[ApiError]) -> ErrorCode:
    return refused.value.code


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "x" * 250, "ü"])
def test_a_mirror_cannot_have_any_name(name: str) -> None:
    with pytest.raises(ApiError, match="mirror name"):
        check_mirror_name(name)


def test_a_mirror_is_made_once() -> None:
    image = image_with()
    image = image.with_changes(create_mirror(image, MIRROR))
    assert find_mirror(image, "a-to-b") == MIRROR
    with pytest.raises(ApiError) as refused:
        create_mirror(image, MIRROR)
    assert code_of(refused) is ErrorCode.CLUSTER_MIRROR_ALREADY_EXISTS


def test_a_cluster_does_not_mirror_itself() -> None:
    with pytest.raises(ApiError, match="into itself"):
        create_mirror(image_with(), MirrorFact("m", {}, CLUSTER_ID))


def test_an_absent_mirror_is_told_with_those_there_are() -> None:
    with pytest.raises(ApiError, match=r"no mirror 'x'; there is: a-to-b, other") as refused:
        find_mirror(mirrored_image(), "x")
    assert code_of(refused) is ErrorCode.UNKNOWN_CLUSTER_MIRROR


def test_a_mirror_goes_when_all_its_topics_are_stopped() -> None:
    image = mirrored_image(topic(), mirrored("orders", "a-to-b", PAUSED))
    with pytest.raises(ApiError, match="still mirrors orders") as refused:
        delete_mirror(image, "a-to-b")
    assert code_of(refused) is ErrorCode.INVALID_CLUSTER_MIRROR_STATE
    image = image.with_changes(stop_topic(image, "a-to-b", "orders"))
    changes = delete_mirror(image, "a-to-b")
    assert MirrorDeleted("a-to-b") in changes
    image = image.with_changes(changes)
    assert "a-to-b" not in image.mirrors
    assert image.topics[ORDERS].mirror is None


def test_a_started_topic_is_made_with_the_sources_id_count_and_config() -> None:
    image = mirrored_image()
    image = image.with_changes(start(image))
    made = image.topics[ORDERS]
    assert (made.id, len(made.partitions), made.config) == (topic_id(1), 2, {"retention.ms": "5"})
    assert made.read_only_for == "a-to-b"
    assert start(image) == (), "again: nothing to do"


def test_a_topic_of_a_source_without_ids_gets_an_id_of_its_own() -> None:
    image = mirrored_image()
    image = image.with_changes(start(image, id=NO_TOPIC_ID))
    assert image.topics[ORDERS].id == topic_id(77)
    image = image.with_changes(stop_topic(image, "a-to-b", "orders"))
    image = image.with_changes(start(image, id=NO_TOPIC_ID))
    assert image.topics[ORDERS].read_only_for == "a-to-b"


def test_a_topic_whose_partitions_are_not_known_yet_waits_for_the_next_refresh() -> None:
    assert start(mirrored_image(), partition_count=None) == ()


def test_starting_and_deleting_a_mirror_at_once_meet_in_the_store() -> None:
    assert MirrorSet(MIRROR) in start(mirrored_image())


def test_a_topic_with_the_same_id_is_attached_for_failback() -> None:
    image = mirrored_image(topic(partitions=2))
    image = image.with_changes(start(image))
    assert image.topics[ORDERS].read_only_for == "a-to-b"


@pytest.mark.parametrize(
    ("changes", "source", "code"),
    [
        ((topic(number=9),), {}, ErrorCode.INCONSISTENT_TOPIC_ID),
        ((topic("else", 1),), {}, ErrorCode.TOPIC_ALREADY_EXISTS),
        ((topic(),), {"id": NO_TOPIC_ID}, ErrorCode.TOPIC_ALREADY_EXISTS),
        (
            (topic(), mirrored("orders", "other", MIRRORING)),
            {},
            ErrorCode.TOPIC_ALREADY_IN_CLUSTER_MIRROR,
        ),
        (
            (topic(), mirrored("orders", "a-to-b", PAUSED)),
            {},
            ErrorCode.MIRROR_TOPIC_NOT_STOPPED,
        ),
        ((topic(partitions=3),), {}, ErrorCode.INVALID_PARTITIONS),
        ((), {"name": "a b"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_a_start_is_refused(
    changes: tuple[Change, ...], source: dict[str, Any], code: ErrorCode
) -> None:
    with pytest.raises(ApiError) as refused:
        start(mirrored_image(*changes), **source)
    assert code_of(refused) is code


def test_a_topic_another_mirror_has_stopped_can_be_started_in_this_one() -> None:
    image = mirrored_image(topic(partitions=2), mirrored("orders", "other", STOPPED))
    image = image.with_changes(start(image))
    assert image.topics[ORDERS].read_only_for == "a-to-b"


def handed_over(image: ClusterImage) -> set[tuple[int, tuple[int, int]]]:
    """Give leader epochs, and those at which the partitions were given to another mirror."""
    return {(p.leader_epoch, p.handed_over) for p in image.topics[ORDERS].partitions}


def test_a_log_given_to_another_mirror_begins_an_epoch_that_is_noted() -> None:
    created = mirrored_image()
    created = created.with_changes(start(created))
    assert handed_over(created) == {(0, (-1, -1))}
    stopped = created.with_changes(stop_topic(created, "a-to-b", "orders"))
    assert handed_over(stopped.with_changes(start(stopped))) == {(0, (-1, -1))}, "the same again"
    elsewhere = stopped.with_change(mirrored("orders", "other", STOPPED))
    back = elsewhere.with_changes(start(elsewhere))
    assert handed_over(back) == {(1, (0, -1))}
    deleted = back.with_changes(stop_topic(back, "a-to-b", "orders"))
    deleted = deleted.with_changes(delete_mirror(deleted, "a-to-b")).with_change(MirrorSet(MIRROR))
    assert handed_over(deleted.with_changes(start(deleted))) == {(2, (1, 0))}


def test_partitions_begin_where_the_operator_wants_if_the_mirror_was_told_of_them_first() -> None:
    image = mirrored_image()
    first = image.with_changes(start(image))
    assert first.topics[ORDERS].mirror == MirrorTopicFact("a-to-b", MIRRORING, 2)
    newer = image.with_changes(start(image, is_newer=True))
    assert newer.topics[ORDERS].mirror == MirrorTopicFact("a-to-b", MIRRORING, 0)
    stopped = first.with_changes(stop_topic(first, "a-to-b", "orders"))
    assert stopped.topics[ORDERS].mirror == MirrorTopicFact("a-to-b", STOPPED, 2)
    again = stopped.with_changes(start(stopped, partition_count=3))
    assert again.topics[ORDERS].mirror == MirrorTopicFact("a-to-b", MIRRORING, 2)


def test_a_topic_is_paused_resumed_and_stopped() -> None:
    image = mirrored_image(topic(), mirrored("orders", "a-to-b", MIRRORING))
    for step, state in [
        (pause_topic, PAUSED),
        (pause_topic, PAUSED),
        (resume_topic, MIRRORING),
        (pause_topic, PAUSED),
        (stop_topic, STOPPED),
        (stop_topic, STOPPED),
    ]:
        image = image.with_changes(step(image, "a-to-b", "orders"))
        mirror = image.topics[ORDERS].mirror
        assert mirror is not None
        assert mirror.desired_state is state


def test_a_stopped_topic_is_neither_paused_nor_resumed() -> None:
    image = mirrored_image(topic(), mirrored("orders", "a-to-b", STOPPED))
    with pytest.raises(ApiError) as refused:
        pause_topic(image, "a-to-b", "orders")
    assert code_of(refused) is ErrorCode.MIRROR_TOPIC_BEING_STOPPED
    with pytest.raises(ApiError, match="start it instead") as refused:
        resume_topic(image, "a-to-b", "orders")
    assert code_of(refused) is ErrorCode.MIRROR_TOPIC_NOT_PAUSED


@pytest.mark.parametrize(
    ("mirror", "name", "code"),
    [
        ("none", "orders", ErrorCode.UNKNOWN_CLUSTER_MIRROR),
        ("a-to-b", "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("other", "orders", ErrorCode.TOPIC_NOT_IN_CLUSTER_MIRROR),
        ("other", "plain", ErrorCode.TOPIC_NOT_IN_CLUSTER_MIRROR),
    ],
)
def test_a_topic_is_stopped_only_in_its_own_mirror(mirror: str, name: str, code: ErrorCode) -> None:
    image = mirrored_image(topic(), topic("plain", 2), mirrored("orders", "a-to-b", MIRRORING))
    with pytest.raises(ApiError) as refused:
        stop_topic(image, mirror, name)
    assert code_of(refused) is code


def test_a_bump_raises_epochs_strictly_above_and_never_lowers_them() -> None:
    image = mirrored_image(topic(partitions=3, epoch=5))
    wanted = {
        TopicPartition(ORDERS, 0): LeaderEpoch(4),
        TopicPartition(ORDERS, 1): LeaderEpoch(5),
        TopicPartition(ORDERS, 2): LeaderEpoch(20),
        TopicPartition(ORDERS, 3): LeaderEpoch(20),
        TopicPartition(TopicName("gone"), 0): LeaderEpoch(20),
    }
    image = image.with_changes(bump_leader_epochs(image, wanted))
    assert [p.leader_epoch for p in image.topics[ORDERS].partitions] == [5, 6, 21]
    assert [p.partition_epoch for p in image.topics[ORDERS].partitions] == [0, 1, 1]
    assert bump_leader_epochs(image, wanted) == ()


def test_a_start_edits_the_filters() -> None:
    mirror = MirrorFact("m", {"topics.include": "a", "topics.exclude": "__.*, b"}, "s")
    started = with_started_patterns(mirror, ["b", "c.*"], ["a"]).mirror
    assert started.config == {"topics.include": "b,c.*", "topics.exclude": "__.*,a"}


def test_a_stop_takes_a_pattern_out_of_what_is_included_or_excludes_it() -> None:
    mirror = MirrorFact("m", {"topics.include": "a,b.*"}, "s")
    stopped = with_stopped_patterns(mirror, ["a", "b1"]).mirror
    assert stopped.config == {"topics.include": "b.*", "topics.exclude": "__.*,b1"}


def test_a_stop_of_everything_leaves_nothing_that_would_hide_a_later_start() -> None:
    mirror = MirrorFact("m", {"topics.include": "orders,payments-.*"}, "s")
    stopped = with_stopped_patterns(mirror, [".*"]).mirror
    assert stopped.config == {"topics.include": ""}
    again = with_started_patterns(stopped, ["orders"]).mirror
    assert again.config == {"topics.include": "orders"}


def test_filters_that_were_not_given_stay_so() -> None:
    assert with_stopped_patterns(MIRROR, []).mirror == MIRROR


def test_a_start_has_looked_for_what_it_starts_and_for_nothing_else() -> None:
    named = with_started_patterns(MIRROR, ["a"]).mirror
    assert named.looked_for == ("a", "__.*")
    more = with_started_patterns(named, ["b.*"], ["c"]).mirror
    assert more.looked_for == ("a,b.*", "__.*,c")
    never_looked = replace(MIRROR, config={**MIRROR.config, "topics.include": "x"})
    assert with_started_patterns(never_looked, ["a"]).mirror.looked_for is None


def test_a_look_is_noted_once_and_only_of_a_mirror_that_is_there() -> None:
    image = mirrored_image()
    looked = with_look(image, "a-to-b", ("", "__.*"))
    assert looked == (MirrorSet(replace(MIRROR, looked_for=("", "__.*"))),)
    assert with_look(image.with_changes(looked), "a-to-b", ("", "__.*")) == ()
    assert with_look(image, "none", ("", "__.*")) == ()
    assert filters_of(MIRROR) == ("", "__.*")


def test_a_look_by_filters_of_before_takes_nothing_away_from_a_later_one() -> None:
    looked = replace(MIRROR, looked_for=("", "__.*"))
    image = mirrored_image(with_started_patterns(looked, ["orders.*"]))
    assert image.mirrors["a-to-b"].looked_for == ("orders.*", "__.*")
    assert with_look(image, "a-to-b", ("", "__.*")) == ()
