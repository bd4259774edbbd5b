import time
from uuid import UUID

import pytest

from twinlog.cluster.changes import (
    BrokerConfigSet,
    BrokerRemoved,
    BrokerSet,
    ClusterNamed,
    MirrorDeleted,
    MirrorSet,
    PartitionsAdded,
    PartitionSet,
    ProducerIdsTaken,
    TopicConfigSet,
    TopicDeleted,
    TopicMirrorSet,
    TopicSet,
)
from twinlog.cluster.facts import (
    BrokerFact,
    DesiredState,
    MirrorFact,
    MirrorTopicFact,
    PartitionFact,
    TopicFact,
)
from twinlog.cluster.image import ClusterImage
from twinlog.model.ids import BrokerId, LeaderEpoch, TopicId, TopicName, TopicPartition

ME = BrokerId(1)


def partition(epoch: int = 0) -> PartitionFact:
    return PartitionFact(ME, LeaderEpoch(epoch), (ME,), (ME,))


def topic(name: str = "orders", number: int = 1, partitions: int = 1) -> TopicFact:
    return TopicFact(TopicName(name), TopicId(UUID(int=number)), (partition(),) * partitions)


def test_a_topic_is_found_by_name_by_id_and_by_metric_name() -> None:
    image = ClusterImage().with_change(TopicSet(topic("a.b", 7)))
    assert image.topics[TopicName("a.b")] is image.topics_by_id[TopicId(UUID(int=7))]
    assert image.names_by_metric["a_b"] == "a.b"
    gone = image.with_change(TopicDeleted(TopicName("a.b")))
    assert (gone.topics, gone.topics_by_id, gone.names_by_metric) == ({}, {}, {})
    assert TopicName("a.b") in image.topics, "an image never changes"


def test_a_topic_created_again_leaves_nothing_of_its_old_id() -> None:
    image = ClusterImage().with_changes([TopicSet(topic(number=1)), TopicSet(topic(number=2))])
    assert list(image.topics_by_id) == [TopicId(UUID(int=2))]


def test_partitions_change_one_by_one_and_grow() -> None:
    image = ClusterImage().with_change(TopicSet(topic(partitions=2)))
    name = TopicName("orders")
    added = PartitionsAdded(name, 2, (partition(5),))
    image = image.with_changes([PartitionSet(TopicPartition(name, 1), partition(3)), added, added])
    assert [p.leader_epoch for p in image.topics[name].partitions] == [0, 3, 5]
    assert image.topics_by_id[TopicId(UUID(int=1))] is image.topics[name]
    assert image.partition(TopicPartition(name, 2)) == partition(5)
    assert image.partition(TopicPartition(name, 3)) is None
    assert image.partition(TopicPartition(name, -1)) is None
    assert image.partition(TopicPartition(TopicName("none"), 0)) is None


def test_changes_of_one_topic_in_one_batch_all_count() -> None:
    name = TopicName("orders")
    mirror = MirrorTopicFact("m", DesiredState.MIRRORING)
    image = ClusterImage().with_changes(
        [
            TopicSet(topic()),
            PartitionSet(TopicPartition(name, 0), partition(3)),
            TopicConfigSet(name, {"retention.ms": "1"}),
            PartitionSet(TopicPartition(name, 0), partition(4)),
            TopicMirrorSet(name, mirror),
        ]
    )
    found = image.topics[name]
    assert found.partitions[0].leader_epoch == 4
    assert found.config == {"retention.ms": "1"}
    assert found.mirror == mirror
    assert found.read_only_for == "m"


def test_brokers_mirrors_configs_and_producer_ids_are_kept() -> None:
    broker = BrokerFact(ME, "localhost", 9092)
    mirror = MirrorFact("m", {"bootstrap.servers": "a:1"}, "source")
    image = ClusterImage().with_changes(
        [
            ClusterNamed("here"),
            BrokerSet(broker),
            MirrorSet(mirror),
            BrokerConfigSet(None, {"log.retention.ms": "5"}),
            ProducerIdsTaken(1_000),
        ]
    )
    assert (image.cluster_id, image.next_producer_id) == ("here", 1_000)
    assert image.brokers == {ME: broker}
    assert image.mirrors == {"m": mirror}
    assert image.broker_configs == {None: {"log.retention.ms": "5"}}
    empty = image.with_changes([BrokerRemoved(ME), MirrorDeleted("m"), BrokerConfigSet(None, {})])
    assert (empty.brokers, empty.mirrors, empty.broker_configs) == ({}, {}, {})


def test_topics_of_a_mirror_are_found_stopped_or_not() -> None:
    image = ClusterImage().with_changes(
        [
            TopicSet(topic("a", 1)),
            TopicSet(topic("b", 2)),
            TopicMirrorSet(TopicName("b"), MirrorTopicFact("m", DesiredState.STOPPED)),
        ]
    )
    assert [t.name for t in image.topics_of_mirror("m")] == ["b"]
    assert image.topics[TopicName("b")].read_only_for is None


@pytest.mark.slow
def test_five_thousand_topics_made_one_by_one_take_no_noticeable_time() -> None:
    image = ClusterImage()
    began = time.process_time()
    for number in range(5_000):
        image = image.with_change(TopicSet(topic(f"t{number}", number)))
    assert time.process_time() - began < 5
    assert len(image.topics) == 5_000


def test_ten_thousand_partitions_of_one_topic_change_in_one_batch() -> None:
    image = ClusterImage().with_change(TopicSet(topic(partitions=10_000)))
    began = time.process_time()
    image = image.with_changes(
        PartitionSet(TopicPartition(TopicName("orders"), index), partition(1))
        for index in range(10_000)
    )
    assert time.process_time() - began < 1
    assert {p.leader_epoch for p in image.topics[TopicName("orders")].partitions} == {1}
