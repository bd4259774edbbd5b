"""What a stop would lose, and how that is shown."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TextIO

from twinlog.cli.batch_comparison import Mark
from twinlog.cli.mirror_acls import AclDifference
from twinlog.cli.mirror_groups import GroupChange
from twinlog.cli.mirror_history import gap_lines, history_as_json
from twinlog.cli.mirror_tables import FAILED, PartitionRow
from twinlog.cli.output import fitted, write_json, write_table

MIRRORING: Final = "MIRRORING"
UNPROVEN: Final = (FAILED, "LOG_ALIGNMENT", "EPOCH_FENCING", "ULE_RECOVERY")
"""States in which as many records as the source has need not be the source's records."""
LINES_MAX: Final = 50
HEADINGS: Final = (
    "TOPIC",
    "PARTITIONS",
    "RECORDS-LOST",
    "BYTES-LOST",
    "SECONDS-BEHIND",
    "FAILED",
    "OPEN-TRANSACTIONS",
)


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that the mirrored part of a partition begins and does not end.

    Its producer is -1 where that could not be read.
    """

    producer_id: int
    producer_epoch: int
    first_offset: int

    def as_json(self) -> dict[str, Any]:
        """Give it as a JSON object."""
        return {
            "producerId": self.producer_id,
            "producerEpoch": self.producer_epoch,
            "firstOffset": self.first_offset,
        }


def note_transactions(still_open: dict[int, OpenTransaction], marks: Iterable[Mark]) -> None:
    """Follow the transactions of further batches: a marker ends that of its producer."""
    for mark in marks:
        header = mark.header
        if not header.is_transactional:
            continue
        if header.is_control:
            still_open.pop(header.producer_id, None)
        elif header.producer_id not in still_open:
            still_open[header.producer_id] = OpenTransaction(
                header.producer_id, header.producer_epoch, header.base_offset
            )


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """What a stop would do to one partition."""

    row: PartitionRow
    source_end: int | None
    """What the source has now; None if that is not known."""
    here_end: int | None
    transactions: Sequence[OpenTransaction] = ()
    trouble: str | None = None
    """What could not be looked at, and why."""
    source_start: int | None = None
    sample: tuple[int, int] | None = None
    """Bytes and offsets of the first batches that would be lost, if they were read."""

    @property
    def deleted(self) -> tuple[int, int] | None:
        """The offsets (end exclusive) that the source has deleted before they came."""
        if self.source_start is None or self.here_end is None:
            return None
        return (self.here_end, self.source_start) if self.here_end < self.source_start else None

    @property
    def records(self) -> int | None:
        """Records that would be lost: now, or as far as the mirror last knew; None if unknown."""
        if self.source_end is not None and self.here_end is not None:
            return max(0, self.source_end - self.here_end)
        return self.row.lag

    @property
    def byte_count(self) -> int | None:
        """Bytes of them, judged by the first of them, or by what came so far; None if unknown.

        What the source has deleted has none.
        """
        records, told, of = self.records, self.row.lag_bytes, self.row.lag
        if records is not None and self.deleted is not None:
            records -= self.deleted[1] - self.deleted[0]
        if records == 0:
            return 0
        if self.sample is not None:
            told, of = self.sample
        if records is None or told is None or not of:
            return None
        return told * records // of

    @property
    def cause(self) -> str | None:
        """Why it is behind or does not follow."""
        return self.trouble or self.row.error_message

    @property
    def is_lossless(self) -> bool:
        """Whether it is known that a stop would lose nothing here."""
        return (
            self.source_end is not None
            and self.records == 0
            and not self.transactions
            and self.trouble is None
            and not self.is_unproven
        )

    @property
    def is_unproven(self) -> bool:
        """Whether it is not known that what is here is the source's."""
        return self.row.state in UNPROVEN

    def lines(self) -> list[str]:
        """Say what is to be known of it."""
        name = f"{self.row.topic}-{self.row.partition}"
        told = []
        if self.records != 0 or self.row.state != MIRRORING or self.cause:
            records = "an unknown number of" if self.records is None else str(self.records)
            why = f": {self.cause}" if self.cause else ""
            told.append(f"{name} is {self.row.state}, {records} record(s) behind{why}")
        if self.deleted is not None:
            first, end = self.deleted
            told.append(
                f"{name} records {first} to {end - 1} are deleted at the source already and will "
                "not come, stopped or not"
            )
        told += [
            f"{name} has an open transaction of producer {each.producer_id} from offset "
            f"{each.first_offset} on, which would be aborted"
            for each in self.transactions
        ]
        return told + gap_lines(self.row)

    def as_json(self) -> dict[str, Any]:
        """Give it as a JSON object."""
        return {
            "partition": self.row.partition,
            "state": self.row.state,
            "sourceOffset": self.row.source_offset if self.source_end is None else self.source_end,
            "isSourceOffsetCurrent": self.source_end is not None,
            "destinationOffset": self.here_end,
            "recordsLost": self.records,
            "deletedAtSource": list(self.deleted) if self.deleted else None,
            "bytesLost": self.byte_count,
            "lagMs": self.row.lag_ms,
            "cause": self.cause,
            "openTransactions": [each.as_json() for each in self.transactions],
            **history_as_json(self.row),
        }


@dataclass(frozen=True, slots=True, order=True)
class ConfigDifference:
    """A setting of a topic that is not the source's; None is its default."""

    topic: str
    name: str
    source: str | None
    here: str | None

    def __str__(self) -> str:
        """Say it in a line."""
        sides = [
            "the default" if value is None else f"{self.name}={value}"
            for value in (self.source, self.here)
        ]
        return f"topic {self.topic}: {self.name}: {sides[0]} at the source, {sides[1]} here"

    def as_json(self) -> dict[str, Any]:
        """Give it as a JSON object."""
        return {
            "topic": self.topic,
            "name": self.name,
            "source": self.source,
            "destination": self.here,
        }


@dataclass(frozen=True, slots=True)
class StopPlan:
    """What --stop --plan shows."""

    mirror: str
    partitions: Sequence[PartitionPlan]
    groups: Sequence[GroupChange] | None = ()
    """None if they could not be looked at, as with the settings."""
    configs: Sequence[ConfigDifference] | None = ()
    troubles: Sequence[str] = ()
    """What could not be looked at as a whole: the source, its groups, its settings."""
    acls: AclDifference = AclDifference()  # noqa: RUF009 - it is frozen

    @property
    def is_lossless(self) -> bool:
        """Whether it is known that a stop would lose nothing and leave nothing out of step."""
        return (
            all(each.is_lossless for each in self.partitions)
            and self._group_loss_count == 0
            and self.configs is not None
            and not self.configs
            and not self.troubles
            and not self.acls.is_loss
        )

    def write(self, out: TextIO, *, as_json: bool) -> None:
        """Write the JSON; or the table of topics, what is to be known, and the sum of it."""
        if as_json:
            write_json(self.as_json(), out)
            return
        for trouble in self.troubles:
            out.write(f"{trouble}\n")
        rows = [_cells(topic, plans) for topic, plans in self._by_topic().items()]
        write_table(fitted(HEADINGS, rows), rows, out)
        lines = [line for plan in self.partitions for line in plan.lines()]
        lines += [str(change) for change in self.groups or ()]
        lines += [str(difference) for difference in self.configs or ()]
        lines += self.acls.lines()
        for line in lines[:LINES_MAX]:
            out.write(f"{line}\n")
        if len(lines) > LINES_MAX:
            out.write(f"and {len(lines) - LINES_MAX} more line(s): --json tells all\n")
        out.write(f"{self._sum()}\n")

    def as_json(self) -> dict[str, Any]:
        """Give the whole as a JSON object."""
        return {
            "mirror": self.mirror,
            "isLossless": self.is_lossless,
            "troubles": list(self.troubles),
            "topics": [
                {
                    "topic": topic,
                    "recordsLost": _sum_of(plan.records for plan in plans),
                    "bytesLost": _sum_of(plan.byte_count for plan in plans),
                    "lagMs": _lag_ms(plans),
                    "partitions": [plan.as_json() for plan in plans],
                }
                for topic, plans in self._by_topic().items()
            ],
            "groups": _all_as_json(self.groups),
            "configs": _all_as_json(self.configs),
            "acls": self.acls.as_json(),
        }

    @property
    def _group_loss_count(self) -> int | None:
        return None if self.groups is None else sum(change.is_loss for change in self.groups)

    def _by_topic(self) -> Mapping[str, list[PartitionPlan]]:
        found: dict[str, list[PartitionPlan]] = {}
        for plan in self.partitions:
            found.setdefault(plan.row.topic, []).append(plan)
        return found

    def _sum(self) -> str:
        if self.is_lossless:
            return f"Stopping mirror {self.mirror} now would lose nothing. Nothing was changed."
        lost = _number(_sum_of(plan.records for plan in self.partitions), "record")
        transactions = _transaction_count(self.partitions)
        groups = _number(self._group_loss_count, "group offset")
        settings = _number(None if self.configs is None else len(self.configs), "setting")
        unproven = sum(plan.is_unproven for plan in self.partitions)
        aside = f"{unproven} partition(s) do not follow the source; " if unproven else ""
        return (
            f"Stopping mirror {self.mirror} now would lose {lost}{self._as_known()} and abort "
            f"{transactions} transaction(s); {aside}{groups} and {settings} differ. "
            "Nothing was changed."
        )

    def _as_known(self) -> str:
        """Say of when the count of records is, if it is not of now."""
        dark = [plan for plan in self.partitions if plan.source_end is None]
        if not dark:
            return ""
        lag_ms = _lag_ms(dark)
        level = "" if lag_ms is None else f" (it was level {lag_ms / 1_000:.1f} s ago)"
        return f" as far as the mirror last knew{level}"


def _number(count: int | None, what: str) -> str:
    return f"an unknown number of {what}s" if count is None else f"{count} {what}(s)"


def _all_as_json(found: Sequence[GroupChange | ConfigDifference] | None) -> list[Any] | None:
    return None if found is None else [each.as_json() for each in found]


def _transaction_count(plans: Iterable[PartitionPlan]) -> int:
    """Count transactions: one goes over many partitions, and a producer has one at a time."""
    found = [each.producer_id for plan in plans for each in plan.transactions]
    return len({each for each in found if each >= 0}) + found.count(-1)


def _cells(topic: str, plans: Sequence[PartitionPlan]) -> tuple[object, ...]:
    lag_ms = _lag_ms(plans)
    return (
        topic,
        len(plans),
        _sum_of(plan.records for plan in plans),
        _sum_of(plan.byte_count for plan in plans),
        None if lag_ms is None else f"{lag_ms / 1_000:.1f}",
        sum(plan.row.state == FAILED for plan in plans),
        _transaction_count(plans),
    )


def _lag_ms(plans: Sequence[PartitionPlan]) -> int | None:
    """Give the lag of the one that is furthest behind; None if none is known."""
    return max((plan.row.lag_ms for plan in plans if plan.row.lag_ms is not None), default=None)


def _sum_of(counts: Iterable[int | None]) -> int | None:
    """Add up; None if one is not known."""
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total
