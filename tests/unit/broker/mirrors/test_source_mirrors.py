"""What a source says of its own mirrors of our cluster."""

from twinlog.broker.mirrors.source_mirrors import began_at, read_mirrors
from twinlog.mirroring.records import LastMirrorEpoch
from twinlog.model.ids import TopicName, TopicPartition
from twinlog.wire.messages.mirrors import (
    DescribedMirror,
    DescribedMirrorPartition,
    DescribedMirrorTopic,
    DescribedStart,
)

OF = TopicPartition(TopicName("t"), 1)


def mirror(state: str, epoch: int = -1, end: int = -1, *, source: str = "us") -> DescribedMirror:
    partition = DescribedMirrorPartition(
        partition_index=1, state_value=state, last_mirror_epoch=epoch, last_mirror_offset=end
    )
    topic = DescribedMirrorTopic(topic_name="t", partitions=(partition,))
    return DescribedMirror(mirror_name="b", source_cluster_id=source, topics=(topic,))


def test_the_highest_last_mirror_epoch_that_it_has_of_us_counts() -> None:
    mirrors = [mirror("STOPPED", 3, 50), mirror("STOPPED", 5, 80), mirror("STOPPED")]
    assert read_mirrors(mirrors, OF, "us") == (LastMirrorEpoch(epoch=5, log_end=80), None)


def test_a_mirror_that_still_follows_us_is_a_loop() -> None:
    agreed, problem = read_mirrors([mirror("MIRRORING")], OF, "us")
    assert agreed is None
    assert (problem or "").startswith("Detected mirror loop for mirror b")


def test_mirrors_of_others_and_other_partitions_do_not_matter() -> None:
    assert read_mirrors([mirror("MIRRORING", source="them")], OF, "us") == (None, None)
    other = TopicPartition(TopicName("t"), 2)
    assert read_mirrors([mirror("MIRRORING")], other, "us") == (None, None)
    assert read_mirrors([mirror("MIRRORING")], TopicPartition(TopicName("u"), 1), "us") == (
        None,
        None,
    )


def test_where_a_mirror_of_us_began_over_there_is_found() -> None:
    start = DescribedStart(spec="latest", offset=40, skipped_from=0, at_ms=1)
    partition = DescribedMirrorPartition(partition_index=1, state_value="STOPPED", start=(start,))
    topic = DescribedMirrorTopic(topic_name="t", partitions=(partition,))
    begun = DescribedMirror(mirror_name="b", source_cluster_id="us", topics=(topic,))
    assert began_at([mirror("STOPPED"), begun], OF, "us") == 40
    assert began_at([mirror("STOPPED"), begun], OF, "them") is None
    assert began_at([mirror("STOPPED")], OF, "us") is None
