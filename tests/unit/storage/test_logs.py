"""All logs of a broker: made, found again after a stop or a crash, given up."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import pytest

from support.batches import batch
from support.logs import read_all
from twinlog.model.errors import ApiError, DiskError, ErrorCode, SettingsError
from twinlog.model.ids import Offset, TopicId, TopicName, TopicPartition
from twinlog.storage.disk import Disk, OpenFile
from twinlog.storage.logs import Logs
from twinlog.storage.settings import LogSettings

A0 = TopicPartition(TopicName("a"), 0)
A1 = TopicPartition(TopicName("a"), 1)
ID = TopicId(UUID(int=7))
SETTINGS = LogSettings(segment_bytes=300)


@contextmanager
def opened(*folders: Path, disk: Disk | None = None) -> Iterator[Logs]:
    """Open logs, and leave them as a kill would unless the test closes them."""
    logs = Logs([str(folder) for folder in folders], disk=disk)
    try:
        logs.claim("cluster-1", 1, lambda: UUID(int=9))
        logs.load(lambda of: SETTINGS, now_ms=0)
        yield logs
    finally:
        logs.close(is_clean=False)


def fill(logs: Logs, of: TopicPartition, count: int) -> None:
    log = logs.get(of)
    assert log is not None
    for _ in range(count):
        log.append_as_leader(batch(1), leader_epoch=0, now_ms=1_000)


def test_a_log_is_found_again_after_a_clean_stop(tmp_path: Path) -> None:
    with opened(tmp_path) as logs:
        assert logs.cluster_id == "cluster-1"
        assert not logs.was_clean
        logs.create(A0, ID, SETTINGS)
        fill(logs, A0, 9)
        logs.write_high_watermarks({A0: 8, A1: 3})
        logs.close(is_clean=True, broker_epoch=42)
    assert (tmp_path / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":42}'
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\na 0 9\n"
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\na 0 0\n"
    assert (tmp_path / "replication-offset-checkpoint").read_text() == "0\n1\na 0 8\n"
    with opened(tmp_path) as logs:
        assert (logs.was_clean, logs.last_broker_epoch) == (True, 42)
        assert [log.of for log in logs] == [A0]
        assert (len(logs), logs.topic_id_of(A0), logs.dir_of(A0)) == (1, ID, str(tmp_path))
        assert logs.high_watermark_of(A0) == 8
    with opened(tmp_path) as logs:
        assert not logs.was_clean, "the mark is taken away by the start"


def test_nothing_written_is_lost_by_a_kill(tmp_path: Path) -> None:
    with opened(tmp_path) as logs:
        log = logs.create(A0, ID, SETTINGS)
        fill(logs, A0, 20)
        log.raise_start_to(6)
        content = read_all(log)
        logs.write_points()
    with opened(tmp_path) as logs:
        again = logs.get(A0)
        assert again is not None
        assert (again.start, again.end, read_all(again)) == (6, 20, content)
        assert logs.high_watermark_of(A0) == 6, "no high watermark was written: it is the start"


def test_a_log_restarted_lower_stays_there_after_a_kill(tmp_path: Path) -> None:
    with opened(tmp_path) as logs:
        log = logs.create(A0, ID, SETTINGS)
        log.restart_at(1_000)
        log.append_as_follower(batch(1, base_offset=1_000))
        logs.write_points()
        log.restart_at(5)
        log.append_as_follower(batch(1, base_offset=5))
    with opened(tmp_path) as logs:
        again = logs.get(A0)
        assert again is not None
        assert (again.start, again.end) == (5, 6)


def test_a_deleted_log_is_gone_at_once_and_its_files_later(tmp_path: Path) -> None:
    with opened(tmp_path) as logs:
        logs.create(A0, ID, SETTINGS)
        fill(logs, A0, 3)
        logs.delete(A0, UUID(int=1))
        assert (logs.get(A0), logs.topic_id_of(A0), logs.dir_of(A0)) == (None, None, None)
        logs.create(A0, ID, SETTINGS)
        assert logs.take_trash(100, delay_ms=50) == []
        due = logs.take_trash(150, delay_ms=50)
        assert len(due) == 1
        logs.empty_trash(due)
    assert [path.name for path in tmp_path.glob("a-0*")] == ["a-0"]


def test_a_deletion_cut_short_is_completed_after_the_next_start(tmp_path: Path) -> None:
    with opened(tmp_path) as logs:
        logs.create(A0, ID, SETTINGS)
        logs.delete(A0, UUID(int=1))
    with opened(tmp_path) as logs:
        assert len(logs) == 0
        logs.empty_trash(logs.take_trash(0, delay_ms=0))
    assert list(tmp_path.glob("a-0*")) == []


def test_a_log_set_aside_keeps_its_folder(tmp_path: Path) -> None:
    with opened(tmp_path) as logs:
        logs.create(A0, ID, SETTINGS)
        fill(logs, A0, 1)
        aside = Path(logs.set_aside(A0, UUID(int=1)))
        logs.empty_trash(logs.take_trash(0, delay_ms=0))
        assert (aside / f"{0:020d}.log").stat().st_size > 0
    with opened(tmp_path) as logs:
        assert len(logs) == 0


def test_new_logs_go_where_the_fewest_are(tmp_path: Path) -> None:
    with opened(tmp_path / "x", tmp_path / "y") as logs:
        logs.create(A0, ID, SETTINGS)
        logs.create(A1, ID, SETTINGS)
        assert {logs.dir_of(A0), logs.dir_of(A1)} == {str(tmp_path / "x"), str(tmp_path / "y")}


def test_a_failed_dir_goes_offline_alone(tmp_path: Path) -> None:
    with opened(tmp_path / "x", tmp_path / "y") as logs:
        logs.create(A0, ID, SETTINGS)
        logs.create(A1, ID, SETTINGS)
        bad = logs.dir_of(A0)
        assert bad is not None
        assert logs.fail(bad, "burnt") == [A0]
        assert (logs.offline, logs.get(A0)) == ({bad: "burnt"}, None)
        assert logs.get(A1) is not None
        logs.create(A0, ID, SETTINGS)
        assert logs.dir_of(A0) == logs.dir_of(A1)
        logs.fail(str(logs.dir_of(A1)), "burnt too")
        with pytest.raises(ApiError) as caught:
            logs.create(A0, ID, SETTINGS)
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_dir_that_cannot_be_read_is_offline_from_the_start(tmp_path: Path) -> None:
    class Unreadable(Disk):
        def names_in(self, folder: str) -> list[str]:
            raise DiskError(f"cannot list {folder}: Input/output error")

    with opened(tmp_path, disk=Unreadable()) as logs:
        assert "Input/output error" in logs.offline[str(tmp_path)]


def test_other_folders_are_left_alone(tmp_path: Path) -> None:
    for name in ("__cluster_metadata-0", "remote-log-index-cache", "lost+found"):
        (tmp_path / name).mkdir()
    with opened(tmp_path) as logs:
        assert len(logs) == 0
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 3


def test_a_partition_in_two_dirs_is_refused(tmp_path: Path) -> None:
    for name in ("x", "y"):
        (tmp_path / name / "a-0").mkdir(parents=True)
    with pytest.raises(SettingsError, match="a-0 is in"), opened(tmp_path / "x", tmp_path / "y"):
        pass


def test_a_folder_without_metadata_has_no_topic_id(tmp_path: Path) -> None:
    (tmp_path / "a-0").mkdir()
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\na 0 77\n")
    with opened(tmp_path) as logs:
        log = logs.get(A0)
        assert log is not None
        assert (log.start, log.end) == (Offset(77), Offset(77))
        assert logs.topic_id_of(A0) == UUID(int=0)


def test_a_dir_that_fails_while_it_is_closed_gets_no_mark(tmp_path: Path) -> None:
    class Full(Disk):
        def sync(self, file: OpenFile) -> None:
            raise DiskError(f"cannot flush {file.path}: Input/output error")

    with opened(tmp_path) as logs:
        logs.create(A0, ID, SETTINGS)
    logs = Logs([str(tmp_path)], disk=Full())
    logs.load(lambda of: SETTINGS, now_ms=0)
    fill(logs, A0, 1)
    logs.close(is_clean=True)
    assert "Input/output error" in logs.offline[str(tmp_path)]
    assert not (tmp_path / ".kafka_cleanshutdown").exists()


class PartlyBroken(Disk):
    """A disk that cannot flush what lies under some paths, and notes what it flushes."""

    def __init__(self, *broken: str) -> None:
        self.broken = list(broken)
        self.flushed: list[str] = []

    def sync(self, file: OpenFile) -> None:
        for one in self.broken:
            if one in file.path:
                raise DiskError(f"cannot flush {file.path}: Input/output error")
        self.flushed.append(file.path)


def two_dirs(tmp_path: Path, disk: Disk) -> Logs:
    """Give logs of two dirs, ``x`` with the first and ``y`` with the second."""
    logs = Logs([f"{tmp_path}/x", f"{tmp_path}/y"], disk=disk)
    logs.load(lambda of: SETTINGS, now_ms=0)
    for of in (A0, A1):
        logs.create(of, ID, SETTINGS)
        fill(logs, of, 3)
    assert (logs.dir_of(A0), logs.dir_of(A1)) == (f"{tmp_path}/x", f"{tmp_path}/y")
    return logs


def test_a_dir_that_fails_keeps_no_other_from_its_checkpoints(tmp_path: Path) -> None:
    disk = PartlyBroken()
    logs = two_dirs(tmp_path, disk)
    disk.broken = ["/x/"]
    with pytest.raises(DiskError, match="/x/"):
        logs.write_points()
    with pytest.raises(DiskError, match="/x/"):
        logs.write_high_watermarks({A0: 3, A1: 3})
    for name, offset in (("recovery-point", 0), ("log-start", 0), ("replication", 3)):
        content = (tmp_path / "y" / f"{name}-offset-checkpoint").read_text()
        assert content == f"0\n1\na 1 {offset}\n"
    logs.close(is_clean=False)


def test_a_log_is_cut_although_another_dir_fails(tmp_path: Path) -> None:
    disk = PartlyBroken()
    logs = two_dirs(tmp_path, disk)
    disk.broken = ["/x/"]
    log = logs.get(A1)
    assert log is not None
    assert log.truncate_to(1) == 1
    logs.close(is_clean=False)


@pytest.mark.parametrize("is_ended_by", ["kill", "clean stop"])
def test_a_log_made_again_begins_as_new_also_after_a_kill(tmp_path: Path, is_ended_by: str) -> None:
    """Believed of the new log, the old one's checkpoints would drop all of its records."""
    with opened(tmp_path) as logs:
        log = logs.create(A0, ID, SETTINGS)
        fill(logs, A0, 20)
        log.raise_start_to(15)
        log.flush()
        logs.write_points()
        logs.write_high_watermarks({A0: 20})
        logs.close(is_clean=is_ended_by == "clean stop")
    with opened(tmp_path) as logs:
        logs.delete(A0, UUID(int=1))
        new = logs.create(A0, TopicId(UUID(int=8)), SETTINGS)
        assert logs.high_watermark_of(A0) == 0
        fill(logs, A0, 7)
        content = read_all(new)
    for name in ("recovery-point", "log-start", "replication"):
        assert (tmp_path / f"{name}-offset-checkpoint").read_text() == "0\n0\n"
    with opened(tmp_path) as logs:
        again = logs.get(A0)
        assert again is not None
        assert (again.start, again.end, read_all(again)) == (0, 7, content)
        assert again.recovery_point == 0


def test_a_name_that_no_checkpoint_has_costs_no_flush(tmp_path: Path) -> None:
    disk = PartlyBroken()
    logs = two_dirs(tmp_path, disk)
    logs.delete(A0, UUID(int=1))
    logs.create(A0, ID, SETTINGS)
    assert disk.flushed == []
    logs.close(is_clean=False)


def test_a_log_whose_flush_failed_is_recovered_and_the_rest_of_its_dir_is_not_lost(
    tmp_path: Path,
) -> None:
    disk = PartlyBroken()
    logs = two_dirs(tmp_path, disk)
    disk.broken = ["/a-0/"]
    first = logs.get(A0)
    assert first is not None
    with pytest.raises(DiskError):
        first.flush()
    disk.broken = []
    logs.close(is_clean=True)
    assert list(logs.offline) == [f"{tmp_path}/x"]
    assert "takes no more records" in logs.offline[f"{tmp_path}/x"]
    assert not (tmp_path / "x" / ".kafka_cleanshutdown").exists()
    assert (tmp_path / "y" / ".kafka_cleanshutdown").exists()
    assert (tmp_path / "x" / "recovery-point-offset-checkpoint").read_text() == "0\n1\na 0 0\n"
    with opened(tmp_path / "x", tmp_path / "y") as again:
        for of in (A0, A1):
            fill(again, of, 1)
            log = again.get(of)
            assert log is not None
            assert log.end == 4


def test_all_that_was_written_to_is_flushed_before_the_mark(tmp_path: Path) -> None:
    disk = PartlyBroken()
    logs = two_dirs(tmp_path, disk)
    second = logs.get(A1)
    assert second is not None
    second.flush()
    disk.flushed.clear()
    logs.close(is_clean=True)
    names = [Path(path).name for path in disk.flushed if "/a-" in path]
    assert sorted(names) == [f"{0:020d}.index", f"{0:020d}.log", f"{0:020d}.timeindex"]
    marks = [at for at, path in enumerate(disk.flushed) if ".kafka_cleanshutdown" in path]
    assert max(at for at, path in enumerate(disk.flushed) if "/x/a-0/" in path) < min(marks)
