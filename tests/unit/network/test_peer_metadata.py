from uuid import UUID

from twinlog.model.ids import BrokerId, TopicName, TopicPartition
from twinlog.network.addresses import Address
from twinlog.network.peer_metadata import PeerMetadata, PeerNode
from twinlog.wire.messages.metadata import (
    MetadataBroker,
    MetadataPartition,
    MetadataResponse,
    MetadataTopic,
)

ORDERS = TopicName("orders")
ORDERS_0 = TopicPartition(ORDERS, 0)
NO_ID = UUID(int=0)


def partition(leader: int, epoch: int, *, index: int = 0, error: int = 0) -> MetadataPartition:
    return MetadataPartition(
        error_code=error,
        partition_index=index,
        leader_id=leader,
        leader_epoch=epoch,
        replica_nodes=(1, 2),
        isr_nodes=(leader,),
    )


def topic(
    *partitions: MetadataPartition, name: str | None = ORDERS, of: UUID = NO_ID, error: int = 0
) -> MetadataTopic:
    return MetadataTopic(error_code=error, name=name, topic_id=of, partitions=partitions)


def told(*topics: MetadataTopic, brokers: tuple[int, ...] = (1, 2)) -> MetadataResponse:
    return MetadataResponse(
        brokers=tuple(MetadataBroker(node_id=b, host="h", port=9000 + b) for b in brokers),
        cluster_id="a cluster",
        controller_id=1,
        topics=topics,
    )


def leader_after(*responses: MetadataResponse) -> tuple[int, int]:
    metadata = PeerMetadata()
    for response in responses:
        metadata.take(response, is_of_all_topics=False)
    known = metadata.partition(ORDERS_0)
    assert known is not None
    return known.leader_id, known.leader_epoch


def test_cluster_brokers_and_partitions_are_known_after_the_first_answer() -> None:
    metadata = PeerMetadata()
    metadata.take(told(topic(partition(2, 5))), is_of_all_topics=False)
    assert metadata.cluster_id == "a cluster"
    assert metadata.controller_id == 1
    assert metadata.nodes[BrokerId(2)] == PeerNode(BrokerId(2), Address("h", 9002))
    assert metadata.partition(TopicPartition(ORDERS, 1)) is None
    assert metadata.partition(TopicPartition(TopicName("unknown"), 0)) is None
    known = metadata.partition(ORDERS_0)
    assert known is not None
    assert (known.leader_id, known.leader_epoch, known.isr) == (2, 5, (2,))


def test_a_leader_epoch_never_goes_back() -> None:
    newer, older = told(topic(partition(2, 5))), told(topic(partition(1, 4)))
    assert leader_after(newer, older) == (2, 5)
    assert leader_after(older, newer) == (2, 5)


def test_an_equal_epoch_may_tell_that_there_is_no_leader() -> None:
    assert leader_after(told(topic(partition(2, 5))), told(topic(partition(-1, 5)))) == (-1, 5)


def test_a_topic_with_another_id_begins_anew() -> None:
    first, second = UUID(int=1), UUID(int=2)
    before = told(topic(partition(2, 5), of=first))
    after = told(topic(partition(1, 0), of=second))
    assert leader_after(before, after) == (1, 0)
    assert leader_after(before, told(topic(partition(1, 0), of=first))) == (2, 5)


def test_a_cluster_without_epochs_is_believed() -> None:
    assert leader_after(told(topic(partition(2, -1))), told(topic(partition(1, -1)))) == (1, -1)


def test_a_topic_that_is_unknown_to_its_cluster_is_forgotten_with_its_epochs() -> None:
    gone = told(topic(error=3))
    assert leader_after(told(topic(partition(2, 5))), gone, told(topic(partition(1, 0)))) == (1, 0)


def test_a_passing_error_leaves_what_is_known() -> None:
    assert leader_after(told(topic(partition(2, 5))), told(topic(error=5))) == (2, 5)


def test_topics_missing_from_an_answer_about_all_are_forgotten() -> None:
    metadata = PeerMetadata()
    metadata.take(told(topic(partition(1, 1))), is_of_all_topics=False)
    metadata.take(told(topic(partition(1, 1), name="other")), is_of_all_topics=False)
    assert set(metadata.topics) == {"orders", "other"}
    metadata.take(told(topic(partition(1, 1), name="other")), is_of_all_topics=True)
    assert set(metadata.topics) == {"other"}


def test_topics_with_an_error_are_told_of() -> None:
    metadata = PeerMetadata()
    answer = told(topic(error=3), topic(error=29, name="secret"), topic(error=100, name=None))
    topics = metadata.take(answer, is_of_all_topics=False)
    assert [(t.name, t.error_code) for t in topics] == [("orders", 3), ("secret", 29)]


def test_an_answer_without_brokers_leaves_those_known() -> None:
    metadata = PeerMetadata()
    metadata.take(told(), is_of_all_topics=False)
    metadata.take(told(brokers=()), is_of_all_topics=False)
    metadata.learn_node(PeerNode(BrokerId(7), Address("h", 9007)))
    assert set(metadata.nodes) == {1, 2, 7}
