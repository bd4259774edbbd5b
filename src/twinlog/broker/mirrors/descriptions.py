"""What is told of a mirror's partitions: states from the coordinator, offsets from who fetches."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final
from uuid import UUID

from twinlog.broker.context import Broker
from twinlog.broker.mirror_board import MirroredPartition, MirrorStatus
from twinlog.cluster.facts import MIRROR_STATE, MirrorFact, TopicFact
from twinlog.config.mirror import BOOTSTRAP_SERVERS
from twinlog.config.mirror_broker import write_timeout_s
from twinlog.coordination.outcome import Outcome
from twinlog.mirroring.records import MirrorPartition, PartitionStart, RecordLoss
from twinlog.mirroring.shard import Known, MirrorShard
from twinlog.mirroring.states import MirrorState
from twinlog.model.errors import ApiError
from twinlog.model.ids import NO_OFFSET, TopicPartition
from twinlog.wire.messages.mirrors import (
    DescribedLoss,
    DescribedMirror,
    DescribedMirrorPartition,
    DescribedMirrorTask,
    DescribedMirrorTopic,
    DescribedStart,
    MirrorTopicToDescribe,
)

log = logging.getLogger(__name__)

READ_TIMEOUT_S: Final = 5.0

Losses = Mapping[tuple[UUID, int], list[RecordLoss]]
"""By topic id and partition."""


async def known_partitions(broker: Broker) -> dict[MirrorPartition, Known]:
    """Give what the coordinator knows of all mirrored partitions; raises while it loads."""
    if MIRROR_STATE not in broker.facts.image.topics:
        return {}
    answers: list[tuple[Known, ...]] = await broker.mirror_states.run_everywhere(
        lambda shard, _: shard.read_all(), timeout_s=READ_TIMEOUT_S
    )
    return {known.of: known for answer in answers for known in answer}


def state_of(known: Mapping[MirrorPartition, Known], of: MirrorPartition) -> MirrorState:
    """Give a partition's actual state; UNKNOWN when none was ever written."""
    found = known.get(of)
    return MirrorState.UNKNOWN if found is None else found.mirror_state


def keys_of(mirror: str, topic: TopicFact) -> Iterator[MirrorPartition]:
    """Give the keys of a topic's partitions in ``__mirror_state``."""
    for index in range(len(topic.partitions)):
        yield MirrorPartition(mirror=mirror, topic_id=topic.id, partition=index)


async def forget_partitions(broker: Broker, mirror: str) -> bool:
    """Delete the states of a mirror that was deleted; False if that has to be tried again."""
    return await _delete(broker, lambda shard, _: shard.delete_mirror(mirror))


async def forget_topics(broker: Broker) -> bool:
    """Delete the states of topics that were deleted; False if that has to be tried again."""

    def delete(shard: MirrorShard, _: int) -> Outcome[int]:
        there = broker.facts.image.topics_by_id
        return shard.delete_topics(lambda topic_id: topic_id not in there)

    return await _delete(broker, delete)


async def _delete(broker: Broker, command: Callable[[MirrorShard, int], Outcome[int]]) -> bool:
    if MIRROR_STATE not in broker.facts.image.topics:
        return True
    try:
        timeout_s = write_timeout_s(broker.settings)
        await broker.mirror_states.run_everywhere(command, timeout_s=timeout_s)
    except ApiError as error:
        fields = {"why": str(error)}
        log.warning("states of a deleted mirror or topic not deleted yet", extra=fields)
        return False
    return True


def describe_mirror(
    broker: Broker,
    mirror: MirrorFact,
    wanted: tuple[MirrorTopicToDescribe, ...] | None,
    known: Mapping[MirrorPartition, Known],
) -> DescribedMirror:
    """Describe a mirror: all of its topics, or those that are wanted."""
    only = None if wanted is None else {topic.topic_name: topic.partitions for topic in wanted}
    losses = _losses_in(known.values())
    status = broker.mirrors.status_of(mirror.name)
    topics = sorted(broker.facts.image.topics_of_mirror(mirror.name), key=lambda t: t.name)
    return DescribedMirror(
        mirror_name=mirror.name,
        source_bootstrap=mirror.config.get(BOOTSTRAP_SERVERS.name, ""),
        source_cluster_id=mirror.source_cluster_id,
        topics=tuple(
            DescribedMirrorTopic(
                topic_name=topic.name,
                partitions=tuple(
                    describe_partition(
                        broker, topic, _with_losses(known.get(of), of, losses), status, of.partition
                    )
                    for of in keys_of(mirror.name, topic)
                    if not only or not only[topic.name] or of.partition in only[topic.name]
                ),
            )
            for topic in topics
            if only is None or topic.name in only
        ),
        tasks=() if status is None else tuple(_tasks(status)),
    )


def _tasks(status: MirrorStatus) -> Iterator[DescribedMirrorTask]:
    """Describe what a mirror has tried by now, a task with nothing to do too."""
    notes = status.task_notes
    for name, error in sorted(status.task_errors.items()):
        yield DescribedMirrorTask(name=name, error=error, note=None if error else notes.get(name))


def _losses_in(known: Iterable[Known]) -> Losses:
    """Gather what each partition lost here, by whichever mirror: the log is one and the same."""
    found: dict[tuple[UUID, int], list[RecordLoss]] = {}
    for one in known:
        if one.losses:
            found.setdefault((one.of.topic_id, one.of.partition), []).extend(one.losses)
    return {of: sorted(losses, key=lambda loss: loss.at_ms) for of, losses in found.items()}


def _with_losses(known: Known | None, of: MirrorPartition, losses: Losses) -> Known | None:
    all_of_it = losses.get((of.topic_id, of.partition))
    if all_of_it is None:
        return known
    return replace(known or Known(of, None, None), losses=tuple(all_of_it))


def describe_partition(
    broker: Broker,
    topic: TopicFact,
    known: Known | None,
    status: MirrorStatus | None,
    index: int,
) -> DescribedMirrorPartition:
    """Describe one partition; source and destination offset are of one moment."""
    of = TopicPartition(topic.name, index)
    at_work = None if status is None else status.partitions.get(of)
    state = None if known is None else known.state
    last = None if known is None else known.last_mirror_epoch
    lag = None if at_work is None else at_work.lag
    source, destination = NO_OFFSET, NO_OFFSET
    here = MirrorState.UNKNOWN if known is None else known.mirror_state
    # By what the source told before a pause or a failure the partition would pass for level.
    is_known = lag is not None and not (lag.is_of_before and here in _FOLLOWING)
    if lag is not None and is_known and lag.source_offset != NO_OFFSET:
        source, destination = lag.source_offset, lag.destination_offset
    else:
        partition = broker.partitions.find(of)
        if partition is not None:
            destination = partition.high_watermark
    return DescribedMirrorPartition(
        partition_index=index,
        state_value=here.name,
        error_message=_error(state.error if state else None, at_work, status),
        retry_attempt=state.retry_attempt if state else 0,
        source_offset=source,
        destination_offset=destination,
        last_mirror_epoch=-1 if last is None else last.epoch,
        last_mirror_offset=-1 if last is None else last.log_end,
        lag_bytes=lag.bytes if lag is not None and is_known else -1,
        lag_ms=_lag_ms(at_work, broker.clock.now_ms()),
        losses=() if known is None else tuple(_described(loss) for loss in known.losses),
        start=() if known is None else tuple(_described_start(known.start)),
    )


def _described(loss: RecordLoss) -> DescribedLoss:
    return DescribedLoss(
        kind=loss.kind,
        first_offset=loss.first,
        end_offset=loss.end,
        cause=loss.cause,
        at_ms=loss.at_ms,
        saved_to=loss.saved_to,
        saved_bytes=loss.saved_bytes,
    )


def _described_start(start: PartitionStart | None) -> Iterator[DescribedStart]:
    if start is not None and start.offset >= 0:
        yield DescribedStart(
            spec=start.spec,
            offset=start.offset,
            skipped_from=start.skipped_from,
            at_ms=start.at_ms,
        )


def _lag_ms(at_work: MirroredPartition | None, now_ms: int) -> int:
    """Give how far behind in time; what is stopped is behind nobody any more."""
    if at_work is None or at_work.state == MirrorState.STOPPED:
        return -1
    seconds = at_work.lag.seconds(now_ms)
    return -1 if seconds < 0 else int(seconds * 1_000)


def _error(
    durable: str | None, at_work: MirroredPartition | None, status: MirrorStatus | None
) -> str | None:
    """Give what is wrong: with the partition, or with the source of all of them."""
    if durable is not None:
        return durable
    if at_work is None or at_work.state not in _FOLLOWING:
        return None
    if at_work.trouble is not None:
        return at_work.trouble
    errors = status.task_errors if status is not None else {}
    return next((why for task, why in errors.items() if why and task.startswith("fetch")), None)


_FOLLOWING: Final = (
    MirrorState.MIRRORING,
    MirrorState.LOG_ALIGNMENT,
    MirrorState.EPOCH_FENCING,
    MirrorState.ULE_RECOVERY,
)
