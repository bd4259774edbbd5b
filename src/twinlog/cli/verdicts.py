"""How ``--verify`` shows what it found of each partition."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TextIO

from twinlog.cli.batch_comparison import Comparison
from twinlog.cli.mirror_history import gap_lines, history_as_json, start_line
from twinlog.cli.mirror_tables import PartitionRow
from twinlog.cli.output import fitted, write_json, write_table

EQUAL: Final = "EQUAL"
DIFFERENT: Final = "DIFFERENT"
NOT_COMPARED: Final = "NOT_COMPARED"
NOT_HERE_YET: Final = "the source has this partition, and it is not mirrored yet"
STOPPED_STATES: Final = ("STOPPING", "STOPPED")
HEADINGS: Final = ("TOPIC", "PARTITION", "FROM", "EQUAL-UP-TO", "BATCHES", "BYTES", "RESULT")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found of one partition; ``why`` if it could not be compared to its end."""

    topic: str
    partition: int
    comparison: Comparison | None = None
    why: str | None = None
    note: str | None = None
    """What may explain a difference."""
    row: PartitionRow | None = None
    """What the mirror tells of it."""
    source_start: int | None = None
    """Where the source's log begins."""

    @property
    def only_at_source(self) -> tuple[int, int] | None:
        """The offsets (end exclusive) below the copy that are there; None if that is as meant."""
        if self.comparison is None or self.source_start is None:
            return None
        end = self.comparison.start
        begun = self.row.start if self.row else None
        first = max(self.source_start, begun.offset if begun else 0)
        return (first, end) if first < end else None

    @property
    def result(self) -> str:
        """EQUAL, DIFFERENT, or NOT_COMPARED: what is not known to be equal is told apart."""
        if self.comparison is not None and self.comparison.differences:
            return DIFFERENT
        if self.only_at_source is not None and not self._is_stopped:
            return DIFFERENT
        return EQUAL if self.comparison is not None and self.why is None else NOT_COMPARED

    @property
    def _is_stopped(self) -> bool:
        """Whether its log has a life of its own by now, retention included."""
        return self.row is not None and self.row.state in STOPPED_STATES

    def cells(self) -> tuple[object, ...]:
        """Give the row of the table."""
        found = self.comparison
        if found is None:
            return (self.topic, self.partition, None, None, None, None, self.result)
        return (
            self.topic,
            self.partition,
            found.start,
            found.equal_up_to,
            found.batch_count,
            found.byte_count,
            self.result,
        )

    def lines(self) -> list[str]:
        """Say what the table has no room for."""
        name = f"{self.topic}-{self.partition}"
        found = self.comparison
        told = self._history()
        if self.only_at_source is not None:
            first, end = self.only_at_source
            reason = " (deleted by retention, or lost)" if self._is_stopped else ""
            told.append(
                f"{name} begins at {end} here, and at {first} at the source: offsets {first} to "
                f"{end - 1} are not here{reason} and were not compared"
            )
        if found is not None:
            told += [f"{name} {difference}" for difference in found.differences]
            more = found.difference_count - len(found.differences)
            if more:
                told.append(f"{name} differs in {more} more place(s)")
            told += [
                f"{name} offsets {first} to {end - 1} were deleted before they could be compared"
                for first, end in found.skipped
            ]
        if self.note is not None:
            told.append(f"{name}: {self.note}")
        if self.why is not None:
            told.append(
                f"{name} was not compared{'' if found is None else ' to its end'}: {self.why}"
            )
        return told

    def _history(self) -> list[str]:
        if self.row is None:
            return []
        found = self.comparison
        start = start_line(self.row, found.start if found and self.result == EQUAL else None)
        return [*filter(None, [start]), *gap_lines(self.row)]

    def as_json(self) -> dict[str, Any]:
        """Give it as a JSON object."""
        found = self.comparison
        return {
            "topic": self.topic,
            "partition": self.partition,
            "result": self.result,
            "from": found.start if found else None,
            "equalUpTo": found.equal_up_to if found else None,
            "mirroredEnd": found.end if found else None,
            "onlyAtSource": list(self.only_at_source) if self.only_at_source else None,
            "batches": found.batch_count if found else 0,
            "bytes": found.byte_count if found else 0,
            "differenceCount": found.difference_count if found else 0,
            "differences": [d.as_json() for d in found.differences] if found else [],
            "deletedMeanwhile": [list(each) for each in found.skipped] if found else [],
            "why": self.why,
            "note": self.note,
            **history_as_json(self.row),
        }


@dataclass(frozen=True, slots=True)
class VerifyView:
    """What --verify shows."""

    mirror: str
    verdicts: Sequence[Verdict]

    @property
    def is_equal(self) -> bool:
        """Whether every partition is known to be equal, and there is one."""
        return 0 < len(self.verdicts) == self._count(EQUAL)

    def write(self, out: TextIO, *, as_json: bool) -> None:
        """Write the JSON; or the table, what is wrong, and the sum of it."""
        if as_json:
            told = {
                "mirror": self.mirror,
                "isEqual": self.is_equal,
                "partitions": [verdict.as_json() for verdict in self.verdicts],
            }
            write_json(told, out)
            return
        rows = [verdict.cells() for verdict in self.verdicts]
        write_table(fitted(HEADINGS, rows), rows, out)
        for verdict in self.verdicts:
            for line in verdict.lines():
                out.write(f"{line}\n")
        out.write(
            f"Mirror {self.mirror}: {self._count(EQUAL)} partition(s) equal, "
            f"{self._count(DIFFERENT)} different, {self._count(NOT_COMPARED)} not compared\n"
        )

    def _count(self, result: str) -> int:
        return sum(verdict.result == result for verdict in self.verdicts)
