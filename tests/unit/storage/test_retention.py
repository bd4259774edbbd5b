"""Which of the oldest segments may go."""

from twinlog.storage.retention import SegmentFact, count_deletable
from twinlog.storage.settings import LogSettings

SEGMENTS = [
    SegmentFact(end=10, size_bytes=100, max_timestamp=1_000),
    SegmentFact(end=20, size_bytes=100, max_timestamp=2_000),
    SegmentFact(end=30, size_bytes=100, max_timestamp=3_000),
]


def count(settings: LogSettings, *, now_ms: int = 0, log_start: int = 0, up_to: int = 30) -> int:
    return count_deletable(SEGMENTS, settings, now_ms=now_ms, log_start=log_start, up_to=up_to)


def test_segments_go_once_their_newest_record_is_too_old() -> None:
    settings = LogSettings(retention_ms=500)
    assert [count(settings, now_ms=now) for now in (1_500, 1_501, 2_501, 3_501)] == [0, 1, 2, 3]
    assert count(LogSettings(retention_ms=-1), now_ms=1 << 50) == 0


def test_segments_go_while_enough_is_left_without_them() -> None:
    sizes = (299, 201, 200, 101, 100, 0)
    counts = [count(LogSettings(retention_ms=-1, retention_bytes=size)) for size in sizes]
    assert counts == [0, 0, 1, 1, 2, 3]
    assert count(LogSettings(retention_ms=-1, retention_bytes=-1)) == 0


def test_what_lies_before_the_start_goes_whatever_the_policy() -> None:
    compacted = LogSettings(cleanup_policy=frozenset({"compact"}), retention_ms=1)
    assert count(compacted, now_ms=1 << 50) == 0
    assert count(compacted, log_start=20) == 2
    assert count(compacted, log_start=19) == 1


def test_nothing_above_the_high_watermark_goes() -> None:
    settings = LogSettings(retention_ms=1)
    assert count(settings, now_ms=1 << 50, up_to=29) == 2
    assert count(settings, now_ms=1 << 50, up_to=9) == 0


def test_an_empty_segment_stays() -> None:
    empty = [SegmentFact(end=0, size_bytes=0, max_timestamp=0)]
    settings = LogSettings(retention_ms=1, retention_bytes=0)
    assert count_deletable(empty, settings, now_ms=1 << 50, log_start=0, up_to=0) == 0
