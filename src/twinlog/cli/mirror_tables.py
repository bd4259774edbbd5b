"""How mirrors are shown: KIP-1279's columns, widths and JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TextIO

from twinlog.cli.output import Column, cut_right, write_json, write_table
from twinlog.wire.messages.mirrors import (
    DescribedLoss,
    DescribedMirror,
    DescribedMirrorTask,
    DescribedStart,
    ListedMirror,
)

FAILED: Final = "FAILED"
ERROR_CHARS_MAX: Final = 80

LIST_COLUMNS: Final = (
    Column("MIRROR", 30, is_name=True),
    Column("TOPICS", 10),
    Column("SOURCE-CLUSTER-ID", 26),
    Column("SOURCE-BOOTSTRAP-SERVER", 50, is_name=True),
)
STATE_COLUMNS: Final = (
    Column("MIRROR", 30, is_name=True),
    Column("TOPIC", 40, is_name=True),
    Column("PARTITION", 10),
    Column("SOURCE-OFFSET", 15),
    Column("DESTINATION-OFFSET", 18),
    Column("LAG", 10),
    Column("STATE", 12),
)
FAILED_COLUMNS: Final = (
    Column("MIRROR", 30, is_name=True),
    Column("TOPIC", 40, is_name=True),
    Column("PARTITION", 10),
    Column("RETRY", 7),
    Column("ERROR"),
)
TASK_COLUMNS: Final = (
    Column("MIRROR", 30, is_name=True),
    Column("TASK", 30, is_name=True),
    Column("STATE", 15),
    Column("DETAIL"),
)


@dataclass(frozen=True, slots=True, order=True)
class PartitionRow:
    """One mirrored partition; offsets that are not known are None."""

    mirror: str
    topic: str
    partition: int
    source_offset: int | None
    destination_offset: int | None
    state: str
    retry_attempt: int
    error_message: str | None
    last_mirror_epoch: int | None = None
    last_mirror_offset: int | None = None
    """The end (exclusive) of what was mirrored when it was stopped last."""
    lag_bytes: int | None = None
    lag_ms: int | None = None
    losses: tuple[DescribedLoss, ...] = ()
    """The last ones, the oldest first."""
    start: DescribedStart | None = None
    """Where it began; None at the source's earliest record."""

    @property
    def lag(self) -> int | None:
        """Records that the destination lacks; None when one of the ends is not known."""
        if self.source_offset is None or self.destination_offset is None:
            return None
        return max(0, self.source_offset - self.destination_offset)

    @staticmethod
    def all_of(mirror: DescribedMirror) -> "Iterator[PartitionRow]":
        """Give a row for each partition of a mirror."""
        for topic in mirror.topics:
            for partition in topic.partitions:
                yield PartitionRow(
                    mirror=mirror.mirror_name,
                    topic=topic.topic_name,
                    partition=partition.partition_index,
                    source_offset=_known(partition.source_offset),
                    destination_offset=_known(partition.destination_offset),
                    state=partition.state_value,
                    retry_attempt=partition.retry_attempt,
                    error_message=partition.error_message,
                    last_mirror_epoch=_known(partition.last_mirror_epoch),
                    last_mirror_offset=_known(partition.last_mirror_offset),
                    lag_bytes=_known(partition.lag_bytes),
                    lag_ms=_known(partition.lag_ms),
                    losses=partition.losses,
                    start=next(iter(partition.start), None),
                )

    def as_json(self) -> dict[str, Any]:
        """Give the row as the proposal's JSON object, and behind it what it does not have."""
        return {
            "mirror": self.mirror,
            "topic": self.topic,
            "partition": self.partition,
            "sourceOffset": self.source_offset,
            "destinationOffset": self.destination_offset,
            "lag": self.lag,
            "state": self.state,
            "retryAttempt": self.retry_attempt,
            "errorMessage": self.error_message,
            "lagBytes": self.lag_bytes,
            "lagMs": self.lag_ms,
            "lastMirrorEpoch": self.last_mirror_epoch,
            "lastMirrorOffset": self.last_mirror_offset,
            "losses": [
                {
                    "kind": loss.kind,
                    "firstOffset": loss.first_offset,
                    "endOffset": loss.end_offset,
                    "cause": loss.cause,
                    "atMs": loss.at_ms,
                    "savedTo": loss.saved_to,
                    "savedBytes": loss.saved_bytes,
                }
                for loss in self.losses
            ],
            "start": self.start
            and {
                "spec": self.start.spec,
                "offset": self.start.offset,
                "skippedFrom": self.start.skipped_from,
                "atMs": self.start.at_ms,
            },
        }


@dataclass(frozen=True, slots=True)
class ListView:
    """What --list shows."""

    mirrors: Sequence[ListedMirror]

    def write(self, out: TextIO) -> None:
        """Write the table, or that there is nothing."""
        if not self.mirrors:
            out.write("No mirrors found\n")
            return
        rows = [
            (m.mirror_name, m.topic_count, m.source_cluster_id or None, m.source_bootstrap)
            for m in sorted(self.mirrors, key=lambda m: m.mirror_name)
        ]
        write_table(LIST_COLUMNS, rows, out)


@dataclass(frozen=True, slots=True)
class StateView:
    """What --describe shows."""

    rows: Sequence[PartitionRow]

    def write(self, out: TextIO, *, as_json: bool) -> None:
        """Write the table or the JSON, or that there is nothing."""
        if as_json:
            write_json([row.as_json() for row in self.rows], out)
        elif not self.rows:
            out.write("No mirror partitions found\n")
        else:
            cells = [
                (
                    row.mirror,
                    row.topic,
                    row.partition,
                    row.source_offset,
                    row.destination_offset,
                    row.lag,
                    row.state,
                )
                for row in self.rows
            ]
            write_table(STATE_COLUMNS, cells, out)


@dataclass(frozen=True, slots=True)
class FailedView:
    """What --describe --failed shows."""

    rows: Sequence[PartitionRow]
    retries_max: int

    def write(self, out: TextIO, *, as_json: bool) -> None:
        """Write the table or the JSON of what has failed, or that nothing has."""
        failed = [row for row in self.rows if row.state == FAILED]
        if as_json:
            write_json([row.as_json() for row in failed], out)
        elif not failed:
            out.write("No failed partitions found\n")
        else:
            cells = [
                (row.mirror, row.topic, row.partition, self._retry(row), _one_line(row))
                for row in failed
            ]
            write_table(FAILED_COLUMNS, cells, out)

    def _retry(self, row: PartitionRow) -> str:
        if row.retry_attempt < 0:
            return "NonRetryable"
        return f"{row.retry_attempt}/{self.retries_max}"


@dataclass(frozen=True, slots=True)
class TasksView:
    """What --describe --tasks shows: what each mirror does again and again, and how that goes."""

    mirrors: Sequence[DescribedMirror]

    def write(self, out: TextIO, *, as_json: bool) -> None:
        """Write the table or the JSON, or that there is nothing."""
        rows = [
            (mirror.mirror_name, task.name, _state_of(task), task.error or task.note)
            for mirror in sorted(self.mirrors, key=lambda each: each.mirror_name)
            for task in mirror.tasks
        ]
        if as_json:
            names = ("mirror", "task", "state", "detail")
            write_json([dict(zip(names, row, strict=True)) for row in rows], out)
        elif not rows:
            out.write("No mirror tasks found\n")
        else:
            cells = [(*row[:3], " ".join(row[3].split()) if row[3] else None) for row in rows]
            write_table(TASK_COLUMNS, cells, out)


def _state_of(task: DescribedMirrorTask) -> str:
    if task.error:
        return FAILED
    return "NOT_APPLICABLE" if task.note else "OK"


def _known(told: int) -> int | None:
    return None if told < 0 else told


def _one_line(row: PartitionRow) -> str | None:
    if not row.error_message:
        return None
    return cut_right(" ".join(row.error_message.split()), ERROR_CHARS_MAX)
