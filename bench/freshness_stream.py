"""A numbered stream from a source to a destination, and when each record was told and seen.

One process, one event loop, one clock: it produces with acks=all and waits with long fetches, so
both moments are read where the bytes arrive.
"""

import asyncio
import time
from array import array
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Final

from support.numbered_batches import NotOnceError, NumberedBatches, count_in_turn
from twinlog.model.errors import ErrorCode, error_name
from twinlog.model.ids import Offset
from twinlog.network.addresses import Address
from twinlog.network.client import BrokerConnection
from twinlog.wire.messages.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from twinlog.wire.messages.produce import PRODUCE, ProducePartition, ProduceRequest, ProduceTopic

_NAMES_UNTIL = 12
_TIMEOUT_S = 60.0
_IN_FLIGHT_MAX = 32
_BEHIND_BYTES_MAX = 32 << 20
_ANSWER_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Place:
    """A topic at a broker."""

    address: Address
    topic: str
    partitions: int


class Receiver:
    """Waits at one place for records, and notes when each came."""

    def __init__(self, place: Place, connection: BrokerConnection, moved: asyncio.Event) -> None:
        self.moved: Final = moved
        self.received_ns: Final = [array("q") for _ in range(place.partitions)]
        self.received_count = 0
        self._place: Final = place
        self._connection: Final = connection
        self._version: Final = min(connection.version_of(FETCH), _NAMES_UNTIL)
        self._next: Final = [Offset(0)] * place.partitions

    async def run(self) -> None:
        """Fetch for ever. Raises NotOnceError at the first record that is not the next one."""
        while True:
            response = await self._connection.call(
                FETCH, self._request(), timeout_s=_TIMEOUT_S, version=self._version
            )
            now_ns = time.perf_counter_ns()
            for topic in response.topics:
                for partition in topic.partitions:
                    _check(partition.error_code, f"fetching {self._place.topic}")
                    if partition.records:
                        assert isinstance(partition.records, bytes | bytearray | memoryview)
                        index = partition.partition_index
                        received = self.received_ns[index]
                        count, self._next[index] = count_in_turn(
                            partition.records, first=len(received), offset=self._next[index]
                        )
                        received.extend([now_ns] * count)
                        self.received_count += count
                        self.moved.set()

    def _request(self) -> FetchRequest:
        asked = tuple(
            FetchPartition(partition=index, fetch_offset=at, partition_max_bytes=_ANSWER_BYTES)
            for index, at in enumerate(self._next)
        )
        topics = (FetchTopic(topic=self._place.topic, partitions=asked),)
        return FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=_ANSWER_BYTES, topics=topics)


class Stream:
    """Records on their way from a source to one or more receivers."""

    def __init__(
        self,
        source: Place,
        connection: BrokerConnection,
        receivers: Sequence[Receiver],
        tasks: asyncio.TaskGroup,
    ) -> None:
        self.acknowledged_ns: Final = [array("q") for _ in range(source.partitions)]
        self.receivers: Final = receivers
        self._moved: Final = receivers[0].moved
        self._source: Final = source
        self._connection: Final = connection
        self._version: Final = min(connection.version_of(PRODUCE), _NAMES_UNTIL)
        self._tasks: Final = tasks
        self._turn = 0
        self._sent_count = 0
        self._acknowledged_count = 0
        self._chance: Final = Random(4711)

    @property
    def counts(self) -> list[int]:
        """How many records each partition was sent."""
        return [len(times) for times in self.acknowledged_ns]

    async def pace(self, batches: NumberedBatches, *, per_s: float, for_s: float) -> float:
        """Send so many batches a second, at moments that follow no beat; give how long it took."""
        began = due = time.perf_counter()
        while due < began + for_s:
            wait_s = due - time.perf_counter()
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            while self._connection.in_flight_count >= _IN_FLIGHT_MAX:
                await self._move()
            self._send(batches)
            due += self._chance.uniform(0.0, 2.0) / per_s
        await self.settle()
        return max(time.perf_counter() - began, for_s)

    async def rush(self, batches: NumberedBatches, *, for_s: float) -> float:
        """Send as fast as the slowest on the way lets us; give the bytes a second."""
        began, first = time.perf_counter(), self._sent_count
        behind_max = _BEHIND_BYTES_MAX // batches.batch_bytes * batches.record_count
        while time.perf_counter() < began + for_s:
            arrived = min(receiver.received_count for receiver in self.receivers)
            is_full = self._connection.in_flight_count >= _IN_FLIGHT_MAX
            if is_full or self._sent_count - arrived >= behind_max:
                await self._move()
            else:
                self._send(batches)
                await asyncio.sleep(0)
        await self.settle()
        sent_bytes = (self._sent_count - first) / batches.record_count * batches.batch_bytes
        return sent_bytes / (time.perf_counter() - began)

    async def settle(self) -> None:
        """Wait until all that was sent has been acknowledged and has arrived."""
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                while not self._is_settled():
                    await self._move()
        except TimeoutError:
            arrived = [receiver.received_count for receiver in self.receivers]
            raise NotOnceError(f"{arrived} of {self._sent_count} records arrived") from None

    async def _move(self) -> None:
        """Wait until something is acknowledged or arrives."""
        self._moved.clear()
        await self._moved.wait()

    def _is_settled(self) -> bool:
        arrived = all(one.received_count == self._sent_count for one in self.receivers)
        return arrived and self._acknowledged_count == self._sent_count

    def _send(self, batches: NumberedBatches) -> None:
        partition, self._turn = self._turn, (self._turn + 1) % self._source.partitions
        times = self.acknowledged_ns[partition]
        first = len(times)
        times.extend([0] * batches.record_count)
        self._sent_count += batches.record_count
        self._tasks.create_task(self._produce(partition, first, batches))

    async def _produce(self, partition: int, first: int, batches: NumberedBatches) -> None:
        content = (ProducePartition(index=partition, records=batches.batch(first)),)
        topics = (ProduceTopic(name=self._source.topic, partition_data=content),)
        response = await self._connection.call(
            PRODUCE,
            ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=topics),
            timeout_s=_TIMEOUT_S,
            version=self._version,
        )
        now_ns = time.perf_counter_ns()
        _check(response.responses[0].partition_responses[0].error_code, "producing")
        times = self.acknowledged_ns[partition]
        for number in range(first, first + batches.record_count):
            times[number] = now_ns
        self._acknowledged_count += batches.record_count
        self._moved.set()


@asynccontextmanager
async def open_stream(source: Place, *destinations: Place) -> AsyncIterator[Stream]:
    """Give a stream from a source to all destinations; it ends with the block."""
    async with AsyncExitStack() as stack:
        moved = asyncio.Event()
        receivers = [
            Receiver(place, await _open(place, "bench-consumer", stack), moved)
            for place in destinations
        ]
        producing = await _open(source, "bench-producer", stack)
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        waiting = [tasks.create_task(receiver.run()) for receiver in receivers]
        try:
            yield Stream(source, producing, receivers, tasks)
        finally:
            for task in waiting:
                task.cancel()


async def _open(place: Place, client_id: str, stack: AsyncExitStack) -> BrokerConnection:
    connection = await BrokerConnection.open(place.address, client_id, timeout_s=_TIMEOUT_S)
    stack.push_async_callback(connection.close)
    return connection


def _check(code: int, what: str) -> None:
    if code != ErrorCode.NONE:
        raise NotOnceError(f"{what}: {error_name(code)}")
