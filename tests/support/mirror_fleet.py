"""Many partitions mirrored between two twinlog processes, driven over the bare protocol."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, TypeVar

from support.twinlog_process import TwinlogProcess, answers_api_versions
from twinlog.model.errors import ErrorCode, error_name
from twinlog.network.addresses import Address
from twinlog.network.client import BrokerConnection
from twinlog.wire.messages.mirrors import (
    CREATE_CLUSTER_MIRROR,
    DESCRIBE_CLUSTER_MIRRORS,
    PAUSE_MIRROR_TOPICS,
    START_MIRROR_TOPICS,
    STOP_MIRROR_TOPICS,
    CreateClusterMirrorRequest,
    DescribeClusterMirrorsRequest,
    DescribedMirrorPartition,
    MirrorConfig,
    MirrorTopic,
    PauseMirrorTopicsRequest,
    StartMirrorTopicsRequest,
    StopMirrorTopicsRequest,
)
from twinlog.wire.messages.produce import PRODUCE, ProducePartition, ProduceRequest, ProduceTopic
from twinlog.wire.messages.topics import (
    CREATE_TOPICS,
    DELETE_TOPICS,
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    TopicToDelete,
)
from twinlog.wire.records.build import build_batch, records_of_pairs
from twinlog.wire.schema import Api

Request = TypeVar("Request")
Response = TypeVar("Response")
Of = tuple[str, int]

MIRROR: Final = "fleet"
TIMEOUT_S: Final = 180.0
PATIENCE_S: Final = 300.0
POLL_S: Final = 0.01
DESCRIBE_POLL_S: Final = 0.2
PRODUCE_VERSION: Final = 12
PARTITIONS_AT_ONCE: Final = 500
TOPICS_AT_ONCE: Final = 50
RECORD_BYTES: Final = 1_000


class Fleet:
    """A source and a destination process; ``partitions`` is what the source was filled with."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self.source = TwinlogProcess(folder / "source")
        self.destination = TwinlogProcess(folder / "destination", node_id=2, settings=settings)
        self.partitions: list[Of] = []
        self._connections: dict[int, BrokerConnection] = {}

    @property
    def topics(self) -> list[str]:
        """The topics, each once."""
        return list(dict.fromkeys(topic for topic, _ in self.partitions))

    async def ask(
        self,
        broker: TwinlogProcess,
        api: Api[Request, Response],
        request: Request,
        version: int | None = None,
    ) -> Response:
        """Ask one of the two, over a connection that is kept."""
        connection = self._connections.get(broker.port)
        if connection is None or not connection.is_open:
            address = Address("127.0.0.1", broker.port)
            connection = await BrokerConnection.open(address, "fleet", timeout_s=TIMEOUT_S)
            self._connections[broker.port] = connection
        return await connection.call(api, request, timeout_s=TIMEOUT_S, version=version)

    async def hang_up(self) -> None:
        """Close the connections; the next question opens one again."""
        for connection in self._connections.values():
            await connection.close()
        self._connections.clear()

    async def restart(self) -> float:
        """Stop the destination and start it again; give how many seconds the stop took."""
        await self.hang_up()
        began = time.perf_counter()
        self.destination.server.stop(timeout_s=PATIENCE_S)
        stopped_s = time.perf_counter() - began
        port = self.destination.port
        self.destination.server.start(lambda: answers_api_versions(port), timeout_s=PATIENCE_S)
        return stopped_s

    async def close(self) -> None:
        """Close the connections and stop the processes."""
        await self.hang_up()
        self.destination.kill()
        self.source.kill()

    async def fill(self, count: int, *, per_topic: int, bytes_each: int) -> None:
        """Make so many partitions at the source and write so much to each."""
        sizes = [min(per_topic, count - first) for first in range(0, count, per_topic)]
        made = {f"topic-{number:04d}": size for number, size in enumerate(sizes)}
        for names in batched(made, max(PARTITIONS_AT_ONCE // per_topic, 1)):
            wanted = tuple(
                CreatableTopic(name=name, num_partitions=made[name], replication_factor=1)
                for name in names
            )
            request = CreateTopicsRequest(topics=wanted, timeout_ms=60_000)
            for topic in (await self.ask(self.source, CREATE_TOPICS, request)).topics:
                _check(topic.error_code, f"{topic.name} is created")
        self.partitions = [(name, index) for name, size in made.items() for index in range(size)]
        if bytes_each:
            left = await self.produce(self.source, self.partitions, records_of(bytes_each))
            assert not left, f"{len(left)} partitions of the source took no records"

    async def produce(self, broker: TwinlogProcess, partitions: list[Of], batch: bytes) -> list[Of]:
        """Write a batch to each partition; give those that took none."""
        refused: list[Of] = []
        topics: dict[str, list[int]] = {}
        for topic, index in partitions:
            topics.setdefault(topic, []).append(index)
        for name, indexes in topics.items():
            parts = tuple(ProducePartition(index=index, records=batch) for index in indexes)
            data = (ProduceTopic(name=name, partition_data=parts),)
            request = ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=data)
            answer = await self.ask(broker, PRODUCE, request, PRODUCE_VERSION)
            refused += [
                (name, part.index)
                for part in answer.responses[0].partition_responses
                if part.error_code
            ]
        return refused

    # The mirror

    async def mirror_everything(self, **config: str) -> None:
        """Create the mirror and start every topic; it is not waited for."""
        given = {"bootstrap.servers": self.source.bootstrap}
        given |= {key.replace("_", "."): value for key, value in config.items()}
        request = CreateClusterMirrorRequest(
            mirror_name=MIRROR,
            config=tuple(MirrorConfig(name=key, value=value) for key, value in given.items()),
        )
        answer = await self.ask(self.destination, CREATE_CLUSTER_MIRROR, request)
        _check(answer.error_code, "the mirror is created")
        start = StartMirrorTopicsRequest(mirror_name=MIRROR, include_patterns=("topic-.*",))
        started = await self.ask(self.destination, START_MIRROR_TOPICS, start)
        _check(started.error_code, "the topics are started")

    async def pause(self) -> None:
        """Ask for PAUSED everywhere."""
        topics = tuple(MirrorTopic(topic_name=name) for name in self.topics)
        request = PauseMirrorTopicsRequest(mirror_name=MIRROR, topics=topics)
        answer = await self.ask(self.destination, PAUSE_MIRROR_TOPICS, request)
        _check(answer.error_code, "the topics are paused")

    async def lose_topics(self) -> None:
        """Delete every topic at the source."""
        for names in batched(self.topics, TOPICS_AT_ONCE):
            gone = tuple(TopicToDelete(name=name) for name in names)
            request = DeleteTopicsRequest(topics=gone, timeout_ms=60_000)
            for topic in (await self.ask(self.source, DELETE_TOPICS, request)).responses:
                _check(topic.error_code, f"{topic.name} is deleted")

    async def stop(self) -> None:
        """Ask for STOPPED everywhere."""
        request = StopMirrorTopicsRequest(mirror_name=MIRROR, topics=(), patterns=("topic-.*",))
        answer = await self.ask(self.destination, STOP_MIRROR_TOPICS, request)
        _check(answer.error_code, "the topics are stopped")

    async def describe(self) -> dict[Of, DescribedMirrorPartition]:
        """Describe every partition of the mirror."""
        request = DescribeClusterMirrorsRequest(mirror_names=(MIRROR,))
        answer = await self.ask(self.destination, DESCRIBE_CLUSTER_MIRRORS, request)
        _check(answer.error_code, "the mirror is described")
        return {
            (topic.topic_name, partition.partition_index): partition
            for mirror in answer.mirrors
            for topic in mirror.topics
            for partition in topic.partitions
        }

    async def until_all(self, state: str, *, has_no_lag: bool = False) -> None:
        """Wait until every partition is in that state, and has all its source has."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            others = await self._others(state, has_no_lag=has_no_lag)
            if not others:
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(others)} partitions are not {state}: {others[:3]}")
            await asyncio.sleep(DESCRIBE_POLL_S)

    async def _others(self, state: str, *, has_no_lag: bool) -> list[object]:
        found = await self.describe()
        others: list[object] = [of for of in self.partitions if of not in found]
        for of, one in found.items():
            is_behind = has_no_lag and (
                one.source_offset < 0 or one.destination_offset < one.source_offset
            )
            if one.state_value != state or is_behind:
                others.append((of, one.state_value, one.destination_offset, one.source_offset))
        return others

    async def until_ends(self, end: int) -> None:
        """Wait until every log here ends there, in state MIRRORING."""
        deadline = time.monotonic() + TIMEOUT_S
        while others := [
            of
            for of, one in (await self.describe()).items()
            if (one.state_value, one.destination_offset) != ("MIRRORING", end)
        ]:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(others)} partitions do not end at {end}: {others[:3]}")
            await asyncio.sleep(DESCRIBE_POLL_S)

    async def until_writable(self) -> None:
        """Write a record to each partition here as soon as it takes one."""
        record = records_of(1)
        left = self.partitions
        deadline = time.monotonic() + TIMEOUT_S
        while left := await self.produce(self.destination, left, record):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(left)} partitions take no records: {left[:3]}")
            await asyncio.sleep(POLL_S)


@asynccontextmanager
async def fleet(folder: Path, settings: Mapping[str, str] | None = None) -> AsyncIterator[Fleet]:
    """Give a running pair with its data in ``folder``; stop both afterwards."""
    made = Fleet(folder, settings or {})
    try:
        made.source.start()
        made.destination.start()
        yield made
    finally:
        await made.close()


def batched(names: Iterable[str], count: int) -> Iterator[list[str]]:
    """Give the names, at most so many at a time."""
    every = list(names)
    for first in range(0, len(every), count):
        yield every[first : first + count]


def records_of(size_bytes: int) -> bytes:
    """Give one batch of about that many bytes, in records of a kilobyte."""
    value = bytes(range(256)) * (RECORD_BYTES // 256 + 1)
    sizes = [RECORD_BYTES] * (size_bytes // RECORD_BYTES) or [size_bytes]
    pairs = [(b"k", value[:size]) for size in sizes]
    return build_batch(records_of_pairs(pairs, timestamp_ms=int(time.time() * 1000)))


def _check(code: int, what: str) -> None:
    if code != ErrorCode.NONE:
        raise AssertionError(f"{what}: {error_name(code)}")
