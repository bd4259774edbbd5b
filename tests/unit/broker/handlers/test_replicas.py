from pathlib import Path

import pytest

from support.batches import batch
from support.brokers import local_broker
from twinlog.wire.messages.replicas import (
    DESCRIBE_LOG_DIRS,
    DescribeLogDirsRequest,
    LogDirTopic,
)


@pytest.mark.parametrize("version", range(1, 6))
async def test_log_dirs_tell_their_partitions_with_sizes(tmp_path: Path, version: int) -> None:
    async with local_broker(tmp_path, {"num.partitions": "2"}) as broker:
        await broker.make_topic("a")
        await broker.make_topic("b")
        records = batch([(b"k", b"v")])
        await broker.produce("a", records, partition=1)
        everything = await broker.ask(
            DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=None), version
        )
        (log_dir,) = everything.results
        assert log_dir.log_dir == str(tmp_path / "data")
        assert [(t.name, [p.partition_size for p in t.partitions]) for t in log_dir.topics] == [
            ("a", [0, len(records)]),
            ("b", [0, 0]),
        ]
        if version >= 4:
            assert 0 < log_dir.usable_bytes <= log_dir.total_bytes
        some = DescribeLogDirsRequest(topics=(LogDirTopic(topic="a", partitions=(1, 7)),))
        (log_dir,) = (await broker.ask(DESCRIBE_LOG_DIRS, some, version)).results
        assert [(t.name, len(t.partitions)) for t in log_dir.topics] == [("a", 1)]


async def test_every_log_dir_is_told_also_an_empty_one(tmp_path: Path) -> None:
    dirs = f"{tmp_path / 'one'},{tmp_path / 'two'}"
    async with local_broker(tmp_path, {"log.dirs": dirs}) as broker:
        await broker.make_topic("a")
        answer = await broker.ask(DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=None))
        assert [Path(one.log_dir).name for one in answer.results] == ["one", "two"]
        assert sum(len(one.topics) for one in answer.results) == 1
