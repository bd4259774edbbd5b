import pytest

from support.clusters import image_with, topic
from twinlog.cluster.changes import BrokerRemoved, BrokerSet
from twinlog.cluster.elections import broker_gone, broker_started, isr_proposed
from twinlog.cluster.facts import NO_LEADER, BrokerFact, PartitionFact
from twinlog.cluster.image import ClusterImage
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import BrokerId, LeaderEpoch, TopicName, TopicPartition

ONE, TWO = BrokerId(1), BrokerId(2)
OF = TopicPartition(TopicName("orders"), 0)


def partition(image: ClusterImage) -> PartitionFact:
    found = image.partition(OF)
    assert found is not None
    return found


def without(image: ClusterImage, broker: BrokerId) -> ClusterImage:
    image = image.with_change(BrokerRemoved(broker))
    return image.with_changes(broker_gone(image, broker))


def with_started(image: ClusterImage, broker: BrokerId) -> ClusterImage:
    image = image.with_change(BrokerSet(BrokerFact(broker, "host", 9092)))
    return image.with_changes(broker_started(image, broker))


def test_a_broker_that_starts_leads_again_in_a_new_epoch() -> None:
    image = image_with(topic(partitions=3, epoch=4))
    for start in (1, 2, 3):
        image = image.with_changes(broker_started(image, ONE))
        facts = image.topics[TopicName("orders")].partitions
        assert {(p.leader, p.leader_epoch, p.partition_epoch) for p in facts} == {
            (1, 4 + start, start)
        }


def test_the_new_epoch_is_above_every_epoch_in_the_log() -> None:
    image = image_with(topic(epoch=4))
    image = image.with_changes(broker_started(image, ONE, {OF: LeaderEpoch(40)}))
    assert partition(image).leader_epoch == 41


def test_a_broker_without_copies_changes_nothing_by_its_start() -> None:
    assert broker_started(image_with(topic(), brokers=2), TWO) == ()


def test_when_the_leader_goes_the_next_in_sync_replica_leads() -> None:
    image = without(image_with(topic(replicas=(1, 2)), brokers=2), ONE)
    assert partition(image) == PartitionFact(TWO, LeaderEpoch(1), (ONE, TWO), (TWO,), 1)


def test_when_a_follower_goes_only_the_isr_shrinks() -> None:
    image = without(image_with(topic(replicas=(1, 2)), brokers=2), TWO)
    assert partition(image) == PartitionFact(ONE, LeaderEpoch(0), (ONE, TWO), (ONE,), 1)


def test_the_last_in_sync_replica_waits_for_its_own_return() -> None:
    image = without(image_with(topic(replicas=(1, 2)), brokers=2), TWO)
    image = without(image, ONE)
    assert partition(image).leader == NO_LEADER
    assert partition(image).isr == (ONE,)
    image = with_started(image, TWO)
    assert partition(image).leader == NO_LEADER, "its copy may lack what was committed"
    image = with_started(image, ONE)
    assert (partition(image).leader, partition(image).leader_epoch) == (ONE, 2)


def test_a_broker_gone_twice_changes_nothing_more() -> None:
    image = without(image_with(topic(replicas=(1, 2)), brokers=2), ONE)
    assert broker_gone(image, ONE) == ()


def test_a_leader_changes_its_isr() -> None:
    image = image_with(topic(replicas=(1, 2)), brokers=2)
    shrunk = isr_proposed(image, OF, by=ONE, based_on=partition(image), isr=[ONE])
    image = image.with_change(shrunk)
    assert partition(image).isr == (ONE,)
    grown = isr_proposed(image, OF, by=ONE, based_on=partition(image), isr=[TWO, ONE])
    assert grown.partition.isr == (ONE, TWO)


@pytest.mark.parametrize(
    ("by", "leader_epoch", "partition_epoch", "isr", "code"),
    [
        (ONE, -1, 0, [ONE], ErrorCode.FENCED_LEADER_EPOCH),
        (TWO, 0, 0, [TWO], ErrorCode.INVALID_REQUEST),
        (ONE, 0, 7, [ONE], ErrorCode.INVALID_UPDATE_VERSION),
        (ONE, 0, 0, [ONE, BrokerId(9)], ErrorCode.INELIGIBLE_REPLICA),
        (ONE, 0, 0, [TWO], ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_an_isr_is_refused(
    by: BrokerId, leader_epoch: int, partition_epoch: int, isr: list[BrokerId], code: ErrorCode
) -> None:
    image = image_with(topic(replicas=(1, 2)), brokers=2)
    based_on = PartitionFact(by, LeaderEpoch(leader_epoch), (), (), partition_epoch)
    with pytest.raises(ApiError) as refused:
        isr_proposed(image, OF, by=by, based_on=based_on, isr=isr)
    assert refused.value.code is code


def test_an_isr_of_no_partition_is_refused() -> None:
    with pytest.raises(ApiError, match="does not exist"):
        isr_proposed(
            image_with(), OF, by=ONE, based_on=PartitionFact(ONE, LeaderEpoch(0), (), ()), isr=[ONE]
        )
