"""Snapshots of producers survive a round trip, and bad ones are never believed."""

from pathlib import Path

import pytest

from support.batches import batch
from twinlog.storage.disk import Disk
from twinlog.storage.producers import Producer, Producers
from twinlog.storage.snapshots import Snapshots, decode_snapshot, encode_snapshot
from twinlog.wire.records.batch import read_header


def some_producers() -> list[Producer]:
    producers = Producers()
    for content in (
        batch(3, base_offset=10, producer=(7, 2, 5), timestamp=99),
        batch(1, base_offset=13, producer=(8, 0, 0), is_transactional=True),
    ):
        producers.apply(read_header(content, 0), None)
    return producers.all()


def facts(producers: list[Producer]) -> list[tuple[int, ...]]:
    return [
        (
            one.producer_id,
            one.epoch,
            one.last_sequence,
            one.last_offset,
            one.last_timestamp,
            one.coordinator_epoch,
            one.txn_first_offset,
        )
        for one in producers
    ]


def test_what_is_written_is_read_again() -> None:
    producers = some_producers()
    content = encode_snapshot(producers)
    assert len(content) == 10 + 2 * 46
    again = decode_snapshot(content)
    assert again is not None
    assert facts(again) == facts(producers)
    loaded = Producers()
    loaded.load(14, again)
    assert loaded.open_transactions() == [(8, 0, 13, -1)]
    assert loaded.end == 14
    assert decode_snapshot(encode_snapshot([])) == []


def test_a_producer_without_batches_has_none_afterwards() -> None:
    again = decode_snapshot(encode_snapshot([Producer(1, 4)]))
    assert again is not None
    assert (again[0].epoch, again[0].spans) == (4, [])


@pytest.mark.parametrize("cut", [0, 5, 9, 20, 101])
def test_a_torn_snapshot_is_not_believed(cut: int) -> None:
    assert decode_snapshot(encode_snapshot(some_producers())[:cut]) is None


def test_no_flipped_bit_is_believed() -> None:
    content = encode_snapshot(some_producers())
    for at in range(len(content)):
        wrong = bytearray(content)
        wrong[at] ^= 1
        assert decode_snapshot(bytes(wrong)) is None


def test_the_newest_good_one_is_taken_and_bad_ones_go(tmp_path: Path) -> None:
    snapshots = Snapshots(Disk(), str(tmp_path))
    for offset in (30, 10, 20):
        snapshots.take(offset, some_producers())
    snapshots.take(20, [])
    assert snapshots.offsets == [10, 20, 30]
    (tmp_path / f"{30:020d}.snapshot").write_bytes(b"junk")
    found = snapshots.latest(at_most=40)
    assert found is not None
    assert (found[0], found[1]) == (20, [])
    assert not (tmp_path / f"{30:020d}.snapshot").exists()
    found = snapshots.latest(at_most=19)
    assert found is not None
    assert found[0] == 10
    assert snapshots.latest(at_most=9) is None


def test_they_go_with_what_they_tell_of(tmp_path: Path) -> None:
    snapshots = Snapshots(Disk(), str(tmp_path))
    for offset in (10, 20, 25, 30, 40):
        snapshots.take(offset, [])
    snapshots.keep_only([10, 20, 30])
    assert snapshots.offsets == [10, 20, 30, 40], "the newest was taken at the last stop"
    snapshots.drop_above(30)
    snapshots.drop_below(20)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"{20:020d}.snapshot",
        f"{30:020d}.snapshot",
    ]
