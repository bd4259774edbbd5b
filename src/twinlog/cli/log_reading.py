"""Reads the batches of a partition in order, across leaders, without looking at the records."""

import asyncio
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from twinlog.cli.batch_comparison import Piece, piece_of
from twinlog.cli.cluster import Cluster
from twinlog.cli.failures import CliError, sentence
from twinlog.cli.reading import EARLIEST, LATEST, READ_UNCOMMITTED
from twinlog.model.errors import ErrorCode, is_retriable
from twinlog.wire.messages.fetch import (
    FETCH,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchTopic,
)
from twinlog.wire.messages.offsets import (
    LIST_OFFSETS,
    ListedPartition,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

FETCH_BYTES: Final = 2 << 20
FETCH_WAIT_MS: Final = 500
FAILURES_MAX: Final = 20
RETRY_DELAY_S: Final = 0.25


class Bounds(NamedTuple):
    """The offsets that a partition has; ``end`` is exclusive, and the high watermark."""

    start: int
    end: int


class OvertakenError(Exception):
    """What was to be read next has been deleted."""


async def bounds_of(
    cluster: Cluster, topic: str, partitions: Collection[int]
) -> dict[int, Bounds | str]:
    """Give the bounds of each partition, or why they are not known."""
    starts = await offsets_at(cluster, topic, partitions, EARLIEST)
    ends = await offsets_at(cluster, topic, partitions, LATEST)
    found: dict[int, Bounds | str] = {}
    for partition in partitions:
        start, end = starts[partition], ends[partition]
        if isinstance(start, str):
            found[partition] = start
        elif isinstance(end, str):
            found[partition] = end
        else:
            found[partition] = Bounds(start, end)
    return found


async def offsets_at(
    cluster: Cluster,
    topic: str,
    partitions: Collection[int],
    time_ms: int,
    *,
    isolation: int = READ_UNCOMMITTED,
) -> dict[int, int | str]:
    """Give the offset of a time (or EARLIEST, LATEST) in each partition, or why it is not known."""
    found: dict[int, int | str] = {}
    for attempt in range(FAILURES_MAX):
        if attempt:
            await asyncio.sleep(RETRY_DELAY_S)
        missing = [p for p in partitions if not isinstance(found.get(p), int)]
        leaders = await leaders_of(cluster, topic, missing)
        found |= {p: why for p, why in leaders.items() if isinstance(why, str)}
        is_final = True
        for leader in sorted({at for at in leaders.values() if isinstance(at, int)}):
            asked = [p for p in missing if leaders[p] == leader]
            for told in await _list_offsets(cluster, leader, topic, asked, time_ms, isolation):
                code = told.error_code
                found[told.partition_index] = sentence(code, None) if code else told.offset
                is_final = is_final and not is_retriable(code)
        if is_final:
            break
    return {p: found.get(p, "its leader says nothing of it") for p in partitions}


async def _list_offsets(
    cluster: Cluster,
    leader: int,
    topic: str,
    partitions: Iterable[int],
    time_ms: int,
    isolation: int,
) -> Iterator[ListedPartition]:
    asked = tuple(ListOffsetsPartition(partition_index=p, timestamp=time_ms) for p in partitions)
    answer = await cluster.ask_node(
        leader,
        LIST_OFFSETS,
        ListOffsetsRequest(
            isolation_level=isolation,
            topics=(ListOffsetsTopic(name=topic, partitions=asked),),
            timeout_ms=cluster.timeout_ms,
        ),
    )
    return (partition for told in answer.topics for partition in told.partitions)


async def leaders_of(
    cluster: Cluster, topic: str, partitions: Iterable[int]
) -> dict[int, int | str]:
    """Give the leader of each partition, or why there is none."""
    (told,) = (await cluster.metadata([topic])).topics
    known = {p.partition_index: p for p in told.partitions}
    found: dict[int, int | str] = {}
    for partition in partitions:
        if partition not in known:
            code = told.error_code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            found[partition] = sentence(code, f"there is no {topic}-{partition}")
        elif known[partition].leader_id < 0:
            found[partition] = "it has no leader; is a broker down?"
        else:
            found[partition] = known[partition].leader_id
    return found


@dataclass(slots=True)
class LogReader:
    """Reads one partition from ``position`` up to ``end`` (exclusive), a fetch at a time."""

    cluster: Cluster
    topic: str
    partition: int
    position: int
    end: int
    _leader: int | None = None
    _failure_count: int = 0

    @property
    def is_at_end(self) -> bool:
        """Whether everything was read."""
        return self.position >= self.end

    async def next_piece(self) -> Piece:
        """Give the next batches, at least one unless there is a fault.

        Raises CliError when they cannot be read, OvertakenError when they were deleted.
        """
        while True:
            fetched = await self._fetch()
            if fetched.error_code == ErrorCode.CORRUPT_MESSAGE:
                return Piece((), self.position, "its broker says that it is corrupt")
            if fetched.error_code:
                await self._failed(fetched.error_code)
                continue
            assert isinstance(fetched.records, bytes | bytearray | memoryview | None), "as read"
            piece = piece_of(fetched.records or b"", self.position, self.end)
            if piece.next_offset > self.position or piece.fault:
                self.position, self._failure_count = piece.next_offset, 0
                return piece
            self._count_failure(f"nothing comes, though offsets go up to {self.end}")

    async def _fetch(self) -> FetchedPartition:
        if self._leader is None:
            found = (await leaders_of(self.cluster, self.topic, [self.partition]))[self.partition]
            if isinstance(found, str):
                raise CliError(found)
            self._leader = found
        wanted = FetchPartition(
            partition=self.partition, fetch_offset=self.position, partition_max_bytes=FETCH_BYTES
        )
        answer = await self.cluster.ask_node(
            self._leader,
            FETCH,
            FetchRequest(
                max_wait_ms=FETCH_WAIT_MS,
                min_bytes=1,
                max_bytes=FETCH_BYTES,
                isolation_level=READ_UNCOMMITTED,
                topics=(FetchTopic(topic=self.topic, partitions=(wanted,)),),
            ),
        )
        if answer.error_code or not answer.topics:
            return FetchedPartition(
                partition_index=self.partition, error_code=answer.error_code, high_watermark=-1
            )
        return answer.topics[0].partitions[0]

    async def _failed(self, code: int) -> None:
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            raise OvertakenError
        why = sentence(code, None)
        if not is_retriable(code):
            raise CliError(f"offset {self.position} cannot be read: {why}")
        self._count_failure(why)
        self._leader = None
        await asyncio.sleep(RETRY_DELAY_S)

    def _count_failure(self, why: str) -> None:
        self._failure_count += 1
        if self._failure_count >= FAILURES_MAX:
            raise CliError(f"offset {self.position} cannot be read: {why}")
