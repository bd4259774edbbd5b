"""Segments, epochs, producers and snapshots change together."""

from pathlib import Path

import pytest

from support.batches import batch, marker
from support.logs import home
from twinlog.storage.admit import admit_copies
from twinlog.storage.parts import LogParts
from twinlog.storage.segment import Segment
from twinlog.storage.settings import LogSettings

SETTINGS = LogSettings(segment_bytes=200)


def empty_parts(folder: Path) -> LogParts:
    parts = LogParts(home(), str(folder))
    parts.segments.append(Segment(parts.files, str(folder), 0))
    parts.segments[0].create()
    return parts


def write(parts: LogParts, *batches: bytes) -> None:
    content = memoryview(b"".join(batches))
    parts.write(admit_copies(content, end=parts.end, is_empty=parts.end == 0), SETTINGS)


def filled(folder: Path) -> LogParts:
    parts = empty_parts(folder)
    for at in range(0, 12, 2):
        write(
            parts,
            batch(1, base_offset=at, leader_epoch=at, producer=(1, 0, at), is_transactional=True),
            marker(0, base_offset=at + 1, leader_epoch=at, producer_id=1),
        )
    return parts


def test_a_new_segment_takes_a_snapshot_of_the_producers(tmp_path: Path) -> None:
    parts = filled(tmp_path)
    bases = [segment.base for segment in parts.segments]
    assert len(bases) > 2
    assert parts.snapshots.offsets == bases[1:]
    assert parts.producers.end == parts.end == 12
    assert parts.roll(12).base == 12
    assert parts.roll(12) is parts.segments[-1]
    assert [parts.index_of(offset) for offset in (-5, bases[1] - 1, bases[1], 99)] == [
        0,
        0,
        1,
        len(bases),
    ]


@pytest.mark.slow
def test_a_cut_brings_everything_back_to_that_offset(tmp_path: Path) -> None:
    for end in range(13):
        folder = tmp_path / str(end)
        folder.mkdir()
        parts = filled(folder)
        parts.cut(end)
        assert parts.end == parts.producers.end == end
        assert parts.epochs.history.latest == (-1 if end == 0 else (end - 1) // 2 * 2)
        opened = [txn[:3] for txn in parts.producers.open_transactions()]
        assert opened == ([(1, 0, end - 1)] if end % 2 else [])
        aborted = [txn for segment in parts.segments for txn in segment.aborted()]
        assert [txn.last_offset for txn in aborted] == list(range(1, end, 2))
        assert all(offset <= end for offset in parts.snapshots.offsets)


def test_replay_goes_on_from_the_newest_snapshot(tmp_path: Path) -> None:
    parts = filled(tmp_path)
    at_end = [(one.epoch, one.last_sequence) for one in parts.producers.all()]
    for offsets in (parts.snapshots.offsets[:], []):
        parts.snapshots.keep_only([])
        parts.snapshots.offsets[:] = offsets
        parts.replay_producers(12)
        assert [(one.epoch, one.last_sequence) for one in parts.producers.all()] == at_end
    parts.replay_producers(5)
    assert parts.producers.open_transactions() == [(1, 0, 4, 0)]


def test_the_oldest_go_with_their_snapshots_and_epochs(tmp_path: Path) -> None:
    parts = filled(tmp_path)
    base = parts.segments[2].base
    parts.drop_oldest(2, base + 1)
    assert parts.segments[0].base == base
    assert parts.snapshots.offsets[0] >= base
    assert parts.epochs.history.entries[0].start == base + 1
    parts.begin_at(3)
    assert (parts.end, len(parts.segments), len(parts.producers)) == (3, 1, 0)
    assert (parts.snapshots.offsets, parts.epochs.history.entries) == ([], [])
