from dataclasses import replace
from uuid import UUID

import pytest

from twinlog.cluster.changes import (
    BrokerConfigSet,
    BrokerRemoved,
    BrokerSet,
    Change,
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
from twinlog.cluster.records import FactError, StoredFact, change_of, image_of, stored_facts
from twinlog.model.ids import NO_EPOCH, BrokerId, LeaderEpoch, TopicId, TopicName, TopicPartition

ME = BrokerId(1)
NAME = TopicName("orders")
PARTITION = PartitionFact(ME, LeaderEpoch(4), (ME, BrokerId(2)), (ME,), 9)
TOPIC = TopicFact(NAME, TopicId(UUID(int=5)), (PARTITION,), {"retention.ms": "1"})
STEPS: list[Change] = [
    ClusterNamed("abc"),
    BrokerSet(BrokerFact(ME, "host", 9092, "rack", 3)),
    TopicSet(TOPIC),
    PartitionSet(TopicPartition(NAME, 0), PARTITION),
    PartitionSet(
        TopicPartition(NAME, 0), replace(PARTITION, handed_over=(LeaderEpoch(4), NO_EPOCH))
    ),
    PartitionsAdded(NAME, 1, (PARTITION,)),
    TopicConfigSet(NAME, {"a": "b"}),
    TopicMirrorSet(NAME, MirrorTopicFact("m", DesiredState.PAUSED, 3)),
    MirrorSet(MirrorFact("m", {"bootstrap.servers": "x:1"}, "source")),
    MirrorSet(MirrorFact("m", {"bootstrap.servers": "x:1"}, "source", (".*", "__.*"))),
    BrokerConfigSet(None, {"k": "v"}),
    BrokerConfigSet(ME, {"k": "w"}),
    ProducerIdsTaken(77),
    TopicMirrorSet(NAME, None),
    BrokerConfigSet(ME, {}),
    TopicDeleted(NAME),
    MirrorDeleted("m"),
    BrokerRemoved(ME),
]


def test_after_every_change_the_stored_facts_make_the_same_image() -> None:
    image = ClusterImage()
    stored: dict[bytes, bytes] = {}
    for change in STEPS:
        before, image = image, image.with_change(change)
        facts = stored_facts([change], image)
        for fact in facts:
            stored.pop(fact.key, None)
            if fact.value is not None:
                stored[fact.key] = fact.value
        assert image_of(StoredFact(key, value) for key, value in stored.items()) == image
        assert before.with_changes(change_of(fact) for fact in facts) == image, "for a watcher"


def test_changes_of_one_topic_are_one_write() -> None:
    changes: list[Change] = [
        TopicSet(TOPIC),
        TopicConfigSet(NAME, {}),
        PartitionsAdded(NAME, 1, (PARTITION,)),
    ]
    assert len(stored_facts(changes, ClusterImage().with_changes(changes))) == 1


def test_values_can_be_read_by_people() -> None:
    changes = [TopicSet(TOPIC)]
    (fact,) = stored_facts(changes, ClusterImage().with_changes(changes))
    assert fact == StoredFact(
        b"twinlog/topics/orders",
        b'{"id":"00000000000000000000000000000005","config":{"retention.ms":"1"},"mirror":null,'
        b'"partitions":[[1,4,[1,2],[1],9]]}',
    )


def test_a_topic_stored_before_there_were_other_mirrors_can_be_read() -> None:
    value = (
        b'{"id":"00000000000000000000000000000005","config":{},"mirror":["m","PAUSED"],'
        b'"partitions":[[1,4,[1],[1],9]]}'
    )
    change = change_of(StoredFact(b"twinlog/topics/orders", value))
    assert isinstance(change, TopicSet)
    (partition,) = change.topic.partitions
    assert partition == PartitionFact(ME, LeaderEpoch(4), (ME,), (ME,), 9)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"twinlog/topics/orders", b"{"),
        (b"twinlog/topics/orders", b'{"id":"5"}'),
        (b"twinlog/topics/orders", b"[]"),
        (b"twinlog/brokers/one", b"{}"),
        (b"twinlog/songs/x", b"{}"),
        (b"twinlog/cluster", None),
        (b"twinlog/\xff", None),
    ],
)
def test_a_fact_that_cannot_be_read_is_named(key: bytes, value: bytes | None) -> None:
    with pytest.raises(FactError, match="metadata store: twinlog/"):
        change_of(StoredFact(key, value))
