"""Which of the oldest segments may go: by age, by size, or because the log begins after them."""

from collections.abc import Sequence
from typing import NamedTuple

from twinlog.storage.settings import LogSettings


class SegmentFact(NamedTuple):
    """What the decision needs to know of a segment."""

    end: int
    """Offset after it: where the next segment begins, or the log ends."""
    size_bytes: int
    max_timestamp: int
    """In milliseconds; where no record has one, when the file was last written."""


def count_deletable(
    segments: Sequence[SegmentFact],
    settings: LogSettings,
    *,
    now_ms: int,
    log_start: int,
    up_to: int,
) -> int:
    """Give how many of the oldest segments may go; the newest one counts like the others.

    Nothing at or above ``up_to``, the high watermark, goes. As in Kafka, size is measured so that
    what stays is never below ``retention_bytes``.
    """
    count = 0
    excess_bytes = sum(segment.size_bytes for segment in segments) - settings.retention_bytes
    for segment in segments:
        if segment.end > up_to or segment.size_bytes == 0:
            break
        is_before_start = segment.end <= log_start
        by_policy = settings.is_deleted_by_age_and_size and (
            _is_too_old(segment, settings.retention_ms, now_ms)
            or (settings.retention_bytes >= 0 and excess_bytes >= segment.size_bytes)
        )
        if not (is_before_start or by_policy):
            break
        excess_bytes -= segment.size_bytes
        count += 1
    return count


def _is_too_old(segment: SegmentFact, retention_ms: int, now_ms: int) -> bool:
    return 0 <= retention_ms < now_ms - segment.max_timestamp
