"""DescribeLogDirs: v1-5.

Differs from Kafka: no log dir is ever cordoned, and no partition moves between log dirs.
"""

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from twinlog.broker.context import Context
from twinlog.broker.partitions import Partition
from twinlog.config.logs import LOG_DIRS
from twinlog.model.errors import ErrorCode
from twinlog.wire.messages.replicas import (
    DescribedLogDir,
    DescribedLogPartition,
    DescribedLogTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)


def handle_describe_log_dirs(
    request: DescribeLogDirsRequest, context: Context
) -> DescribeLogDirsResponse:
    """Tell which partitions lie in which folder, their sizes, and the room left on the disk."""
    asked = (
        None
        if request.topics is None
        else {topic.topic: frozenset(topic.partitions) for topic in request.topics}
    )
    by_dir: dict[str, list[Partition]] = defaultdict(list)
    for partition in context.broker.partitions:
        by_dir[_key(Path(partition.log.folder).parent)].append(partition)
    return DescribeLogDirsResponse(
        results=tuple(
            _described(path, by_dir[_key(Path(path))], asked)
            for path in context.broker.settings[LOG_DIRS]
        )
    )


def _key(path: Path) -> str:
    return str(path.absolute())


def _described(
    path: str, partitions: list[Partition], asked: Mapping[str, frozenset[int]] | None
) -> DescribedLogDir:
    try:
        disk = os.statvfs(path)
    except OSError:
        return DescribedLogDir(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=path, topics=())
    return DescribedLogDir(
        log_dir=str(Path(path).absolute()),
        topics=tuple(_topics(partitions, asked)),
        total_bytes=disk.f_blocks * disk.f_frsize,
        usable_bytes=disk.f_bavail * disk.f_frsize,
    )


def _topics(
    partitions: list[Partition], asked: Mapping[str, frozenset[int]] | None
) -> Iterator[DescribedLogTopic]:
    by_topic: dict[str, list[Partition]] = defaultdict(list)
    for partition in partitions:
        of = partition.of
        if asked is None or of.partition in asked.get(of.topic, ()):
            by_topic[of.topic].append(partition)
    for name in sorted(by_topic):
        yield DescribedLogTopic(
            name=name,
            partitions=tuple(
                DescribedLogPartition(
                    partition_index=partition.of.partition,
                    partition_size=partition.log.size_bytes,
                    offset_lag=max(0, partition.high_watermark - partition.log.end),
                )
                for partition in sorted(by_topic[name], key=lambda p: p.of.partition)
            ),
        )
