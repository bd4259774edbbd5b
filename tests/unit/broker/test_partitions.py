from pathlib import Path

import pytest

from support.batches import batch
from twinlog.broker.partition_news import PartitionNews
from twinlog.broker.partitions import Partition, Partitions
from twinlog.broker.waiting import Waiting
from twinlog.cluster.facts import DesiredState, MirrorTopicFact
from twinlog.model.errors import ApiError, CorruptBatchError, ErrorCode
from twinlog.model.ids import NO_TOPIC_ID, BrokerId, LeaderEpoch, Offset, TopicName, TopicPartition
from twinlog.replication.fetch_sessions import FetchSessions
from twinlog.replication.leader import LeaderReplica
from twinlog.storage.logs import Logs
from twinlog.storage.settings import LogSettings

OF = TopicPartition(TopicName("t"), 0)
ME = BrokerId(1)
NEWS = PartitionNews(Waiting(), FetchSessions(10, lambda: 1))


def replica(epoch: int, end: int = 0) -> LeaderReplica:
    return LeaderReplica(
        ME,
        leader_epoch=LeaderEpoch(epoch),
        replicas=[ME],
        isr=[ME],
        log_start=Offset(0),
        log_end=Offset(end),
        high_watermark=Offset(end),
        now_ms=0,
    )


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    log = Logs([str(tmp_path)]).create(OF, NO_TOPIC_ID, LogSettings())
    return Partition(OF, NO_TOPIC_ID, log, replica(0), NEWS)


def mirrored(state: DesiredState) -> MirrorTopicFact:
    return MirrorTopicFact("a-to-b", state)


def test_alone_in_its_isr_a_leader_commits_what_it_appends(partition: Partition) -> None:
    partition.append(batch(3), now_ms=1_000)
    assert partition.high_watermark == partition.log.end == 3


def test_a_mirror_topic_refuses_writes_and_names_the_mirror(partition: Partition) -> None:
    partition.follow_mirror(mirrored(DesiredState.MIRRORING))
    with pytest.raises(ApiError, match=r"mirror a-to-b.*--stop --mirror a-to-b --topics t") as info:
        partition.append(batch(1), now_ms=1_000)
    assert info.value.code == ErrorCode.POLICY_VIOLATION
    assert partition.log.end == 0


def test_while_a_mirror_is_being_stopped_producers_are_told_to_try_again(
    partition: Partition,
) -> None:
    partition.follow_mirror(mirrored(DesiredState.MIRRORING))
    partition.follow_mirror(mirrored(DesiredState.STOPPED))
    with pytest.raises(ApiError) as info:
        partition.append(batch(1), now_ms=1_000)
    assert info.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_finished_stop_stays_finished_until_the_mirror_starts_again(
    partition: Partition,
) -> None:
    partition.follow_mirror(mirrored(DesiredState.STOPPED))
    partition.release_from_mirror()
    partition.follow_mirror(mirrored(DesiredState.STOPPED))
    partition.append(batch(1), now_ms=1_000)
    partition.follow_mirror(mirrored(DesiredState.MIRRORING))
    with pytest.raises(ApiError):
        partition.append(batch(1), now_ms=1_000)


def test_mirrored_batches_keep_their_offsets_and_never_have_an_epoch_above_ours(
    partition: Partition,
) -> None:
    partition.lead(replica(5))
    partition.append_mirrored(batch(2, base_offset=7, leader_epoch=5))
    assert (partition.log.end, partition.high_watermark) == (9, 9)
    with pytest.raises(CorruptBatchError, match="epoch"):
        partition.append_mirrored(batch(1, base_offset=9, leader_epoch=6))
    assert partition.log.end == 9


def test_what_is_appended_is_counted_apart_for_producers_and_mirrors(partition: Partition) -> None:
    partitions = Partitions()
    partitions.add(partition)
    sent, mirrored_bytes = batch(3), batch(2, base_offset=3)
    partition.append(sent, now_ms=1_000)
    partition.append_mirrored(mirrored_bytes)
    traffic = partitions.traffic.of(OF.topic)
    assert (traffic.produces, traffic.messages_in, traffic.bytes_in) == (1, 3, len(sent))
    assert traffic.replication_bytes_in == len(mirrored_bytes)
    partition.follow_mirror(mirrored(DesiredState.MIRRORING))
    with pytest.raises(ApiError):
        partition.append(sent, now_ms=1_000)
    assert (traffic.produces, traffic.messages_in) == (2, 3)


def test_a_topic_is_counted_as_long_as_one_of_its_partitions_is_here(partition: Partition) -> None:
    partitions = Partitions()
    partitions.add(partition)
    partitions.add(partition)
    assert [name for name, _ in partitions.traffic] == [OF.topic]
    partitions.remove(OF)
    partitions.remove(OF)
    assert not list(partitions.traffic)


def test_truncation_takes_the_high_watermark_along(partition: Partition) -> None:
    for _ in range(3):
        partition.append(batch(2), now_ms=1_000)
    partition.truncate_to(Offset(4))
    assert partition.high_watermark == partition.log.end == 4
    partition.restart_at(Offset(100))
    assert (partition.log.start, partition.high_watermark, partition.log.end) == (100, 100, 100)


def test_the_leader_epoch_never_goes_back(partition: Partition) -> None:
    partition.lead(replica(3))
    with pytest.raises(AssertionError):
        partition.lead(replica(2))


@pytest.mark.parametrize(
    ("asked", "code"),
    [(2, ErrorCode.FENCED_LEADER_EPOCH), (4, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_a_client_with_another_epoch_is_told_so(
    partition: Partition, asked: int, code: ErrorCode
) -> None:
    partition.lead(replica(3))
    partition.check_leader_epoch(-1)
    partition.check_leader_epoch(3)
    with pytest.raises(ApiError) as info:
        partition.check_leader_epoch(asked)
    assert info.value.code == code


def test_an_epoch_of_which_nothing_is_left_ended_where_ours_begins(partition: Partition) -> None:
    """A mirror of ours asks so once what was written here has been cut off and replaced."""
    partition.lead(replica(11))
    assert partition.end_of_epoch(LeaderEpoch(10)) == (10, 0)
    partition.append_mirrored(
        b"".join(batch(3, base_offset=at, leader_epoch=epoch) for at, epoch in ((0, 2), (3, 5)))
    )
    ends = {epoch: partition.end_of_epoch(LeaderEpoch(epoch)) for epoch in (1, 2, 3, 5, 10, 11, 12)}
    assert ends == {
        1: (1, 0),
        2: (2, 3),
        3: (2, 3),
        5: (5, 6),
        10: (5, 6),
        11: (11, 6),
        12: (-1, -1),
    }


def test_a_partition_that_is_not_here_is_not_led_here(partition: Partition) -> None:
    partitions = Partitions()
    with pytest.raises(ApiError, match="NOT_LEADER_OR_FOLLOWER"):
        partitions.led(OF)
    partitions.add(partition)
    assert partitions.led(OF) is partition
    assert list(partitions) == [partition]
    assert partitions.remove(OF) is partition
    assert len(partitions) == 0
