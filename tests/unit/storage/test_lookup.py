"""A time leads to the first record that late, in the middle of a batch if need be."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.batches import batch
from support.logs import open_log
from twinlog.storage.lookup import RecordPlace
from twinlog.storage.settings import LogSettings

SETTINGS = LogSettings(segment_bytes=400, index_interval_bytes=100, segment_ms=1 << 40)
times = st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=5), min_size=1, max_size=12)


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(batches=times, share=st.floats(0, 1), wanted=st.integers(0, 61))
def test_it_agrees_with_a_linear_search(
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[list[int]],
    share: float,
    wanted: int,
) -> None:
    log = open_log(tmp_path_factory.mktemp("lookup"), SETTINGS)
    records: list[tuple[int, int]] = []
    for timestamps in batches:
        base = len(records)
        log.append_as_follower(batch(len(timestamps), base_offset=base, timestamps=timestamps))
        records += [(base + delta, time) for delta, time in enumerate(timestamps)]
    log.raise_start_to(int(len(records) * share))
    live = [(offset, time) for offset, time in records if offset >= log.start]
    due = next(((offset, time) for offset, time in live if time >= wanted), None)
    found = log.offset_for_time(wanted)
    assert (found[:2] if found else None) == due
    latest = log.offset_of_max_timestamp()
    newest = max(time for _, time in records)
    if newest in [time for _, time in live]:
        first = next(offset for offset, time in live if time == newest)
        assert latest is not None
        assert latest[:2] == (first, newest)


def test_records_without_times_are_not_found(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert log.offset_of_max_timestamp() is None
    assert log.offset_for_time(0) is None
    log.append_as_follower(batch(2, timestamp=-1))
    assert log.offset_of_max_timestamp() is None


def test_log_append_time_is_that_of_the_whole_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogSettings(is_log_append_time=True))
    for now_ms in (50, 60):
        log.append_as_leader(batch(3, timestamp=9), leader_epoch=2, now_ms=now_ms)
    log.raise_start_to(1)
    assert log.offset_for_time(9) == RecordPlace(1, 50, 2)
    assert log.offset_of_max_timestamp() == RecordPlace(3, 60, 2)
