from collections.abc import Mapping
from typing import Any

import pytest

from support.clusters import image_with, mirrored, topic, topic_id
from twinlog.cluster.facts import DesiredState
from twinlog.cluster.image import ClusterImage
from twinlog.cluster.topics import (
    Chance,
    TopicDefaults,
    TopicWish,
    check_topic_name,
    create_topic,
    delete_topic,
    find_topic,
    find_topic_by_id,
    grow_topic,
)
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import TopicName


def takes_all(_: Mapping[str, str]) -> None:
    return


def takes_none(_: Mapping[str, str]) -> None:
    raise ApiError(ErrorCode.INVALID_CONFIG, "no")


def create(image: ClusterImage, name: str = "orders", **wish: Any) -> ClusterImage:
    created = create_topic(
        image,
        TopicWish(name, **wish),
        TopicDefaults(partition_count=3, replication_factor=1),
        Chance(topic_id(100), first_broker=0),
        takes_all,
    )
    return image.with_change(created)


def code_of(image: ClusterImage, name: str = "orders", **wish: Any) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        create(image, name, **wish)
    return refused.value.code


def test_a_topic_gets_what_it_leaves_open_from_the_broker() -> None:
    created = create(image_with()).topics[TopicName("orders")]
    assert (len(created.partitions), created.id) == (3, topic_id(100))
    assert created.partitions[0].replicas == created.partitions[0].isr == (1,)
    assert created.partitions[0].leader_epoch == 0


def test_a_topic_gets_what_it_asks_for() -> None:
    image = create(
        image_with(brokers=3), partition_count=5, replication_factor=2, config={"a": "b"}
    )
    created = image.topics[TopicName("orders")]
    assert [p.replicas for p in created.partitions] == [(1, 2), (2, 3), (3, 1), (1, 2), (2, 3)]
    assert created.config == {"a": "b"}


def test_replicas_can_be_assigned_by_hand() -> None:
    image = create(image_with(brokers=3), assignments={1: [3, 2], 0: [2, 1]})
    assert [p.replicas for p in image.topics[TopicName("orders")].partitions] == [(2, 1), (3, 2)]


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "x" * 249, "...", "__mine"])
def test_kafkas_names_are_taken(name: str) -> None:
    check_topic_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "a/b", "ä", "a\n", "a\0b"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ApiError) as refused:
        check_topic_name(name)
    assert refused.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_name_is_taken_once() -> None:
    assert code_of(image_with(topic())) is ErrorCode.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize(("old", "new"), [("a.b", "a_b"), ("a_b", "a.b"), ("a.b_c", "a_b.c")])
def test_names_that_differ_only_in_dots_and_underscores_collide(old: str, new: str) -> None:
    image = image_with(topic(old))
    assert code_of(image, new) is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_an_id_is_taken_once() -> None:
    assert code_of(image_with(topic("other", 100))) is ErrorCode.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        ({"partition_count": 0}, ErrorCode.INVALID_PARTITIONS),
        ({"partition_count": -2}, ErrorCode.INVALID_PARTITIONS),
        ({"partition_count": 10_001}, ErrorCode.INVALID_PARTITIONS),
        ({"replication_factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"replication_factor": 4}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"assignments": {0: [1]}, "partition_count": 1}, ErrorCode.INVALID_REQUEST),
        ({"assignments": {0: [1]}, "replication_factor": 1}, ErrorCode.INVALID_REQUEST),
        ({"assignments": {1: [1]}}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({"assignments": {0: []}}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({"assignments": {0: [1, 1]}}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({"assignments": {0: [9]}}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({"assignments": {0: [1], 1: [1, 2]}}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_an_impossible_shape_is_refused(wish: dict[str, Any], code: ErrorCode) -> None:
    assert code_of(image_with(brokers=3), **wish) is code


def test_a_config_is_checked() -> None:
    with pytest.raises(ApiError, match="INVALID_CONFIG"):
        create_topic(
            image_with(),
            TopicWish("a"),
            TopicDefaults(1, 1),
            Chance(topic_id(1), 0),
            takes_none,
        )


def test_a_topic_grows_and_its_leaders_stay_even() -> None:
    image = create(image_with(brokers=3), partition_count=2)
    image = image.with_change(grow_topic(image, "orders", 4, None))
    assert [p.leader for p in image.topics[TopicName("orders")].partitions] == [1, 2, 3, 1]


def test_a_topic_grows_by_hand() -> None:
    image = create(image_with(brokers=3), partition_count=1)
    image = image.with_change(grow_topic(image, "orders", 2, [[3]]))
    assert image.topics[TopicName("orders")].partitions[1].replicas == (3,)


@pytest.mark.parametrize(
    ("count", "assignments", "code"),
    [
        (3, None, ErrorCode.INVALID_PARTITIONS),
        (2, None, ErrorCode.INVALID_PARTITIONS),
        (-1, None, ErrorCode.INVALID_PARTITIONS),
        (10_001, None, ErrorCode.INVALID_PARTITIONS),
        (4, [], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (4, [[1, 1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (5, [[1], [9]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_an_impossible_growth_is_refused(
    count: int, assignments: list[list[int]] | None, code: ErrorCode
) -> None:
    with pytest.raises(ApiError) as refused:
        grow_topic(create(image_with()), "orders", count, assignments)
    assert refused.value.code is code


def test_an_assignment_with_fewer_copies_than_the_topic_is_refused() -> None:
    image = create(image_with(brokers=2), replication_factor=2)
    with pytest.raises(ApiError, match="all must have as many"):
        grow_topic(image, "orders", 4, [[1]])


@pytest.mark.parametrize("state", [DesiredState.MIRRORING, DesiredState.PAUSED])
def test_a_mirror_topic_is_neither_grown_nor_deleted_by_clients(state: DesiredState) -> None:
    image = image_with(topic(), mirrored("orders", "a-to-b", state))
    with pytest.raises(ApiError, match=r"--stop --mirror a-to-b --topics orders") as refused:
        grow_topic(image, "orders", 2, None)
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
    with pytest.raises(ApiError, match="POLICY_VIOLATION"):
        delete_topic(image, find_topic(image, "orders"))
    assert grow_topic(image, "orders", 2, None, by_its_mirror=True).first == 1


def test_a_stopped_mirror_topic_is_an_ordinary_topic() -> None:
    image = image_with(topic(), mirrored("orders", "m", DesiredState.STOPPED))
    image = image.with_change(grow_topic(image, "orders", 2, None))
    image = image.with_change(delete_topic(image, find_topic_by_id(image, topic_id(1))))
    assert not image.topics


def test_topics_that_are_absent_are_told_by_name_and_by_id() -> None:
    with pytest.raises(ApiError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        find_topic(image_with(), "a")
    with pytest.raises(ApiError, match="UNKNOWN_TOPIC_ID"):
        find_topic_by_id(image_with(), topic_id(1))
