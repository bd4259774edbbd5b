"""A segment finds what it holds, and its indexes agree with its batches whatever was cut."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.batches import batch
from support.logs import FailingDisk, home
from twinlog.model.errors import DiskError
from twinlog.storage.disk import Disk
from twinlog.storage.segment import Segment
from twinlog.storage.txn_index import AbortedTxn
from twinlog.wire.records.batch import iter_headers

INTERVAL_BYTES = 150


def new_segment(folder: Path, *, base: int = 100, disk: Disk | None = None) -> Segment:
    segment = Segment(home(disk).files, str(folder), base)
    segment.create()
    return segment


def append(segment: Segment, content: bytes) -> None:
    segment.append(content, list(iter_headers(content)), INTERVAL_BYTES)


def reopened(segment: Segment, folder: Path) -> Segment:
    again = Segment(home().files, str(folder), segment.base, segment.size)
    again.has_aborted = segment.has_aborted
    return again


batches = st.lists(
    st.tuples(st.integers(1, 3), st.integers(0, 3), st.integers(-50, 50)), min_size=1, max_size=15
)


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(shapes=batches, data=st.data())
def test_indexes_agree_with_a_scan_after_any_cut(
    tmp_path_factory: pytest.TempPathFactory,
    shapes: list[tuple[int, int, int]],
    data: st.DataObject,
) -> None:
    folder = tmp_path_factory.mktemp("segment")
    segment, offset, clock, made = new_segment(folder), 100, 1_000, []
    for count, gap, step in shapes:
        clock += step
        made.append(batch(count, base_offset=offset + gap, timestamp=clock))
        offset += gap + count
        append(segment, made[-1])
    keep = data.draw(st.integers(0, len(made)))
    if keep < len(made):
        position = sum(map(len, made[:keep]))
        ((_, header),) = iter_headers(made[keep])
        segment.cut_at(position, header.base_offset)
    headers = [header for _, header in iter_headers(b"".join(made[:keep]))]
    latest = max((header.max_timestamp for header in headers), default=-1)
    segment.finish()
    for one in (segment, reopened(segment, folder)):
        assert one.max_timestamp == latest
        assert one.first_timestamp == (headers[0].max_timestamp if headers else -1)
        assert one.tail() == (headers[-1].next_offset if headers else 100, one.size)
        for wanted in range(99, offset + 1):
            found = one.locate(wanted)
            due = next((header for header in headers if header.last_offset >= wanted), None)
            assert (found[1] if found else None) == due
    check_indexes(segment, made[:keep])


def check_indexes(segment: Segment, made: list[bytes]) -> None:
    """Check each entry as Kafka's DumpLogSegments does."""
    at = dict(iter_headers(b"".join(made)))
    for index in range(len(segment.offsets)):
        relative, position = segment.offsets.entry(index)
        assert at[position].last_offset == segment.base + relative
    previous = -1
    for index in range(len(segment.times)):
        timestamp, relative = segment.times.entry(index)
        ending = [one for one in at.values() if one.last_offset == segment.base + relative]
        assert [one.max_timestamp for one in ending] == [timestamp]
        assert timestamp > previous
        previous = timestamp


def test_an_index_entry_is_made_every_interval(tmp_path: Path) -> None:
    segment = new_segment(tmp_path)
    one = len(batch(1))
    for at in range(10):
        append(segment, batch(1, base_offset=100 + at, timestamp=at))
    entries = [segment.offsets.entry(at) for at in range(len(segment.offsets))]
    assert entries == [(3, 3 * one), (6, 6 * one), (9, 9 * one)]
    assert [segment.times.entry(at) for at in range(3)] == [(3, 3), (6, 6), (9, 9)]
    assert segment.bound_after(0) == 103
    assert segment.bound_after(3 * one + 1) == 106
    assert segment.bound_after(9 * one + 1) is None


def test_a_failed_write_leaves_it_as_it_was(tmp_path: Path) -> None:
    disk = FailingDisk()
    segment = new_segment(tmp_path, disk=disk)
    append(segment, batch(1, base_offset=100))
    size, disk.bytes_left = segment.size, 30
    with pytest.raises(DiskError):
        append(segment, batch(1, base_offset=101, timestamp=9_999))
    assert (segment.size, segment.max_timestamp) == (size, 1_000)
    assert Path(segment.stem + ".log").stat().st_size == size


def test_it_knows_what_has_no_room(tmp_path: Path) -> None:
    segment = new_segment(tmp_path)
    assert segment.can_hold(100 + 0x7FFF_FFFF)
    assert not segment.can_hold(101 + 0x7FFF_FFFF)
    assert not segment.is_older_than(10, 5_000)
    append(segment, batch(1, base_offset=100, timestamp=1_000))
    assert segment.is_older_than(10, 1_011)
    assert not segment.is_older_than(10, 1_010)
    assert segment.has_full_index(20)
    assert not segment.has_full_index(24)


def test_aborted_transactions_go_with_their_markers(tmp_path: Path) -> None:
    segment = new_segment(tmp_path)
    assert segment.aborted() == []
    first, second = AbortedTxn(1, 100, 101, 102), AbortedTxn(2, 101, 103, 104)
    segment.add_aborted(first)
    segment.add_aborted(second)
    append(segment, b"".join(batch(1, base_offset=at) for at in range(100, 104)))
    assert segment.aborted() == [first, second]
    segment.cut_at(3 * len(batch(1)), 103)
    assert segment.aborted() == [first]
    segment.empty_indexes()
    assert segment.aborted() == []


def test_what_is_no_batch_ends_the_walk_to_the_tail(tmp_path: Path) -> None:
    segment = new_segment(tmp_path)
    append(segment, batch(1, base_offset=100))
    good = segment.size
    with Path(segment.stem + ".log").open("ab") as file:
        file.write(b"\xff" * 80)
    segment.size += 80
    assert segment.tail() == (101, good)
    segment.shrink_to(good)
    assert segment.tail() == (101, good)
    assert len(segment.paths()) == 5
    assert len(segment.begin_sync()) == 3
