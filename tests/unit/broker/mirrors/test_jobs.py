"""Each job is done in its own time; one that hangs or fails keeps no other from its work."""

import asyncio
import logging
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from twinlog.broker.mirror_board import MirrorBoard, MirrorStatus
from twinlog.broker.mirrors.jobs import Job, repeat
from twinlog.model.errors import ApiError, ErrorCode

AT_ONCE_S = 0.0
NEVER_S = 1_000.0
BOUND_S = 60.0


class Done:
    """Counts how often a job was done; fails or hangs where a test wants it to."""

    def __init__(self, *, fails: int = 0, hangs: bool = False) -> None:
        self.count = 0
        self.fails = fails
        self.hangs = hangs
        self.go_on = asyncio.Event()
        self._changed = asyncio.Event()

    async def __call__(self) -> None:
        self.count += 1
        self._changed.set()
        if self.hangs:
            await self.go_on.wait()
        if self.count <= self.fails:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"failure {self.count}")

    async def times(self, count: int) -> None:
        """Return when it was done so often."""
        async with asyncio.timeout(BOUND_S):
            while self.count < count:
                self._changed.clear()
                await self._changed.wait()


class Running:
    """Jobs of one mirror, and what is shown of them."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self.board = MirrorBoard()
        self.status = MirrorStatus()
        self.running: list[asyncio.Task[None]] = []
        self._tasks = tasks

    def start(self, name: str, do: Done, interval_s: float) -> Job:
        """Let a job be done from now on."""
        job = Job(name, do, lambda: interval_s)
        work: Any = SimpleNamespace(name="m", board=self.board, status=self.status)
        self.running.append(self._tasks.create_task(repeat(job, work)))
        return job


@pytest.fixture
async def jobs() -> AsyncIterator[Running]:
    async with asyncio.TaskGroup() as tasks:
        made = Running(tasks)
        yield made
        for task in made.running:
            task.cancel()


async def test_one_that_hangs_keeps_no_other_from_its_work(jobs: Running) -> None:
    hanging, going = Done(hangs=True), Done()
    jobs.start("group offsets", hanging, AT_ONCE_S)
    jobs.start("topics", going, AT_ONCE_S)
    await going.times(5)
    assert hanging.count == 1
    assert jobs.status.task_errors == {"topics": None}


async def test_one_that_fails_shows_its_error_once_in_the_log_and_mends_itself(
    jobs: Running, caplog: pytest.LogCaptureFixture
) -> None:
    failing = Done(fails=3)
    with caplog.at_level(logging.WARNING):
        jobs.start("acls", failing, AT_ONCE_S)
        await failing.times(3)
        assert "failure 3" in (jobs.status.task_errors["acls"] or "")
        await failing.times(6)
    assert jobs.status.task_errors == {"acls": None}
    assert jobs.board.task_errors["acls"] == 3
    assert [record.message for record in caplog.records] == ["mirror sync failed"]


async def test_one_that_is_woken_is_done_before_its_time(jobs: Running) -> None:
    rare = Done()
    job = jobs.start("topics", rare, NEVER_S)
    await rare.times(1)
    job.wake.set()
    await rare.times(2)
    assert rare.count == 2


async def test_one_that_is_woken_while_it_is_done_is_done_once_more(jobs: Running) -> None:
    slow = Done(hangs=True)
    job = jobs.start("topics", slow, NEVER_S)
    await slow.times(1)
    job.wake.set()
    slow.hangs = False
    slow.go_on.set()
    await slow.times(2)
    assert slow.count == 2
