"""What a mirror reads from and writes to the local log of a partition."""

import os
from typing import Final, assert_never

from twinlog.broker.partitions import Partition
from twinlog.mirroring import effects as do
from twinlog.mirroring import events as on
from twinlog.mirroring.alignment import LogFacts
from twinlog.mirroring.batches import HEADER_BYTES, BatchIdentity, identity_of, length_before
from twinlog.model.errors import ApiError, CorruptBatchError, DiskError
from twinlog.model.ids import LeaderEpoch, Offset, ProducerId
from twinlog.storage.log import PartitionLog
from twinlog.wire.primitives import Buffer
from twinlog.wire.records.batch import BatchHeader, iter_headers
from twinlog.wire.records.control import ControlType, control_type_of, end_marker, pid_reset_batch
from twinlog.wire.records.records import records_of

READ_BYTES: Final = 1 << 20
FIRST_COORDINATOR_EPOCH: Final = 0
"""Stands in the markers of a stop for the epoch of the transaction coordinator, who has no part."""

Write = do.Append | do.BeginAt | do.RaiseLogStart
Step = do.ReadLog | do.AppendAbortMarkers | do.AppendPidReset


def write(partition: Partition, effect: Write) -> on.AppendFailed | None:
    """Write what the source has told; give the failure if there is one."""
    try:
        match effect:
            case do.Append(batches):
                append_good(partition, batches)
            case do.BeginAt(start):
                partition.restart_at(start)
            case do.RaiseLogStart(start):
                partition.raise_start_to(start)
    except CorruptBatchError as error:
        return on.AppendFailed(Offset(error.offset), error.why, partition.log.end)
    except (DiskError, ApiError) as error:
        # Also a log start beyond the end, when the append it belongs to has failed.
        return on.AppendFailed(partition.log.end, str(error), partition.log.end)
    return None


def take_step(
    partition: Partition, effect: Step, wall_ms: int
) -> on.LogRead | on.StepDone | on.StepFailed:
    """Read or write the log for a machine that waits for it; StepDone still awaits replicas."""
    turn = effect.turn
    try:
        match effect:
            case do.ReadLog(pid_reset_from):
                return on.LogRead(facts_of(partition.log, pid_reset_from), turn)
            case do.AppendAbortMarkers():
                abort_open_transactions(partition, wall_ms)
            case do.AppendPidReset():
                write_pid_reset(partition, wall_ms)
            case _:
                assert_never(effect)
    except (ApiError, DiskError, CorruptBatchError) as error:
        return on.StepFailed(str(error), turn)
    return on.StepDone(turn)


def facts_of(log: PartitionLog, pid_reset_from: Offset | None) -> LogFacts:
    """Give what the machine must know of the log."""
    return LogFacts(
        start=log.start,
        end=log.end,
        epochs=tuple(log.epochs.entries),
        open_transactions=len(log.open_transactions()),
        has_pid_reset=pid_reset_from is not None and has_pid_reset(log, pid_reset_from),
        # A stop, which looks for the reset, has no source to compare it with.
        last_batch=last_batch_of(log) if pid_reset_from is None else None,
    )


def last_batch_of(log: PartitionLog) -> BatchIdentity | None:
    """Give what the log ends with, None for an empty one."""
    if log.start == log.end:
        return None
    found = log.read(Offset(log.end - 1), max_bytes=1, up_to=log.end, at_least_one=True)
    if found is None:
        return None
    region = found.region
    return identity_of(os.pread(region.file.fileno(), HEADER_BYTES, region.position))


def append_good(partition: Partition, batches: Buffer) -> None:
    """Write batches; the good ones before a bad one are written, and that one is raised."""
    try:
        partition.append_mirrored(batches)
    except CorruptBatchError as error:
        good = length_before(batches, Offset(error.offset))
        if good:
            partition.append_mirrored(memoryview(batches)[:good])
        raise


def has_pid_reset(log: PartitionLog, from_offset: Offset) -> bool:
    """Tell whether a producer reset stands at or after ``from_offset``.

    Only what a stop itself wrote lies there, so the read is short.
    """
    at = max(from_offset, log.start)
    while at < log.end:
        found = log.read(at, max_bytes=READ_BYTES, up_to=log.end, at_least_one=True)
        if found is None:
            return False
        region = found.region
        buffer = os.pread(region.file.fileno(), region.length, region.position)
        end = at
        for position, header in iter_headers(buffer):
            is_asked = header.is_control and header.base_offset >= from_offset
            if is_asked and _is_pid_reset(buffer, position, header):
                return True
            end = Offset(header.next_offset)
        if end <= at:
            return False
        at = end
    return False


def _is_pid_reset(buffer: bytes, position: int, header: BatchHeader) -> bool:
    records = records_of(buffer, position, header)
    return bool(records) and control_type_of(records[0].key) == ControlType.MIRROR_PID_RESET


def abort_open_transactions(partition: Partition, wall_ms: int) -> None:
    """End every open transaction with an ABORT marker in our own epoch.

    The marker speaks for the source's coordinator, in the epoch of that one's last marker: a lower
    one would be fenced, as a coordinator that was replaced must be.
    """
    for txn in partition.log.open_transactions():
        marker = end_marker(
            ControlType.ABORT,
            producer_id=ProducerId(txn.producer_id),
            producer_epoch=txn.producer_epoch,
            coordinator_epoch=max(txn.coordinator_epoch, FIRST_COORDINATOR_EPOCH),
            timestamp_ms=wall_ms,
            leader_epoch=LeaderEpoch(partition.leader_epoch),
        )
        partition.append_own(marker, now_ms=wall_ms, is_internal=True)


def write_pid_reset(partition: Partition, wall_ms: int) -> None:
    """Let everybody forget the source's producers."""
    reset = pid_reset_batch(timestamp_ms=wall_ms, leader_epoch=partition.leader_epoch)
    partition.append_own(reset, now_ms=wall_ms, is_internal=True)
