"""Who leads a partition after a broker came, went, or reported its copies."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from twinlog.cluster.changes import Change, PartitionSet
from twinlog.cluster.facts import NO_LEADER, PartitionFact
from twinlog.cluster.image import ClusterImage
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import BrokerId, LeaderEpoch, TopicPartition


def broker_started(
    image: ClusterImage,
    broker: BrokerId,
    log_epochs: Mapping[TopicPartition, LeaderEpoch] | None = None,
) -> tuple[Change, ...]:
    """Give the leader changes that follow from a broker's start.

    It leads again what it led when it went, and what nobody leads and it is in the ISR of: each in
    a new leader epoch, since a broker that died may have lost records that were not on its disk
    yet, and what is written in their place must not look like them. The new epoch is also above
    every epoch in the log (``log_epochs``), whatever the store remembers.
    """
    epochs = log_epochs or {}

    def elect(of: TopicPartition, old: PartitionFact) -> PartitionFact | None:
        leads_or_nobody_does = old.leader == broker or old.leader not in image.brokers
        if not leads_or_nobody_does or broker not in old.isr:
            return None
        isr = tuple(b for b in old.isr if b == broker or b in image.brokers)
        above = max(old.leader_epoch, epochs.get(of, old.leader_epoch))
        return _led_by(broker, old, LeaderEpoch(above + 1), isr)

    return tuple(_changes(image, elect))


def broker_gone(image: ClusterImage, broker: BrokerId) -> tuple[Change, ...]:
    """Give the leader and ISR changes that follow when a broker serves no more.

    The first replica in the ISR that serves takes over. Where there is none, nobody leads: the ISR
    stays what it was, and the first of it to come back leads, so that nothing committed is lost.
    """

    def elect(_: TopicPartition, old: PartitionFact) -> PartitionFact | None:
        if broker not in old.isr and broker != old.leader:
            return None
        left = tuple(b for b in old.isr if b != broker)
        alive = [b for b in old.replicas if b in left and b in image.brokers]
        if broker != old.leader:
            return replace(old, isr=left, partition_epoch=old.partition_epoch + 1)
        epoch = LeaderEpoch(old.leader_epoch + 1)
        if not alive:
            return _led_by(NO_LEADER, old, epoch, old.isr)
        return _led_by(alive[0], old, epoch, left)

    return tuple(_changes(image, elect))


def isr_proposed(
    image: ClusterImage,
    of: TopicPartition,
    *,
    by: BrokerId,
    based_on: PartitionFact,
    isr: Iterable[BrokerId],
) -> PartitionSet:
    """Give the change of ISR that a leader asks for, or raise ApiError.

    ``based_on`` is what the leader took the partition to be; it must still be so.
    """
    now = image.partition(of)
    if now is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{of} does not exist")
    if now.leader_epoch > based_on.leader_epoch:
        raise ApiError(
            ErrorCode.FENCED_LEADER_EPOCH,
            f"{of} is in leader epoch {now.leader_epoch}, not {based_on.leader_epoch}",
        )
    if now.leader != by:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"{of} is led by broker {now.leader}, not by {by}"
        )
    if now.partition_epoch != based_on.partition_epoch:
        raise ApiError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"{of} is at partition epoch {now.partition_epoch}, not {based_on.partition_epoch}",
        )
    wanted = tuple(sorted(set(isr), key=lambda b: (b != by, b)))
    strangers = [b for b in wanted if b not in now.replicas or b not in image.brokers]
    if strangers or by not in wanted:
        raise ApiError(
            ErrorCode.INELIGIBLE_REPLICA,
            f"{of}: {strangers or [by]} cannot be so in or out of the ISR {list(wanted)}",
        )
    return PartitionSet(of, replace(now, isr=wanted, partition_epoch=now.partition_epoch + 1))


def _led_by(
    leader: BrokerId, old: PartitionFact, epoch: LeaderEpoch, isr: tuple[BrokerId, ...]
) -> PartitionFact:
    assert epoch > old.leader_epoch, f"leader epoch {old.leader_epoch} -> {epoch}"
    return PartitionFact(leader, epoch, old.replicas, isr, old.partition_epoch + 1)


def _changes(
    image: ClusterImage, elect: Callable[[TopicPartition, PartitionFact], PartitionFact | None]
) -> Iterator[Change]:
    for topic in image.topics.values():
        for index, old in enumerate(topic.partitions):
            of = TopicPartition(topic.name, index)
            new = elect(of, old)
            if new is not None:
                yield PartitionSet(of, new)
