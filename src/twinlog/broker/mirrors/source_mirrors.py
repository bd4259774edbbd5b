"""Reads what a source says of its own mirrors of our cluster: a loop, or where both last agreed."""

from collections.abc import Iterable

from twinlog.mirroring.records import LastMirrorEpoch
from twinlog.mirroring.states import MirrorState
from twinlog.model.ids import NO_EPOCH, Offset, TopicPartition
from twinlog.wire.messages.mirrors import DescribedMirror, DescribedMirrorPartition


def read_mirrors(
    mirrors: Iterable[DescribedMirror], of: TopicPartition, own_cluster_id: str
) -> tuple[LastMirrorEpoch | None, str | None]:
    """Give the last mirror epoch that the source has of us, and why ``of`` may not be mirrored.

    While a mirror over there still follows this partition of ours, following it here would send
    the records round and round.
    """
    agreed: LastMirrorEpoch | None = None
    for mirror in mirrors:
        if mirror.source_cluster_id != own_cluster_id:
            continue
        for partition in _partitions(mirror, of):
            if partition.state_value != MirrorState.STOPPED.name:
                problem = (
                    f"Detected mirror loop for mirror {mirror.mirror_name} of the source: its "
                    f"{of} mirrors ours and is {partition.state_value}; stop it there first"
                )
                return None, problem
            found = LastMirrorEpoch(
                epoch=partition.last_mirror_epoch, log_end=partition.last_mirror_offset
            )
            if found.epoch > (NO_EPOCH if agreed is None else agreed.epoch):
                agreed = found
    return agreed, None


def began_at(
    mirrors: Iterable[DescribedMirror], of: TopicPartition, own_cluster_id: str
) -> Offset | None:
    """Give where a mirror of us began over there; None if it was to have all of ours."""
    starts = [
        start.offset
        for mirror in mirrors
        if mirror.source_cluster_id == own_cluster_id
        for partition in _partitions(mirror, of)
        for start in partition.start
    ]
    return Offset(max(starts)) if starts else None


def _partitions(mirror: DescribedMirror, of: TopicPartition) -> Iterable[DescribedMirrorPartition]:
    for topic in mirror.topics:
        if topic.topic_name == of.topic:
            yield from (p for p in topic.partitions if p.partition_index == of.partition)
