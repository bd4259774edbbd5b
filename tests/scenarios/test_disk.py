"""A disk that is full or fails refuses what needs it, and no more: nothing answered is lost."""

import asyncio
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from support.asking import create, delete, fetch, list_offset, records_in
from support.batches import batch
from support.brokers import AskedBroker, connected_to, local_broker
from support.cluster_admin import create_topic
from support.http import http_get, samples
from support.positions import committed_offset, visible_records
from support.twinlog_process import TwinlogProcess, answers_api_versions
from twinlog.broker import server
from twinlog.model.errors import DiskError, ErrorCode
from twinlog.storage.disk import Disk, OpenFile
from twinlog.storage.logs import Logs
from twinlog.wire.messages.group_offsets import (
    OFFSET_COMMIT,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from twinlog.wire.messages.groups import FIND_COORDINATOR, FindCoordinatorRequest
from twinlog.wire.primitives import Buffer

STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR
KILOBYTES_100 = 100_000


class SpoiltDisk(Disk):
    """A disk on which every change under a path fails, or every flush, while one is named."""

    __slots__ = ("spoilt", "unflushable")

    def __init__(self) -> None:
        self.spoilt = ""
        self.unflushable = ""

    def _fail(self, path: str) -> None:
        if self.spoilt and self.spoilt in path:
            raise DiskError(f"cannot change {path}: Input/output error")

    def write(self, file: OpenFile, content: Buffer, position: int) -> None:
        """Write half of it before failing, as a disk may."""
        if self.spoilt and self.spoilt in file.path:
            super().write(file, memoryview(content)[: len(content) // 2], position)
        self._fail(file.path)
        super().write(file, content, position)

    def truncate(self, file: OpenFile, size_bytes: int) -> None:
        """Cut a file."""
        self._fail(file.path)
        super().truncate(file, size_bytes)

    def sync(self, file: OpenFile) -> None:
        """Flush a file."""
        if self.unflushable and self.unflushable in file.path:
            raise DiskError(f"cannot flush {file.path}: Input/output error")
        super().sync(file)

    def rename(self, path: str, to: str) -> None:
        """Rename a file or folder."""
        self._fail(path)
        super().rename(path, to)


async def send(broker: AskedBroker, topic: str, sequence: int) -> tuple[ErrorCode, int]:
    """Send one numbered record of an idempotent producer."""
    content = batch([(None, b"%d" % sequence)], producer=(7, 0, sequence))
    answer = await broker.produce(topic, content)
    return ErrorCode(answer.error_code), answer.base_offset


async def test_a_partition_whose_files_fail_refuses_writes_and_no_other_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = SpoiltDisk()
    monkeypatch.setattr(server, "Logs", partial(Logs, disk=disk))
    settings = {
        "log.flush.offset.checkpoint.interval.ms": "5",
        "replica.high.watermark.checkpoint.interval.ms": "5",
    }
    async with local_broker(tmp_path, settings) as broker:
        await create(broker, "bad")
        await create(broker, "good")
        assert await send(broker, "bad", 0) == (ErrorCode.NONE, 0)
        disk.spoilt = "/bad-0"
        for _ in range(3):
            assert (await send(broker, "bad", 1))[0] == STORAGE_ERROR
        assert await send(broker, "good", 0) == (ErrorCode.NONE, 0)
        # What was written before can still be read, and nothing of what was refused.
        assert [r.value for r in records_in(await fetch(broker, "bad", 0))] == [b"0"]
        assert (await list_offset(broker, "bad", -1)).offset == 1
        disk.spoilt = "/data"
        assert (await send(broker, "good", 1))[0] == STORAGE_ERROR
        await asyncio.sleep(0.1)  # flushes and checkpoints come by, and fail
        disk.spoilt = ""
        assert await send(broker, "bad", 1) == (ErrorCode.NONE, 1)
        assert await send(broker, "bad", 1) == (ErrorCode.NONE, 1)
        assert await send(broker, "good", 1) == (ErrorCode.NONE, 1)
        disk.spoilt = "/bad-0"
        await delete(broker, "bad")
        disk.spoilt = ""
        assert await send(broker, "good", 2) == (ErrorCode.NONE, 2)
    async with local_broker(tmp_path) as broker:
        assert [r.value for r in records_in(await fetch(broker, "good", 0))] == [b"0", b"1", b"2"]


async def test_a_log_whose_flush_failed_takes_no_records_until_the_broker_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk = SpoiltDisk()
    monkeypatch.setattr(server, "Logs", partial(Logs, disk=disk))
    settings = {
        "log.flush.offset.checkpoint.interval.ms": "5",
        "monitoring.listener": "http://127.0.0.1:0",
    }
    async with local_broker(tmp_path, settings) as broker:
        await create(broker, "bad")
        await create(broker, "good")
        disk.unflushable = "/bad-0"
        sent = 0
        while (error := (await send(broker, "bad", sent))[0]) == ErrorCode.NONE:
            sent += 1
            assert sent < 100_000
        assert error == STORAGE_ERROR
        disk.unflushable = ""
        assert (await send(broker, "bad", sent))[0] == STORAGE_ERROR
        assert await send(broker, "good", 0) == (ErrorCode.NONE, 0)
        assert len(records_in(await fetch(broker, "bad", 0))) == sent
        listener = broker.server.metrics_listener
        assert listener is not None
        told = samples((await http_get(listener.port, "/metrics")).body)
        assert told["twinlog_failed_logs"] == 1
    assert "logs were not closed cleanly" in caplog.messages
    async with local_broker(tmp_path, settings) as broker:
        assert len(records_in(await fetch(broker, "bad", 0))) == sent
        assert await send(broker, "bad", sent) == (ErrorCode.NONE, sent)


def recovery_points(folder: Path) -> str:
    """Give what the one checkpoint under a folder says."""
    (points,) = folder.rglob("recovery-point-offset-checkpoint")
    return points.read_text()


async def test_checkpoints_that_cannot_be_written_at_a_stop_keep_no_log_from_its_flush(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk = SpoiltDisk()
    monkeypatch.setattr(server, "Logs", partial(Logs, disk=disk))
    async with local_broker(tmp_path) as broker:
        await create(broker, "good")
        assert await send(broker, "good", 0) == (ErrorCode.NONE, 0)
        disk.spoilt = "replication-offset-checkpoint"
    assert "high watermarks cannot be written" in caplog.messages
    monkeypatch.undo()
    assert "good 0 1" in recovery_points(tmp_path)
    async with local_broker(tmp_path) as broker:
        assert [r.value for r in records_in(await fetch(broker, "good", 0))] == [b"0"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Give a folder on a disk of 4 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "twinlog-test", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


async def fill(broker: AskedBroker, topic: str, value_bytes: int) -> list[int]:
    """Produce until the disk is full; give the offsets that were answered."""
    offsets: list[int] = []
    for _ in range(100):
        answer = await broker.produce(topic, batch(1, value_bytes=value_bytes))
        if answer.error_code:
            assert answer.error_code == STORAGE_ERROR, answer.error_message
            assert answer.error_message is not None
            assert "No space left on device" in answer.error_message
            return offsets
        offsets.append(answer.base_offset)
    raise AssertionError(f"{len(offsets)} records of {value_bytes} bytes fit on the disk")


def fill_up(file: Path) -> None:
    """Leave no room at all."""
    with file.open("ab", buffering=0) as end, suppress(OSError):
        while True:
            end.write(bytes(512))


async def commit(broker: AskedBroker, offset: int) -> ErrorCode:
    part = OffsetCommitPartition(
        partition_index=0,
        committed_offset=offset,
        committed_leader_epoch=-1,
        committed_metadata="n" * 4_000,
    )
    topic = OffsetCommitTopic(name="t", partitions=(part,))
    request = OffsetCommitRequest(group_id="g", topics=(topic,))
    answer = await broker.ask(OFFSET_COMMIT, request, 8)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


async def commit_in_the_end(broker: AskedBroker, offset: int) -> None:
    """Commit as a client does: again, while the coordinator says that it cannot yet."""
    async with asyncio.timeout(60):
        while (code := await commit(broker, offset)) != ErrorCode.NONE:
            assert code in (
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                ErrorCode.NOT_COORDINATOR,
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ), code.name
            await asyncio.sleep(0.05)


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize("meanwhile", ["goes on", "is killed"])
async def test_a_full_disk_takes_writes_again_once_there_is_room(
    tmp_path: Path, small_disk: Path, meanwhile: str
) -> None:
    settings = {
        "log.dirs": str(small_disk / "data"),
        "log.segment.bytes": "1000000",
        "offsets.topic.num.partitions": "1",
    }
    twinlog = TwinlogProcess(tmp_path / "twinlog", settings=settings)
    twinlog.start()
    filler = small_disk / "filler"
    try:
        create_topic(twinlog, "t")
        async with connected_to(twinlog.bootstrap) as broker:
            await broker.ask(FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=("g",)))
            await commit_in_the_end(broker, 3)
            filler.write_bytes(bytes(1 << 20))
            answered = await fill(broker, "t", KILOBYTES_100)
            fill_up(filler)
            answered += await fill(broker, "t", 1_000)
            assert answered == list(range(len(answered)))
            committed = 3
            while await commit(broker, committed + 1) == ErrorCode.NONE:
                committed += 1
            assert committed < 10
        seen = await asyncio.to_thread(visible_records, twinlog, "t")
        assert [offset for offset, _ in seen] == answered
        assert answers_api_versions(twinlog.port)
        if meanwhile == "is killed":
            twinlog.kill()
        filler.unlink()
        if meanwhile == "is killed":
            twinlog.start()
        async with connected_to(twinlog.bootstrap) as broker:
            assert (await broker.produce("t", batch(1))).base_offset == len(answered)
            assert await asyncio.to_thread(committed_offset, twinlog, "g", "t") == committed
            await commit_in_the_end(broker, 50)
            await create(broker, "another")
        seen = await asyncio.to_thread(visible_records, twinlog, "t")
        assert [offset for offset, _ in seen] == [*answered, len(answered)]
        assert await asyncio.to_thread(committed_offset, twinlog, "g", "t") == 50
    finally:
        twinlog.kill()
