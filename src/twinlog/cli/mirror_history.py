"""What is known of a mirrored partition's past: where it began, and which records never came."""

from typing import Any

from twinlog.cli.mirror_tables import PartitionRow
from twinlog.config.mirror_start import MIRROR_START_OFFSET_SPEC
from twinlog.wire.messages.mirrors import DescribedLoss

GAP = "gap"


def gaps_of(row: PartitionRow) -> list[DescribedLoss]:
    """Give the gaps that are written down, the oldest first."""
    return [loss for loss in row.losses if loss.kind == GAP]


def gap_lines(row: PartitionRow) -> list[str]:
    """Say which records never came, and why."""
    return [
        f"{row.topic}-{row.partition} records {gap.first_offset} to {gap.end_offset - 1} never "
        f"came, the source had deleted them before: {gap.cause}"
        for gap in gaps_of(row)
    ]


def start_line(row: PartitionRow, equal_from: int | None) -> str | None:
    """Say where a partition began, and what was left out for that.

    ``equal_from`` is where both logs are equal from on, None if they are not.
    """
    start = row.start
    if start is None:
        return None
    name = f"{row.topic}-{row.partition}"
    how = "is equal from" if equal_from == start.offset else "was begun at"
    line = f"{name} {how} {start.offset}, since {MIRROR_START_OFFSET_SPEC.name}={start.spec}"
    if start.skipped_from == start.offset:
        return f"{line}; the source had no records below"
    return f"{line}; records {start.skipped_from} to {start.offset - 1} were never to be mirrored"


def history_as_json(row: PartitionRow | None) -> dict[str, Any]:
    """Give both as members of a JSON object, also of what is not mirrored yet."""
    told = {"start": None, "losses": []} if row is None else row.as_json()
    return {
        "start": told["start"],
        "gaps": [loss for loss in told["losses"] if loss["kind"] == GAP],
    }
