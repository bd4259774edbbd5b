"""What a partition's log promises to its owner."""

import os
from pathlib import Path

import pytest

from support.batches import batch, marker, pid_reset
from support.logs import OF, FailingDisk, bytes_of, home, open_log, read_all
from twinlog.model.errors import ApiError, CorruptBatchError, DiskError, ErrorCode
from twinlog.storage.disk import OpenFile
from twinlog.storage.log import PartitionLog
from twinlog.storage.settings import LogSettings
from twinlog.wire.records.batch import read_header

SMALL = LogSettings(segment_bytes=300, index_interval_bytes=50)


def lead(log: PartitionLog, content: bytes, **others: bool) -> int:
    return log.append_as_leader(content, leader_epoch=0, now_ms=1_000, **others).first_offset


def copies(first: int, count: int, *, value_bytes: int = 1) -> bytes:
    return b"".join(
        batch(1, base_offset=at, value_bytes=value_bytes) for at in range(first, first + count)
    )


def test_a_leader_numbers_batches_and_says_what_it_did(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert log.append_as_leader(batch(3), leader_epoch=4, now_ms=1_000) == (0, 2, 0, -1, False, 91)
    done = log.append_as_leader(batch(2), leader_epoch=5, now_ms=1_000)
    assert (done.first_offset, done.last_offset, log.end) == (3, 4, 5)
    assert [(entry.epoch, entry.start) for entry in log.epochs.entries] == [(4, 0), (5, 3)]


def test_log_append_time_is_told_and_written(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogSettings(is_log_append_time=True))
    done = log.append_as_leader(
        batch(1, timestamp=5, producer=(1, 0, 0)), leader_epoch=0, now_ms=777
    )
    assert done.log_append_time_ms == 777
    again = log.append_as_leader(
        batch(1, timestamp=5, producer=(1, 0, 0)), leader_epoch=0, now_ms=999
    )
    assert (again.duplicate, again.log_append_time_ms) == (True, 777)
    found = log.offset_for_time(700)
    assert found is not None
    assert (found.offset, found.timestamp) == (0, 777)


def test_a_repeated_batch_is_told_where_it_is_and_not_written_twice(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    lead(log, batch(2, producer=(9, 0, 0)))
    lead(log, batch(2, producer=(9, 0, 2)))
    done = log.append_as_leader(batch(2, producer=(9, 0, 0)), leader_epoch=0, now_ms=0)
    assert (done.first_offset, done.last_offset, done.duplicate) == (0, 1, True)
    assert log.end == 4
    with pytest.raises(ApiError, match="OUT_OF_ORDER_SEQUENCE_NUMBER"):
        lead(log, batch(1, producer=(9, 0, 5)))
    lead(log, pid_reset(), is_internal=True)
    assert lead(log, batch(1, producer=(9, 0, 5))) == 5
    assert [log.expire_producers(1 << 50) for _ in range(2)] == [0, 1]


def test_copies_are_kept_byte_for_byte(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    content = copies(5, 3) + batch(2, base_offset=100, leader_epoch=7)
    done = log.append_as_follower(content + batch(1, base_offset=102)[:-1])
    assert (done.first_offset, done.last_offset, done.taken_bytes) == (5, 101, len(content))
    assert read_all(log) == content
    assert log.append_as_follower(b"").taken_bytes == 0


def test_nothing_is_written_when_one_copy_is_bad(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_follower(copies(0, 2))
    bad = bytearray(copies(2, 3))
    bad[-1] ^= 1
    with pytest.raises(CorruptBatchError) as caught:
        log.append_as_follower(bad)
    assert caught.value.offset == 4
    assert (log.end, read_all(log)) == (2, copies(0, 2))


def test_a_log_may_start_inside_its_first_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.restart_at(7)
    content = batch(5, base_offset=5) + batch(1, base_offset=10)
    done = log.append_as_follower(content)
    assert (log.start, done.first_offset, log.end) == (7, 5, 11)
    assert bytes_of(log.read(7, max_bytes=999, up_to=11, at_least_one=False)) == content
    again = open_log(tmp_path, log_start=7, is_clean=False)
    assert (again.start, again.end) == (7, 11)


def test_segments_roll_by_size_and_one_append_may_fill_several(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    log.append_as_follower(copies(0, 20))
    sizes = [path.stat().st_size for path in sorted(tmp_path.glob("*.log"))]
    assert len(sizes) == log.segment_count == 5
    assert max(sizes) <= 300
    log.append_as_follower(batch(1, base_offset=20, value_bytes=5_000))
    assert read_all(log) == copies(0, 20) + batch(1, base_offset=20, value_bytes=5_000)


def test_segments_roll_by_time_by_full_index_and_by_far_offsets(tmp_path: Path) -> None:
    by_time = open_log(tmp_path / "time", LogSettings(segment_ms=100))
    for timestamp in (1_000, 1_100, 1_101):
        lead(by_time, batch(1, timestamp=timestamp))
    assert by_time.segment_count == 2
    tight = LogSettings(index_bytes_max=48, index_interval_bytes=1)
    by_index = open_log(tmp_path / "index", tight)
    for at in range(10):
        lead(by_index, batch(1, timestamp=at))
    assert by_index.segment_count > 1
    far = open_log(tmp_path / "far")
    content = copies(0, 1) + copies(1 << 31, 1) + copies(1 << 33, 1)
    far.append_as_follower(content)
    assert far.segment_count == 3
    assert bytes_of(far.read(1, max_bytes=99, up_to=far.end, at_least_one=True)) == copies(
        1 << 31, 1
    )
    alone = open_log(tmp_path / "alone")
    alone.append_as_follower(copies(1 << 40, 1))
    assert read_all(alone) == copies(1 << 40, 1)


def test_the_first_batch_is_given_even_when_it_is_longer_than_asked_for(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_follower(copies(0, 3, value_bytes=100))
    one = len(copies(0, 1, value_bytes=100))

    def length(max_bytes: int, **others: bool) -> int:
        found = log.read(0, max_bytes=max_bytes, up_to=3, at_least_one=others["at_least_one"])
        return len(found.region) if found else 0

    assert length(10, at_least_one=True) == one
    assert length(10, at_least_one=False) == 10
    assert length(0, at_least_one=False) == 0
    assert length(one + 5, at_least_one=True) == one + 5
    assert length(1 << 20, at_least_one=True) == 3 * one


def test_a_region_stays_readable_when_its_segment_goes(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    log.append_as_follower(copies(0, 20))
    found = log.read(0, max_bytes=999, up_to=20, at_least_one=True)
    assert found is not None
    log.raise_start_to(20)
    assert log.segment_count == 1
    assert bytes_of(found) == copies(0, 4)


def test_the_start_moves_to_any_offset_and_only_forward(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    log.append_as_follower(copies(0, 20))
    log.raise_start_to(6)
    log.raise_start_to(3)
    assert (log.start, log.segment_count) == (6, 4)
    assert log.epochs.entries[0].start == 6
    with pytest.raises(ApiError, match="orders-3 has offsets 6 to 20, not 21"):
        log.raise_start_to(21)
    log.raise_start_to(20)
    assert log.read(20, max_bytes=99, up_to=20, at_least_one=True) is None


def test_the_owner_of_the_checkpoints_is_told_before_a_log_is_cut(tmp_path: Path) -> None:
    seen: list[tuple[int, int, list[str]]] = []
    log: PartitionLog

    def save() -> None:
        names = sorted(path.name for path in tmp_path.glob("*.log"))
        seen.append((log.start, log.recovery_point, names))

    where = home()
    where.save_points = save
    log = PartitionLog.open(str(tmp_path), OF, SMALL, home=where, is_clean=True)
    log.append_as_follower(copies(0, 20))
    log.flush()
    log.raise_start_to(8)
    log.truncate_to(12)
    log.restart_at(2)
    names = [f"{at:020d}.log" for at in (8, 12, 16)]
    assert seen == [(8, 12, names), (2, 2, names[:1])]


def test_truncation_below_everything_begins_anew(tmp_path: Path) -> None:
    log = open_log(tmp_path, log_start=10)
    log.append_as_follower(copies(10, 3))
    assert log.truncate_to(20) == 13
    assert log.truncate_to(4) == 4
    assert (log.start, log.end) == (4, 4)
    log.append_as_follower(copies(4, 1))
    assert read_all(log) == copies(4, 1)


def test_retention_rolls_before_it_drops_the_last_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogSettings(segment_bytes=300, retention_ms=100))
    log.append_as_follower(copies(0, 6))
    assert log.delete_old(1_100, up_to=6) == 0
    assert log.delete_old(1_101, up_to=5) == 1
    assert log.start == 4
    assert log.delete_old(1_101, up_to=6) == 1
    assert (log.start, log.end, log.size_bytes) == (6, 6, 0)
    assert log.delete_old(1 << 50, up_to=6) == 0


def test_records_without_a_time_are_as_old_as_their_file(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogSettings(retention_ms=100))
    log.append_as_follower(batch(1, timestamp=-1))
    os.utime(tmp_path / f"{0:020d}.log", (5, 5))
    assert log.delete_old(5_100, up_to=1) == 0
    assert log.delete_old(5_101, up_to=1) == 1


@pytest.mark.slow
def test_a_full_disk_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    for room in range(0, 400, 7):
        disk = FailingDisk()
        folder = tmp_path / str(room)
        log = open_log(folder, SMALL, disk=disk)
        log.append_as_follower(copies(0, 2))
        disk.bytes_left = room
        more = batch(2, base_offset=2, leader_epoch=3, producer=(1, 0, 0)) + copies(4, 8)
        if room > len(more):
            break
        with pytest.raises(DiskError, match="No space left"):
            log.append_as_follower(more)
        assert (log.end, log.producer_count, log.epochs.latest) == (2, 0, 0)
        disk.bytes_left = 1 << 30
        log.append_as_follower(copies(2, 5))
        assert read_all(log) == copies(0, 7)
        log.close(is_clean=True)
        again = open_log(folder, SMALL, is_clean=False)
        assert (read_all(again), again.cut_bytes) == (copies(0, 7), 0)


def test_a_disk_that_is_full_for_every_file_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    # Of a new epoch and of several segments: files beside the batches need room as well.
    more = b"".join(
        batch(1, base_offset=at, leader_epoch=3, producer=(1, 0, at), value_bytes=90)
        for at in range(2, 8)
    )
    room, is_full = 0, True
    while is_full:
        disk = FailingDisk()
        disk.failing_suffix = ""
        log = open_log(tmp_path / str(room), SMALL, disk=disk)
        log.append_as_follower(copies(0, 2))
        disk.bytes_left = room
        try:
            log.append_as_follower(more)
            is_full = False
        except DiskError:
            assert (log.end, log.producer_count, log.epochs.latest) == (2, 0, 0), room
            disk.bytes_left = 1 << 30
            log.append_as_follower(more)
        assert (log.end, log.producer_count, log.epochs.latest) == (8, 1, 3)
        assert read_all(log) == copies(0, 2) + more
        log.close(is_clean=False)
        assert read_all(open_log(tmp_path / str(room), SMALL, is_clean=False)) == read_all(log)
        room += 61


class ScanningDisk(FailingDisk):
    """A disk that can fail to read and cut as well, and counts what is read."""

    __slots__ = ("is_broken", "reads")

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.is_broken = False

    def read(self, file: OpenFile, length: int, position: int) -> bytes:
        self.reads += 1
        if self.is_broken:
            raise DiskError(f"cannot read {file.path}: Input/output error")
        return super().read(file, length, position)

    def truncate(self, file: OpenFile, size_bytes: int) -> None:
        if self.is_broken:
            raise DiskError(f"cannot truncate {file.path}: Input/output error")
        super().truncate(file, size_bytes)


def test_a_write_that_could_not_be_undone_is_undone_before_the_next(tmp_path: Path) -> None:
    more = b"".join(
        batch(1, base_offset=at, leader_epoch=3, producer=(1, 0, at), value_bytes=90)
        for at in range(2, 8)
    )
    disk = ScanningDisk()
    log = open_log(tmp_path, SMALL, disk=disk)
    log.append_as_follower(copies(0, 2))
    disk.bytes_left = 200
    disk.is_broken = True
    for _ in range(3):
        with pytest.raises(DiskError):
            log.append_as_follower(more)
    disk.is_broken = False
    disk.bytes_left = 1 << 30
    log.append_as_follower(copies(2, 1))
    assert (log.end, log.producer_count, log.epochs.latest) == (3, 0, 0)
    assert read_all(log) == copies(0, 3)


def test_a_full_disk_is_noticed_without_reading_what_is_there(tmp_path: Path) -> None:
    disk = ScanningDisk()
    log = open_log(tmp_path, disk=disk)
    for at in range(200):
        log.append_as_follower(copies(at, 1))
    disk.bytes_left, disk.reads = 0, 0
    with pytest.raises(DiskError):
        log.append_as_follower(copies(200, 1))
    assert disk.reads == 0


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex", ".tmp"])
def test_a_disk_that_fails_beside_the_batches_leaves_the_log_as_it_was(
    tmp_path: Path, suffix: str
) -> None:
    disk = FailingDisk()
    log = open_log(tmp_path, SMALL, disk=disk)
    log.append_as_follower(batch(1, producer=(1, 0, 0), is_transactional=True))
    disk.failing_suffix, disk.bytes_left = suffix, 0
    with pytest.raises(DiskError):
        log.append_as_follower(marker(0, base_offset=1) + copies(2, 20))
    assert (log.end, log.open_transactions()) == (1, [(1, 0, 0, -1)])
    disk.bytes_left = 1 << 30
    log.append_as_follower(marker(0, base_offset=1) + copies(2, 20))
    assert log.end == 22
    assert len(log.aborted_between(0, 22)) == 1


def test_aborted_transactions_are_found_across_segments(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    offset = 0
    for producer_id in range(1, 7):
        log.append_as_follower(
            batch(1, base_offset=offset, producer=(producer_id, 0, 0), is_transactional=True)
            + marker(producer_id % 2, base_offset=offset + 1, producer_id=producer_id)
        )
        offset += 2
    assert log.segment_count > 2
    found = log.aborted_between(0, log.end)
    assert [(txn.producer_id, txn.first_offset, txn.last_offset) for txn in found] == [
        (2, 2, 3),
        (4, 6, 7),
        (6, 10, 11),
    ]
    assert [txn.producer_id for txn in log.aborted_between(4, 8)] == [4]
    assert log.aborted_between(8, 10) == []
    assert log.last_stable_offset(log.end) == log.end


def test_the_reset_of_a_stopped_mirror_lets_producers_start_cleanly(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_follower(batch(1, producer=(5, 3, 70)))
    lead(log, pid_reset(), is_internal=True)
    assert log.producer_count == 0
    assert lead(log, batch(1, producer=(5, 0, 0))) == 2
    assert open_log(tmp_path, is_clean=False).producer_count == 1


def test_many_messages_without_a_flush_are_flushed(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogSettings(flush_messages=3))
    log.append_as_follower(copies(0, 2))
    assert log.recovery_point == 0
    log.append_as_follower(copies(2, 1))
    assert log.recovery_point == 3


def test_a_flush_elsewhere_vouches_only_for_what_it_saw(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_follower(copies(0, 4))
    flush = log.begin_flush()
    log.append_as_follower(copies(4, 4))
    log.run_flush(flush)
    log.end_flush(flush)
    assert log.recovery_point == 4
    flush = log.begin_flush()
    log.truncate_to(2)
    log.run_flush(flush)
    log.end_flush(flush)
    assert log.recovery_point == 2
    assert log.folder == str(tmp_path)


def test_a_flush_does_not_vouch_for_what_came_in_the_place_of_what_it_saw(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    log.append_as_follower(copies(0, 10))
    flush = log.begin_flush()
    log.truncate_to(2)
    for _ in range(10):
        log.append_as_leader(batch(1), leader_epoch=7, now_ms=0)
    log.run_flush(flush)
    log.end_flush(flush)
    assert log.recovery_point == 0
    killed = open_log(tmp_path, SMALL, recovery_point=log.recovery_point, is_clean=False)
    assert [(entry.epoch, entry.start) for entry in killed.epochs.entries] == [(0, 0), (7, 2)]


def test_a_clean_stop_is_opened_without_reading_batches(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for at in range(3):
        lead(log, batch(1, producer=(1, 0, at)))
    log.close(is_clean=True)
    path = tmp_path / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    again = open_log(tmp_path)
    assert (again.end, again.cut_bytes, again.producer_count) == (3, 0, 1)
    assert (again.settings, again.of) == (LogSettings(), OF)


def test_codes_tell_the_client_what_is_wrong(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    with pytest.raises(ApiError) as caught:
        lead(log, marker(1))
    assert caught.value.code == ErrorCode.INVALID_RECORD
    assert log.end == 0
    assert read_header(batch(1), 0).base_offset == 0
