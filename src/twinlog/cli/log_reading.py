"""Reads the batches of a partition in order, across leaders, without looking at the records."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
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
PLACES_AT_ONCE: Final = 2_000

Place = tuple[str, int]
"""A topic and a partition."""


class Bounds(NamedTuple):
    """The offsets that a partition has; ``end`` is exclusive, and the high watermark."""

    start: int
    end: int


class OvertakenError(Exception):
    """What was to be read next has been deleted."""


async def bounds_of(cluster: Cluster, places: Collection[Place]) -> dict[Place, Bounds | str]:
    """Give the bounds of each partition, or why they are not known."""
    starts = await offsets_at(cluster, places, EARLIEST)
    ends = await offsets_at(cluster, places, LATEST)
    found: dict[Place, Bounds | str] = {}
    for place in places:
        start, end = starts[place], ends[place]
        if isinstance(start, str):
            found[place] = start
        elif isinstance(end, str):
            found[place] = end
        else:
            found[place] = Bounds(start, end)
    return found


async def offsets_at(
    cluster: Cluster,
    places: Collection[Place],
    time_ms: int,
    *,
    isolation: int = READ_UNCOMMITTED,
) -> dict[Place, int | str]:
    """Give the offset of a time (or EARLIEST, LATEST) in each partition, or why it is not known."""
    found: dict[Place, int | str] = {}
    wanted = sorted(places)
    for first in range(0, len(wanted), PLACES_AT_ONCE):
        some = wanted[first : first + PLACES_AT_ONCE]
        found |= await _offsets_at(cluster, some, time_ms, isolation)
    return found


async def _offsets_at(
    cluster: Cluster, places: Sequence[Place], time_ms: int, isolation: int
) -> dict[Place, int | str]:
    found: dict[Place, int | str] = dict.fromkeys(places, "its leader says nothing of it")
    missing = list(places)
    for attempt in range(FAILURES_MAX):
        if attempt:
            await asyncio.sleep(RETRY_DELAY_S)
        leaders = await leaders_of(cluster, missing)
        found |= {place: why for place, why in leaders.items() if isinstance(why, str)}
        again: list[Place] = []
        for leader in sorted({at for at in leaders.values() if isinstance(at, int)}):
            asked = [place for place in missing if leaders[place] == leader]
            told = await _list_offsets(cluster, leader, asked, time_ms, isolation)
            for place, row in told.items():
                code = row.error_code
                found[place] = sentence(code, None) if code else row.offset
                if is_retriable(code):
                    again.append(place)
        if not again:
            break
        missing = again
    return found


async def _list_offsets(
    cluster: Cluster, leader: int, places: Iterable[Place], time_ms: int, isolation: int
) -> dict[Place, ListedPartition]:
    asked: dict[str, list[ListOffsetsPartition]] = {}
    for topic, partition in places:
        wanted = ListOffsetsPartition(partition_index=partition, timestamp=time_ms)
        asked.setdefault(topic, []).append(wanted)
    answer = await cluster.ask_node(
        leader,
        LIST_OFFSETS,
        ListOffsetsRequest(
            isolation_level=isolation,
            topics=tuple(
                ListOffsetsTopic(name=topic, partitions=tuple(partitions))
                for topic, partitions in asked.items()
            ),
            timeout_ms=cluster.timeout_ms,
        ),
    )
    return {
        (told.name, row.partition_index): row for told in answer.topics for row in told.partitions
    }


async def leaders_of(cluster: Cluster, places: Collection[Place]) -> dict[Place, int | str]:
    """Give the leader of each partition, or why there is none."""
    answer = await cluster.metadata(sorted({topic for topic, _ in places}))
    codes = {topic.name: topic.error_code for topic in answer.topics}
    leaders = {
        (topic.name, partition.partition_index): partition.leader_id
        for topic in answer.topics
        for partition in topic.partitions
    }
    found: dict[Place, int | str] = {}
    for place in places:
        topic, partition = place
        leader = leaders.get(place)
        if leader is None:
            code = codes.get(topic) or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            found[place] = sentence(code, f"there is no {topic}-{partition}")
        else:
            found[place] = leader if leader >= 0 else "it has no leader; is a broker down?"
    return found


async def places_beside(cluster: Cluster, places: Collection[Place]) -> list[Place]:
    """Give the further partitions of the same topics that the cluster has."""
    there = await places_in(cluster, {topic for topic, _ in places})
    return sorted(set(there).difference(places))


async def places_in(cluster: Cluster, topics: Collection[str]) -> list[Place]:
    """Give the partitions that the cluster has of these topics."""
    if not topics:
        return []
    answer = await cluster.metadata(sorted(topics))
    return [(t.name or "", p.partition_index) for t in answer.topics for p in t.partitions]


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
            place = (self.topic, self.partition)
            found = (await leaders_of(self.cluster, [place]))[place]
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
