"""Where a mirror begins: the words of ``mirror.start.offset.spec``."""

from datetime import datetime
from typing import Final

from twinlog.config.checks import Check
from twinlog.config.declare import Setting, Update
from twinlog.config.kinds import LONG_MAX, Kind

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
EARLIEST_TIMESTAMP: Final = -2
LATEST_TIMESTAMP: Final = -1
"""What ListOffsets takes in place of a time."""


def start_timestamp_ms(spec: str) -> int:
    """Give what to ask ListOffsets for. Raises ValueError for words that are none."""
    if spec == EARLIEST:
        return EARLIEST_TIMESTAMP
    if spec == LATEST:
        return LATEST_TIMESTAMP
    if spec.isascii() and spec.isdigit():
        timestamp_ms = int(spec)
    else:
        time = datetime.fromisoformat(spec)
        if time.tzinfo is None:
            raise ValueError(f"{spec} is without a time zone")
        timestamp_ms = round(time.timestamp() * 1_000)
    if not 0 <= timestamp_ms <= LONG_MAX:
        raise ValueError(f"{spec} is before 1970 or beyond all times")
    return timestamp_ms


def _is_start(spec: str) -> bool:
    try:
        start_timestamp_ms(spec)
    except (ValueError, OverflowError):
        return False
    return True


MIRROR_START_OFFSET_SPEC: Final = Setting(
    "mirror.start.offset.spec",
    Kind.STRING,
    EARLIEST,
    "Where a partition begins that is mirrored from scratch: earliest, latest, or a time: then at "
    "the first record of that time or later. It is for what the source has when the mirror is "
    "first told of it: what is created later begins at the earliest. (Not a setting of the "
    "proposal.)",
    Check(
        "earliest, latest, a time such as 2026-01-31T00:00:00Z, or milliseconds since 1970",
        _is_start,
    ),
    Update.CLUSTER_WIDE,
)
