"""The ways a record gets from a source to where it is read: the source itself, and two mirrors."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from bench.catchup_peers import mirror_maker_process
from bench.freshness_stream import Place

from support.cluster_admin import Broker, offsets_of
from support.kafka_node import KafkaNode
from support.mirror import Mirror
from support.twinlog_process import TwinlogProcess
from twinlog.network.addresses import parse_addresses

Peer = Callable[[KafkaNode, str, int, Path], AbstractContextManager[Place]]

# What MirrorMaker 2 can be told so that a record waits for nothing (its producer waits 5 ms for
# others by itself), and still copies in big batches when there are many.
MIRROR_MAKER_TUNED = {
    "producer.linger.ms": "0",
    "producer.batch.size": "65536",
    "producer.buffer.memory": str(64 << 20),
    "consumer.max.poll.records": "2000",
}


def place_of(broker: Broker, topic: str, partitions: int) -> Place:
    """Say where that topic is."""
    return Place(parse_addresses(broker.bootstrap)[0], topic, partitions)


@contextmanager
def source_itself(source: KafkaNode, topic: str, partitions: int, folder: Path) -> Iterator[Place]:
    """Read where it was written: what Kafka, this program and the machine take by themselves."""
    yield place_of(source, topic, partitions)


@contextmanager
def twinlog(source: KafkaNode, topic: str, partitions: int, folder: Path) -> Iterator[Place]:
    """Mirror the topic into a fresh twinlog broker, with no setting but the source's address."""
    destination = TwinlogProcess(folder)
    try:
        destination.start()
        mirror = Mirror(destination, source)
        mirror.create()
        mirror.start([topic])
        for partition in range(partitions):
            offsets_of(destination, topic, partition)
        yield place_of(destination, topic, partitions)
    finally:
        destination.stop()


@contextmanager
def mirror_maker(source: KafkaNode, topic: str, partitions: int, folder: Path) -> Iterator[Place]:
    """Copy the topic with MirrorMaker 2 as it comes into a fresh Kafka."""
    with _mirror_maker(source, topic, partitions, folder, {}) as place:
        yield place


@contextmanager
def mirror_maker_tuned(
    source: KafkaNode, topic: str, partitions: int, folder: Path
) -> Iterator[Place]:
    """Copy the topic with MirrorMaker 2 that waits for nothing into a fresh Kafka."""
    with _mirror_maker(source, topic, partitions, folder, MIRROR_MAKER_TUNED) as place:
        yield place


@contextmanager
def _mirror_maker(
    source: KafkaNode, topic: str, partitions: int, folder: Path, tuning: dict[str, str]
) -> Iterator[Place]:
    destination = KafkaNode(folder / "kafka")
    maker = mirror_maker_process(source, destination, topic, partitions, folder, tuning)
    try:
        destination.start()
        destination.create_topic(f"src.{topic}", partitions=partitions)
        maker.start(lambda: True)
        yield place_of(destination, f"src.{topic}", partitions)
    finally:
        maker.stop()
        destination.stop()


PEERS: dict[str, Peer] = {
    "source-itself": source_itself,
    "twinlog": twinlog,
    "mirror-maker": mirror_maker,
    "mirror-maker-tuned": mirror_maker_tuned,
}
