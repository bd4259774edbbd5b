"""The partitions this broker holds: each a log, its replica role, and who may write to it."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from twinlog.broker.partition_news import PartitionNews
from twinlog.broker.traffic import TopicTraffic, Traffic
from twinlog.cluster.facts import DesiredState, MirrorTopicFact
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import NO_EPOCH, LeaderEpoch, Offset, TopicId, TopicName, TopicPartition
from twinlog.replication.leader import LeaderReplica
from twinlog.replication.visible import Reader, visible_end
from twinlog.storage.log import Appended, PartitionLog
from twinlog.wire.primitives import Buffer


class Partition:
    """One partition led by this broker.

    Invariant: ``log.start <= high_watermark <= log.end``. While ``mirror`` is set the partition is
    read-only to clients, and only ``append_mirrored`` writes to it. It stays set until a stop has
    come to its end, which is later than the topic's desired state says.
    """

    __slots__ = (
        "_news",
        "log",
        "min_insync_replicas",
        "mirror",
        "of",
        "replica",
        "topic_id",
        "traffic",
    )

    def __init__(
        self,
        of: TopicPartition,
        topic_id: TopicId,
        log: PartitionLog,
        replica: LeaderReplica,
        news: PartitionNews,
    ) -> None:
        """Lead with ``replica``'s epoch; ``lead`` takes another one later."""
        self.of: Final = of
        self.topic_id: Final = topic_id
        self.log: Final = log
        self.replica = replica
        self.min_insync_replicas = 1
        self.mirror: MirrorTopicFact | None = None
        self.traffic = TopicTraffic()
        self._news = news

    @property
    def leader_epoch(self) -> LeaderEpoch:
        """The epoch in which this broker leads."""
        return self.replica.leader_epoch

    def lead(self, replica: LeaderReplica) -> None:
        """Go on in another leader epoch. It never goes back."""
        assert replica.leader_epoch >= self.replica.leader_epoch, (
            f"{self.of}: leader epoch {self.replica.leader_epoch} -> {replica.leader_epoch}"
        )
        self.replica = replica
        self._news.tell(self.of, self.topic_id)

    @property
    def high_watermark(self) -> Offset:
        """The first offset that is not yet on every in-sync replica."""
        return self.replica.high_watermark

    @property
    def last_stable_offset(self) -> Offset:
        """The first offset of an open transaction, or the high watermark."""
        return self.log.last_stable_offset(self.replica.high_watermark)

    @property
    def is_under_min_isr(self) -> bool:
        """Whether acks=all cannot be promised now."""
        return not self.replica.has_enough_copies(self.min_insync_replicas)

    def check_leader_epoch(self, asked: int) -> None:
        """Compare the epoch a client knows with ours (KIP-320); -1 asks for no check.

        Raises ApiError FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH.
        """
        if asked < 0 or asked == self.leader_epoch:
            return
        code = (
            ErrorCode.FENCED_LEADER_EPOCH
            if asked < self.leader_epoch
            else ErrorCode.UNKNOWN_LEADER_EPOCH
        )
        raise ApiError(code, f"{self.of}: leader epoch {asked} asked, {self.leader_epoch} is ours")

    def end_of_epoch(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, Offset]:
        """Give the largest epoch <= ``epoch`` in this log and its (exclusive) end (KIP-279).

        Nothing is in the log of an epoch between its latest and the leader's own, which begins at
        the log end: Kafka notes it there at the election. In a mirrored log such epochs are common,
        since what was written in them was cut off.
        """
        latest = self.log.epochs.latest
        if latest < epoch <= self.leader_epoch:
            is_told_back = epoch == self.leader_epoch or latest == NO_EPOCH
            return epoch if is_told_back else latest, self.log.end
        return self.log.epochs.end_of(epoch, self.log.end)

    def visible_end(self, reader: Reader) -> Offset:
        """Give the first offset that ``reader`` may not see yet."""
        return visible_end(
            reader,
            log_end=self.log.end,
            high_watermark=self.replica.high_watermark,
            last_stable=self.last_stable_offset,
        )

    def append(self, batches: Buffer, *, now_ms: int) -> Appended:
        """Append a producer's batches. Raises ApiError, POLICY_VIOLATION for a mirror's topic."""
        traffic = self.traffic
        traffic.produces += 1
        if self.mirror is not None:
            raise self._refusal(self.mirror)
        appended = self.append_own(batches, now_ms=now_ms)
        traffic.messages_in += appended.last_offset - appended.first_offset + 1
        traffic.bytes_in += len(batches)
        return appended

    def _refusal(self, mirror: MirrorTopicFact) -> ApiError:
        if mirror.desired_state is DesiredState.STOPPED:
            # A code that makes producers try again: the stop is under way.
            return ApiError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"mirror {mirror.mirror} is being stopped for {self.of}",
            )
        return ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"{self.of.topic} is a read-only mirror topic of mirror {mirror.mirror}; "
            "it takes writes once the mirror is stopped for it "
            f"(kafka-cluster-mirrors.sh --stop --mirror {mirror.mirror} --topics {self.of.topic})",
        )

    def follow_mirror(self, fact: MirrorTopicFact | None) -> None:
        """Take in what the topic's facts say of its mirror; a finished stop stays finished."""
        is_stopping = fact is not None and fact.desired_state is DesiredState.STOPPED
        if self.mirror is not None or not is_stopping:
            self.mirror = fact

    def release_from_mirror(self) -> None:
        """Open the partition to writers: its stop has come to its end.

        Not where it was asked to be mirrored again meanwhile: nobody would close it once more.
        """
        if self.mirror is None or self.mirror.desired_state is not DesiredState.STOPPED:
            return
        self.mirror = None
        self._news.tell(self.of, self.topic_id)

    def append_own(self, batches: Buffer, *, now_ms: int, is_internal: bool = False) -> Appended:
        """Append batches of this broker's own making: coordinators' records, markers at a stop."""
        try:
            return self.log.append_as_leader(
                batches, leader_epoch=self.leader_epoch, now_ms=now_ms, is_internal=is_internal
            )
        finally:
            self._advance()  # also when what was written could not be flushed

    def append_mirrored(self, batches: Buffer) -> Appended:
        """Append batches of the source unchanged. Raises CorruptBatchError, DiskError.

        The leader epoch must have been raised above the batches' epochs before.
        """
        appended = self.log.append_as_follower(batches, leader_epoch_max=self.leader_epoch)
        self.traffic.replication_bytes_in += appended.taken_bytes
        self._advance()
        return appended

    def truncate_to(self, end: Offset) -> None:
        """Cut the log so that ``end`` is the next offset written."""
        self.log.truncate_to(end)
        self._advance()

    def restart_at(self, start: Offset) -> None:
        """Drop everything and begin again at ``start``."""
        self.log.restart_at(start)
        self._advance()

    def raise_start_to(self, start: Offset) -> None:
        """Move the log start up to ``start``; records below it are gone."""
        self.log.raise_start_to(start)
        self._advance()

    def delete_old(self, wall_ms: int) -> int:
        """Drop segments that retention gives up; give their number."""
        count = self.log.delete_old(wall_ms, up_to=self.high_watermark)
        if count:
            self._advance()
        return count

    def _advance(self) -> None:
        self.replica.log_changed(self.log.start, self.log.end)
        self._news.tell(self.of, self.topic_id)


class Partitions:
    """All partitions of this broker, by name and by topic id."""

    def __init__(self) -> None:
        self._by_name: Final[dict[TopicPartition, Partition]] = {}
        self._counts: Final[Counter[TopicName]] = Counter()
        self.traffic: Final = Traffic()

    def __iter__(self) -> Iterator[Partition]:
        """Give every partition, in no order."""
        return iter(tuple(self._by_name.values()))

    def __len__(self) -> int:
        """Give how many there are."""
        return len(self._by_name)

    def find(self, of: TopicPartition) -> Partition | None:
        """Give the partition if it is here."""
        return self._by_name.get(of)

    def led(self, of: TopicPartition) -> Partition:
        """Give the partition. Raises ApiError NOT_LEADER_OR_FOLLOWER when it is not here."""
        partition = self._by_name.get(of)
        if partition is None:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{of} is not on this broker")
        return partition

    def add(self, partition: Partition) -> None:
        """Take in a partition that has just been opened."""
        topic = partition.of.topic
        if partition.of not in self._by_name:
            self._counts[topic] += 1
        partition.traffic = self.traffic.begin(topic)
        self._by_name[partition.of] = partition

    def remove(self, of: TopicPartition) -> Partition | None:
        """Let go of a partition that is about to be closed or deleted."""
        removed = self._by_name.pop(of, None)
        if removed is not None:
            self._counts[of.topic] -= 1
            if not self._counts[of.topic]:
                del self._counts[of.topic]
                self.traffic.forget(of.topic)
        return removed
