"""Reads records of a topic's partitions in order, across leaders, as a console needs it."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from twinlog.cli.cluster import Cluster
from twinlog.cli.failures import CliError, expect_ok, sentence
from twinlog.model.errors import ErrorCode, is_retriable
from twinlog.wire.messages.fetch import (
    FETCH,
    AbortedTransaction,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchTopic,
)
from twinlog.wire.messages.offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from twinlog.wire.records.batch import BatchHeader, check_crc, iter_headers
from twinlog.wire.records.control import ControlType, control_type_of
from twinlog.wire.records.records import Record, records_of

EARLIEST: Final = -2
LATEST: Final = -1
READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
WAIT_MS: Final = 500
FETCH_BYTES: Final = 8 << 20
PARTITION_BYTES: Final = 1 << 20
FAILURES_MAX: Final = 40


async def list_offsets(
    cluster: Cluster, topic: str, partitions: dict[int, int], *, isolation: int = READ_UNCOMMITTED
) -> dict[int, int]:
    """Give, for each partition, the offset of a time in ms, or of EARLIEST or LATEST.

    -1 where no record is that young.
    """
    leaders = {p.partition_index: p.leader_id for p in (await cluster.topic(topic)).partitions}
    found: dict[int, int] = {}
    for leader in sorted({leaders[p] for p in partitions if p in leaders}):
        asked = tuple(
            ListOffsetsPartition(partition_index=p, timestamp=time)
            for p, time in partitions.items()
            if leaders.get(p) == leader
        )
        answer = await cluster.ask_node(
            leader,
            LIST_OFFSETS,
            ListOffsetsRequest(
                isolation_level=isolation,
                topics=(ListOffsetsTopic(name=topic, partitions=asked),),
                timeout_ms=cluster.timeout_ms,
            ),
        )
        for told in answer.topics[0].partitions:
            doing = f"offsets of {topic}-{told.partition_index} cannot be listed"
            expect_ok(told.error_code, None, doing=doing)
            found[told.partition_index] = told.offset
    return found


@dataclass(frozen=True, slots=True)
class Read:
    """A record, and the partition it is of."""

    partition: int
    record: Record


class TopicReader:
    """Reads on from an offset of each partition; ``positions`` tells what comes next."""

    def __init__(
        self, cluster: Cluster, topic: str, positions: dict[int, int], *, isolation: int
    ) -> None:
        self.positions = positions
        self._cluster = cluster
        self._topic = topic
        self._isolation = isolation
        self._leaders: dict[int, int] = {}
        self._failures = 0

    async def read_some(self) -> list[Read]:
        """Give what every leader has now, waiting shortly for new records; maybe nothing."""
        if not self._leaders:
            found = await self._cluster.topic(self._topic)
            self._leaders = {p.partition_index: p.leader_id for p in found.partitions}
        by_leader: dict[int, list[int]] = {}
        for partition in self.positions:
            if partition not in self._leaders:
                raise CliError(f"topic {self._topic} has no partition {partition}")
            by_leader.setdefault(self._leaders[partition], []).append(partition)
        try:
            async with asyncio.TaskGroup() as tasks:
                asked = [tasks.create_task(self._fetch(n, ps)) for n, ps in by_leader.items()]
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        return [read for task in asked for read in task.result()]

    async def _fetch(self, leader: int, partitions: list[int]) -> list[Read]:
        wanted = tuple(
            FetchPartition(
                partition=p, fetch_offset=self.positions[p], partition_max_bytes=PARTITION_BYTES
            )
            for p in partitions
        )
        answer = await self._cluster.ask_node(
            leader,
            FETCH,
            FetchRequest(
                max_wait_ms=WAIT_MS,
                min_bytes=1,
                max_bytes=FETCH_BYTES,
                isolation_level=self._isolation,
                topics=(FetchTopic(topic=self._topic, partitions=wanted),),
            ),
        )
        expect_ok(answer.error_code, None, doing=f"topic {self._topic} cannot be read")
        out: list[Read] = []
        for topic in answer.topics:
            for partition in topic.partitions:
                out += await self._take(partition)
        return out

    async def _take(self, fetched: FetchedPartition) -> list[Read]:
        partition = fetched.partition_index
        if fetched.error_code:
            await self._failed(partition, fetched.error_code)
            return []
        self._failures = 0
        out = []
        for record, following in committed_records(fetched, self._isolation):
            if record is not None and record.offset >= self.positions[partition]:
                out.append(Read(partition, record))
            self.positions[partition] = max(self.positions[partition], following)
        return out

    async def _failed(self, partition: int, code: int) -> None:
        """Look for the new leader, or begin at the earliest record that there still is."""
        where = f"{self._topic}-{partition} at offset {self.positions[partition]}"
        self._failures += 1
        if self._failures > FAILURES_MAX:
            raise CliError(f"{where} cannot be read: {sentence(code, None)}")
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            ends = dict.fromkeys((partition,), EARLIEST)
            self.positions |= await list_offsets(self._cluster, self._topic, ends)
        elif is_retriable(code):
            self._leaders = {}
            await asyncio.sleep(WAIT_MS / 1_000)
        else:
            raise CliError(f"{where} cannot be read: {sentence(code, None)}")


def committed_records(
    fetched: FetchedPartition, isolation: int
) -> Iterator[tuple[Record | None, int]]:
    """Give the records for a consumer, each with the offset after it.

    Control records and, when only committed ones are wanted, those of aborted transactions are
    left out: in their place comes None with the offset after their batch.
    """
    assert isinstance(fetched.records, bytes | bytearray | memoryview | None), "read, not written"
    buffer = fetched.records or b""
    aborted = sorted(fetched.aborted_transactions or (), key=lambda a: a.first_offset)
    dropped: set[int] = set()
    for position, header in iter_headers(buffer):
        check_crc(buffer, position, header)
        if isolation == READ_COMMITTED:
            _note_aborted(aborted, dropped, header)
        if header.is_control:
            _end_of_transaction(records_of(buffer, position, header), header, dropped)
        elif not (header.is_transactional and header.producer_id in dropped):
            for record in records_of(buffer, position, header):
                yield record, record.offset + 1
        yield None, header.next_offset


def _note_aborted(
    aborted: list[AbortedTransaction], dropped: set[int], header: BatchHeader
) -> None:
    """Begin to drop the producers whose aborted transaction begins up to this batch."""
    while aborted and aborted[0].first_offset <= header.last_offset:
        dropped.add(aborted.pop(0).producer_id)


def _end_of_transaction(records: list[Record], header: BatchHeader, dropped: set[int]) -> None:
    """An ABORT ends what is dropped of its producer."""
    if records and control_type_of(records[0].key) is ControlType.ABORT:
        dropped.discard(header.producer_id)
