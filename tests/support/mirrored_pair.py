"""Two whole brokers in one event loop, one mirroring the other."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support.batches import batch
from support.brokers import AskedBroker, LocalBroker, local_broker
from twinlog.model.ids import TopicName, TopicPartition
from twinlog.wire.messages.configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    ResourceToDescribe,
)
from twinlog.wire.messages.mirrors import (
    CREATE_CLUSTER_MIRROR,
    DESCRIBE_CLUSTER_MIRRORS,
    START_MIRROR_TOPICS,
    STOP_MIRROR_TOPICS,
    CreateClusterMirrorRequest,
    CreateClusterMirrorResponse,
    DescribeClusterMirrorsRequest,
    DescribedMirrorPartition,
    MirrorConfig,
    MirrorTopicsResponse,
    StartMirrorTopicsRequest,
    StopMirrorTopicsRequest,
)
from twinlog.wire.messages.topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreateTopicsRequest,
    TopicConfig,
)

TOPIC_RESOURCE = 2
WAIT_S = 120.0
QUICK = {
    "mirror.state.topic.num.partitions": "2",
    "offsets.topic.num.partitions": "2",
    "mirror.failed.retry.initial.backoff.ms": "10",
    "mirror.failed.retry.max.backoff.ms": "50",
}
QUICK_MIRROR = {"fetch.wait.max.ms": "20", "groups.sync.interval.ms": "50"}


class Pair:
    """A source and a destination, and the mirror ``m`` between them."""

    def __init__(self, source: LocalBroker, destination: LocalBroker) -> None:
        self.source = source
        self.destination = destination

    async def make_topic(self, name: str, partitions: int = 1, **config: str) -> None:
        """Create a topic at the source; setting names have ``_`` for ``.``."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=tuple(
                TopicConfig(name=key.replace("_", "."), value=value)
                for key, value in config.items()
            ),
        )
        answer = await self.source.ask(
            CREATE_TOPICS, CreateTopicsRequest(topics=(topic,), timeout_ms=60_000)
        )
        assert not answer.topics[0].error_code, answer

    async def produce(self, topic: str, count: int = 1, *, partition: int = 0) -> None:
        """Write ``count`` batches of two records each at the source."""
        for _ in range(count):
            produced = await self.source.produce(topic, batch(2), partition=partition)
            assert not produced.error_code, produced

    async def create(self, **config: str) -> CreateClusterMirrorResponse:
        """Create the mirror; setting names have ``_`` for ``.``."""
        given = {"bootstrap.servers": str(self.source.address), **QUICK_MIRROR}
        given |= {key.replace("_", "."): value for key, value in config.items()}
        return await create_mirror(self.destination, "m", given)

    async def start(self, *patterns: str, **fields: Any) -> MirrorTopicsResponse:
        """Start topics by pattern."""
        request = StartMirrorTopicsRequest(mirror_name="m", include_patterns=patterns, **fields)
        return await self.destination.ask(START_MIRROR_TOPICS, request)

    async def stop(self, *patterns: str) -> MirrorTopicsResponse:
        """Stop topics by pattern."""
        request = StopMirrorTopicsRequest(mirror_name="m", topics=(), patterns=patterns)
        return await self.destination.ask(STOP_MIRROR_TOPICS, request)

    async def describe(self, topic: str, partition: int = 0) -> DescribedMirrorPartition:
        """Describe one partition of the mirror."""
        found = await describe(self.destination)
        return found[topic, partition]

    async def until_state(self, state: str, topic: str, partition: int = 0) -> None:
        """Wait until a partition is in that state."""

        async def is_so() -> bool:
            found = await describe(self.destination)
            return (topic, partition) in found and found[topic, partition].state_value == state

        await until(is_so)

    async def until_failed(self, topic: str, *words: str, partition: int = 0) -> None:
        """Wait until a partition is FAILED with these words in its error, in one look.

        It is tried again: what was told of it a moment ago may have passed.
        """

        async def is_so() -> bool:
            found = (await describe(self.destination)).get((topic, partition))
            error = "" if found is None else found.error_message or ""
            is_failed = found is not None and found.state_value == "FAILED"
            return is_failed and all(word in error for word in words)

        await until(is_so)

    async def until_level(self, topic: str, partition: int = 0) -> None:
        """Wait until a partition's log here is as long as there."""
        of = TopicPartition(TopicName(topic), partition)

        async def is_so() -> bool:
            here = log_of(self.destination, of)
            there = log_of(self.source, of)
            return here is not None and (here.start, here.end) == (there.start, there.end)

        await until(is_so)

    async def settings_here(self, topic: str) -> dict[str, str | None]:
        """Give what was set for a topic at the destination; nothing while it is not there."""
        wanted = ResourceToDescribe(resource_type=TOPIC_RESOURCE, resource_name=topic)
        request = DescribeConfigsRequest(resources=(wanted,))
        answer = await self.destination.ask(DESCRIBE_CONFIGS, request)
        return {c.name: c.value for c in answer.results[0].configs if c.config_source == 1}

    def bytes_of(self, broker: LocalBroker, topic: str, partition: int = 0) -> bytes:
        """Give all bytes of a partition's log files."""
        log = log_of(broker, TopicPartition(TopicName(topic), partition))
        return b"".join(path.read_bytes() for path in sorted(Path(log.folder).glob("*.log")))


def log_of(broker: LocalBroker, of: TopicPartition) -> Any:
    """Give a partition's log, None while it is not there."""
    partition = broker.server._partitions.find(of)
    return None if partition is None else partition.log


async def create_mirror(
    broker: LocalBroker, name: str, config: Mapping[str, str]
) -> CreateClusterMirrorResponse:
    """Ask for a mirror."""
    request = CreateClusterMirrorRequest(
        mirror_name=name,
        config=tuple(MirrorConfig(name=key, value=value) for key, value in config.items()),
    )
    return await broker.ask(CREATE_CLUSTER_MIRROR, request)


async def describe(broker: AskedBroker) -> dict[tuple[str, int], DescribedMirrorPartition]:
    """Describe every mirrored partition of a broker."""
    answer = await broker.ask(DESCRIBE_CLUSTER_MIRRORS, DescribeClusterMirrorsRequest())
    return {
        (topic.topic_name, partition.partition_index): partition
        for mirror in answer.mirrors
        for topic in mirror.topics
        for partition in topic.partitions
    }


async def until(is_so: Callable[[], Any]) -> None:
    """Wait until ``await is_so()``, bounded."""
    async with asyncio.timeout(WAIT_S):
        while not await is_so():  # noqa: ASYNC110 - what is waited for is asked over a socket
            await asyncio.sleep(0.01)


@asynccontextmanager
async def mirrored_pair(
    folder: Path, overrides: Mapping[str, str] | None = None
) -> AsyncIterator[Pair]:
    """Run two brokers."""
    given = {**QUICK, **(overrides or {})}
    async with (
        local_broker(folder / "source", QUICK) as source,
        local_broker(folder / "destination", given) as destination,
    ):
        yield Pair(source, destination)
