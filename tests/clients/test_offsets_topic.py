"""Kafka's own tools read our __consumer_offsets: the files, record by record."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.brokers import LocalBroker, local_broker
from support.java_tools import console_consume, main_class
from support.jvm import run_tool
from support.kafka_install import KAFKA_4, require
from twinlog.wire.records.build import build_batch, records_of_pairs

pytestmark = [pytest.mark.cluster, pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[LocalBroker]:
    require(KAFKA_4)
    async with local_broker(tmp_path) as found:
        yield found


def dumped(folder: Path) -> str:
    """Give what Kafka reads in our offsets topic."""
    logs = [p for p in folder.glob("data/__consumer_offsets-*/*.log") if p.stat().st_size]
    files = ",".join(str(path) for path in logs)
    options = ("--files", files, "--offsets-decoder", "--deep-iteration")
    return run_tool(KAFKA_4, main_class(KAFKA_4, "DumpLogSegments"), *options).stdout


async def test_kafka_reads_the_records_of_a_group(broker: LocalBroker, tmp_path: Path) -> None:
    await broker.make_topic("t")
    pairs = [(None, b"%d" % n) for n in range(4)]
    await broker.produce("t", build_batch(records_of_pairs(pairs, timestamp_ms=1)))
    address, options = str(broker.address), ("--group", "g", "--from-beginning")
    lines = await asyncio.to_thread(console_consume, address, "t", *options, count=4)
    assert lines == ["0", "1", "2", "3"]
    printed = await asyncio.to_thread(dumped, tmp_path)
    for part in (
        'key: {"type":"2","data":{"group":"g"}} payload: {"version":"3"',
        '"protocolType":"consumer","generation":1,"protocol":"range"',
        'key: {"type":"1","data":{"group":"g","topic":"t","partition":0}}',
        'payload: {"version":"3","data":{"offset":4,',
        '"generation":2,"protocol":null,"leader":null',
    ):
        assert part in printed, f"{part} is not in\n{printed}"
