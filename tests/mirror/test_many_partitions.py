"""Hundreds of partitions at once: a stop without the source, and a source that blinks."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.log_bytes import batches_of
from support.mirror_fleet import Fleet, fleet, records_of
from support.stopped_logs import Marker, marker_of

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

PARTITIONS = 300
RECORDS = 2
QUICK = {"mirror.metadata.refresh.interval.ms": "500"}
DARK_FOR_S = 3.0
RECONNECTS_PER_S_MAX = PARTITIONS / 2 / DARK_FOR_S
"""Of all that talks to the source; there were 42 in three seconds when this was written."""


@pytest.fixture
async def mirrored(tmp_path: Path) -> AsyncIterator[Fleet]:
    """Give hundreds of partitions that are all mirrored."""
    async with fleet(tmp_path, QUICK) as pair:
        await pair.fill(PARTITIONS, per_topic=20, bytes_each=RECORDS * 1_000)
        await pair.mirror_everything()
        await pair.until_all("MIRRORING", has_no_lag=True)
        yield pair


@pytest.mark.parametrize("state", ["MIRRORING", "PAUSED", "FAILED"])
async def test_a_stop_without_the_source_leaves_every_partition_writable_with_one_reset(
    mirrored: Fleet, state: str
) -> None:
    if state == "PAUSED":
        await mirrored.pause()
    elif state == "FAILED":
        await mirrored.lose_topics()
    await mirrored.until_all(state)
    mirrored.source.kill()
    await mirrored.stop()
    await mirrored.until_writable()
    await mirrored.until_all("STOPPED")
    mirrored.destination.stop()
    for of in mirrored.partitions:
        reset, *ours = batches_of(mirrored.destination.partition_folder(*of), start=RECORDS)
        assert marker_of(reset) is Marker.PID_RESET, of
        assert [(one.attributes, one.record_count) for one in ours] == [(0, 1)], of


async def test_a_source_that_blinks_writes_no_states_and_is_not_stormed(mirrored: Fleet) -> None:
    before = states_bytes(mirrored)
    assert sum(map(len, before.values())) > 0
    for blink in range(2):
        mirrored.source.kill()
        assert await connections_per_s(DARK_FOR_S, mirrored.source.port) <= RECONNECTS_PER_S_MAX
        mirrored.source.start()
        assert not await mirrored.produce(mirrored.source, mirrored.partitions, records_of(1))
        await mirrored.until_ends(RECORDS + 1 + blink)
    assert states_bytes(mirrored) == before


def states_bytes(pair: Fleet) -> dict[str, bytes]:
    """Give everything that was written to the mirror coordinator's topic."""
    folders = sorted(pair.destination.log_folder.glob("__mirror_state-*"))
    return {str(path): path.read_bytes() for one in folders for path in sorted(one.glob("*.log"))}


async def connections_per_s(seconds: float, port: int) -> float:
    """Give how many connections are opened to a port a second; each is closed at once."""
    count = 0

    def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        count += 1
        writer.close()

    begun_s = time.monotonic()
    server = await asyncio.start_server(hang_up, "127.0.0.1", port)
    async with server:
        await asyncio.sleep(seconds)
    # More than was meant where the machine stands still meanwhile.
    return count / (time.monotonic() - begun_s)
