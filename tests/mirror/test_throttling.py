"""Throttled partitions keep to the broker's rate, others do not notice, and both change at once."""

import asyncio
import time
from pathlib import Path

import pytest

from support.batches import batch
from support.commands import run_command
from support.java_tools import main_class
from support.jvm import run_tool
from support.kafka_install import KAFKA_4, require
from support.kafka_node import KafkaNode
from support.mirror import Mirror, twinlog_command
from support.mirrored_pair import Pair, log_of, mirrored_pair, until
from support.pair_commands import set_broker_config, set_config, until_held
from support.source_data import flush, producer_of
from support.twinlog_process import TwinlogProcess
from twinlog.cluster.configs import ResourceKind
from twinlog.model.ids import TopicName, TopicPartition

RATE = "mirror.replication.throttled.rate"
REPLICAS = "mirror.replication.throttled.replicas"
BATCH_BYTES = 100_000


async def fill(pair: Pair, topic: str, count: int) -> None:
    """Write large batches at the source."""
    for _ in range(count):
        produced = await pair.source.produce(topic, batch(1, value_bytes=BATCH_BYTES))
        assert not produced.error_code, produced


def end_of(pair: Pair, topic: str) -> int:
    log = log_of(pair.destination, TopicPartition(TopicName(topic), 0))
    return 0 if log is None else int(log.end)


async def mirrored(pair: Pair, *topics: str) -> None:
    """Mirror topics until each is level."""
    for topic in topics:
        await pair.make_topic(topic)
    # Small answers: what comes at once may be more than the rate of a second.
    await pair.create(fetch_max_bytes=str(BATCH_BYTES))
    await pair.start(*topics)
    for topic in topics:
        await pair.until_state("MIRRORING", topic)


async def test_a_throttled_topic_keeps_to_the_rate_and_another_is_not_held_up(
    tmp_path: Path,
) -> None:
    async with mirrored_pair(tmp_path) as pair:
        await mirrored(pair, "slow", "free")
        await set_config(pair, ResourceKind.TOPIC, "slow", REPLICAS, "*")
        await set_broker_config(pair, RATE, str(BATCH_BYTES))
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await fill(pair, "slow", 30)
        await fill(pair, "free", 30)
        await pair.until_level("free")
        await until(lambda: _is_beyond(pair, 2))
        # A second's worth may come at once, and each answer may overdraw by a batch.
        assert end_of(pair, "slow") <= 3 + (loop.time() - begun) * 1.1
        assert (await pair.describe("slow")).state_value == "MIRRORING"
        await set_broker_config(pair, RATE, str(1 << 62))
        await pair.until_level("slow")
        assert pair.bytes_of(pair.source, "slow") == pair.bytes_of(pair.destination, "slow")


async def _is_beyond(pair: Pair, end: int) -> bool:
    return end_of(pair, "slow") > end


async def test_a_rate_of_nothing_holds_a_partition_until_it_is_no_longer_throttled(
    tmp_path: Path,
) -> None:
    async with mirrored_pair(tmp_path) as pair:
        await mirrored(pair, "slow", "witness")
        broker = pair.destination.server._broker_id
        await set_broker_config(pair, RATE, "0")
        await set_config(pair, ResourceKind.TOPIC, "slow", REPLICAS, f"0:{broker}")
        await until_held(pair, "slow", "witness")
        await set_config(pair, ResourceKind.TOPIC, "slow", REPLICAS, f"7:{broker}")
        await pair.until_level("slow")


async def test_every_throttled_partition_has_its_turn(tmp_path: Path) -> None:
    async with mirrored_pair(tmp_path) as pair:
        topics = ["a", "b", "c"]
        await mirrored(pair, *topics)
        for topic in topics:
            await set_config(pair, ResourceKind.TOPIC, topic, REPLICAS, "*")
        await set_broker_config(pair, RATE, str(10 * BATCH_BYTES))
        for topic in topics:
            await fill(pair, topic, 8)

        async def all_have_come() -> bool:
            return all(end_of(pair, topic) == 8 for topic in topics)

        await until(all_have_come)


@pytest.mark.kafka
@pytest.mark.slow
async def test_kafkas_own_tool_and_ours_set_the_throttle(tmp_path: Path) -> None:
    require(KAFKA_4)
    async with mirrored_pair(tmp_path) as pair:
        await mirrored(pair, "slow", "witness")
        server = pair.destination.server
        at = ("--bootstrap-server", str(pair.destination.address), "--alter", "--add-config")
        broker = ("--entity-type", "brokers", "--entity-name", str(server._broker_id))
        topic = ("--entity-type", "topics", "--entity-name", "slow")

        async def theirs(*arguments: str) -> None:
            await asyncio.to_thread(
                run_tool, KAFKA_4, main_class(KAFKA_4, "ConfigCommand"), *arguments
            )

        await theirs(*at, f"{REPLICAS}=[*]", *topic)
        await theirs(*at, f"{RATE}=0", *broker)
        await until_held(pair, "slow", "witness")
        ran = await asyncio.to_thread(run_command, ["configs", *at, f"{RATE}=100000000", *broker])
        assert ran.code == 0, ran.err
        await pair.until_level("slow")


@pytest.mark.kafka
@pytest.mark.cluster
@pytest.mark.slow
def test_kafka_is_followed_at_the_rate_and_equal_in_the_end(
    any_kafka: KafkaNode, twinlog: TwinlogProcess, fresh: str
) -> None:
    topics = [fresh, f"{fresh}-free"]
    partitions = [(topic, number) for topic in topics for number in range(2)]
    for topic in topics:
        any_kafka.create_topic(topic, partitions=2)
    mirror = Mirror(twinlog, any_kafka, "throttled")
    mirror.create(fetch_max_bytes=str(BATCH_BYTES))
    mirror.start(topics)
    mirror.await_caught_up(partitions)
    at = ("configs", "--bootstrap-server", twinlog.bootstrap, "--alter")
    for entity, name, change in (
        ("topics", fresh, f"{REPLICAS}=[0:1,1:1]"),
        ("brokers", "1", f"{RATE}={4 * BATCH_BYTES}"),
    ):
        what = ("--entity-type", entity, "--entity-name", name, "--add-config", change)
        done = twinlog_command(*at, *what)
        assert done.exit_code == 0, done.stderr
    begun = time.monotonic()
    producer = producer_of(any_kafka)
    for number in range(80):
        for topic in topics:
            producer.produce(topic, bytes(50_000), partition=number % 2)
    flush(producer)
    mirror.await_caught_up([of for of in partitions if of[0] != fresh])
    mirror.await_caught_up([of for of in partitions if of[0] == fresh])
    # 4 MB at 400 kB a second, but for a second's worth and one answer.
    assert time.monotonic() - begun > 5
    mirror.assert_equal(partitions)
    mirror.await_states(partitions, "MIRRORING")
