"""An operator moves a topic from one twinlog to another and back, and has each step proved."""

import asyncio
import json
from pathlib import Path
from typing import Any

from support.batches import batch
from support.brokers import LocalBroker
from support.commands import Ran, run_command
from support.mirrored_pair import QUICK_MIRROR, create_mirror, log_of, mirrored_pair
from twinlog.model.ids import TopicName, TopicPartition

ORDERS = TopicPartition(TopicName("orders"), 0)


async def command(broker: LocalBroker, *arguments: str) -> Ran:
    """Run the mirrors command in a thread: the brokers live in this event loop."""
    at = ["mirrors", "--bootstrap-server", str(broker.address), "--mirror", "m"]
    return await asyncio.to_thread(run_command, [*at, *arguments])


async def verified(broker: LocalBroker) -> tuple[int, dict[str, Any]]:
    """Verify; give the exit code and what was found of the one partition."""
    ran = await command(broker, "--verify", "--json")
    assert ran.out, ran.err
    (found,) = json.loads(ran.out)["partitions"]
    return ran.code, found


async def mirrors_from(source: LocalBroker, destination: LocalBroker) -> None:
    """Create the mirror at the destination, start it and wait until it is level."""
    config = {"bootstrap.servers": str(source.address), **QUICK_MIRROR}
    assert not (await create_mirror(destination, "m", config)).error_code
    ran = await command(destination, "--start", "--topics", "orders", "--wait")
    assert ran.code == 0, ran.err


async def test_a_topic_goes_over_and_comes_back_and_is_equal_each_time(tmp_path: Path) -> None:
    async with mirrored_pair(tmp_path) as pair:
        await pair.make_topic("orders")
        await pair.produce("orders", 5)
        await mirrors_from(pair.source, pair.destination)
        code, found = await verified(pair.destination)
        assert (code, found["result"], found["equalUpTo"]) == (0, "EQUAL", 10), found

        ran = await command(pair.destination, "--stop", "--promote", "--topics", "orders")
        assert ran.code == 0, ran.err
        produced = await pair.destination.produce("orders", batch(3))
        assert not produced.error_code
        code, found = await verified(pair.destination)
        assert (code, found["equalUpTo"], found["batches"]) == (0, 10, 5), found

        await mirrors_from(pair.destination, pair.source)
        code, found = await verified(pair.source)
        end = log_of(pair.destination, ORDERS).end
        assert (code, found["result"], found["equalUpTo"]) == (0, "EQUAL", end), found
        assert pair.bytes_of(pair.source, "orders") == pair.bytes_of(pair.destination, "orders")


async def test_a_flipped_bit_on_disk_is_found_without_stopping_anything(tmp_path: Path) -> None:
    async with mirrored_pair(tmp_path) as pair:
        await pair.make_topic("orders")
        await pair.produce("orders", 5)
        await mirrors_from(pair.source, pair.destination)
        flip_the_last_bit_of_the_third_batch(Path(log_of(pair.destination, ORDERS).folder))
        code, found = await verified(pair.destination)
        assert (code, found["result"], found["equalUpTo"]) == (1, "DIFFERENT", 4), found
        (difference,) = found["differences"]
        assert (difference["offset"], difference["what"]) == (4, ["corrupt at the destination"])


def flip_the_last_bit_of_the_third_batch(folder: Path) -> None:
    """Spoil one of five batches of the same size."""
    (file,) = folder.glob("*.log")
    spoilt = bytearray(file.read_bytes())
    spoilt[len(spoilt) * 3 // 5 - 1] ^= 1
    file.write_bytes(spoilt)
