"""Killed between any two file operations, a log opens again as it was before or after the step."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from support.batches import batch, marker
from support.logs import OF, HastyDisk, home, open_log, read_all
from twinlog.storage.disk import OpenFile
from twinlog.storage.log import PartitionLog
from twinlog.storage.settings import LogSettings
from twinlog.wire.primitives import Buffer
from twinlog.wire.records.batch import iter_headers

SETTINGS = LogSettings(segment_bytes=260, index_interval_bytes=60)
BATCHES = [
    batch(1, base_offset=at, leader_epoch=at // 4, producer=(1, 0, at)) for at in range(10, 26)
]
MORE = [
    batch(1, base_offset=26, leader_epoch=9, producer=(2, 0, 0), is_transactional=True),
    marker(0, base_offset=27, leader_epoch=9, producer_id=2),
    *(batch(1, base_offset=at, leader_epoch=10) for at in range(28, 36)),
]


class KilledError(BaseException):
    """The process is no more; nothing may catch this on the way."""


class MortalDisk(HastyDisk):
    """A disk whose process is killed when it has changed so many things."""

    __slots__ = ("changes_left",)

    def __init__(self) -> None:
        self.changes_left = 1 << 30

    def _live(self) -> None:
        if self.changes_left == 0:
            raise KilledError
        self.changes_left -= 1

    def write(self, file: OpenFile, content: Buffer, position: int) -> None:
        if self.changes_left == 0:
            super().write(file, memoryview(content)[: len(content) // 2], position)
        self._live()
        super().write(file, content, position)

    def truncate(self, file: OpenFile, size_bytes: int) -> None:
        self._live()
        super().truncate(file, size_bytes)

    def rename(self, path: str, to: str) -> None:
        self._live()
        super().rename(path, to)

    def remove(self, path: str) -> None:
        self._live()
        super().remove(path)


class World:
    """A log, the checkpoints of its owner, and its death."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.disk = MortalDisk()
        shared = home(self.disk)
        shared.save_points = self.save
        self.log = PartitionLog.open(
            str(folder), OF, SETTINGS, home=shared, log_start=10, is_clean=True
        )
        self.log.append_as_follower(b"".join(BATCHES))
        self.log.flush()
        self.save()

    def save(self) -> None:
        self.points = (int(self.log.start), int(self.log.recovery_point))

    def killed_after(self, changes: int, step: Callable[[PartitionLog], object]) -> bool:
        """Do the step until that many changes are made; True if it was killed before its end."""
        self.disk.changes_left = changes
        try:
            step(self.log)
        except KilledError:
            return True
        return False

    def reopened(self) -> PartitionLog:
        return open_log(
            self.folder,
            SETTINGS,
            log_start=self.points[0],
            recovery_point=self.points[1],
            is_clean=False,
        )


def append(log: PartitionLog) -> None:
    log.append_as_follower(b"".join(MORE))


def stop(log: PartitionLog) -> None:
    log.close(is_clean=True)


STEPS: dict[str, Callable[[PartitionLog], object]] = {
    "append": append,
    "truncate": lambda log: log.truncate_to(17),
    "truncate a little": lambda log: log.truncate_to(25),
    "restart higher": lambda log: log.restart_at(100),
    "restart lower": lambda log: log.restart_at(3),
    "raise the start": lambda log: log.raise_start_to(20),
    "roll": lambda log: log.roll(),
    "stop": stop,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STEPS)
def test_a_kill_leaves_a_run_of_the_batches(tmp_path: Path, name: str) -> None:
    for changes in range(200):
        folder = tmp_path / str(changes)
        world = World(folder)
        was_killed = world.killed_after(changes, STEPS[name])
        again = world.reopened()
        check(again, was_killed=was_killed, name=name)
        check_usable(again)
        shutil.rmtree(folder)
        if not was_killed:
            return
    pytest.fail("the step never ends")


def check(log: PartitionLog, *, was_killed: bool, name: str) -> None:
    """What is there is an unbroken run of what was written; an append loses nothing older."""
    content = read_all(log)
    every = b"".join([*BATCHES, *MORE])
    assert content in every
    headers = [header for _, header in iter_headers(content)]
    offsets = [header.base_offset for header in headers]
    assert offsets == list(range(log.start, log.end)) or not offsets
    assert log.epochs.latest == max((header.leader_epoch for header in headers), default=-1)
    if name in {"append", "roll", "stop"}:
        assert content.startswith(b"".join(BATCHES))
    if name == "raise the start":
        assert (log.end, content[-20:]) == (26, BATCHES[-1][-20:])
    if not was_killed and name == "append":
        assert content == every
    if not was_killed and name == "truncate":
        assert log.end == 17
    if not was_killed and name == "restart lower":
        assert (log.start, log.end) == (3, 3)


def check_usable(log: PartitionLog) -> None:
    """It goes on where it ends, and finds every offset."""
    end = log.end
    log.append_as_follower(batch(2, base_offset=end, leader_epoch=20, producer=(5, 0, 0)))
    for offset in range(log.start, log.end):
        found = log.read(offset, max_bytes=10, up_to=log.end, at_least_one=True)
        assert found is not None
        assert found.first_offset == (end if offset >= end else offset)
