"""The operator's commands and settings at the destination of two brokers in one event loop."""

import asyncio
import json
from typing import Any

from support.brokers import LocalBroker
from support.commands import Ran, run_command
from support.mirrored_pair import Pair, log_of, until
from twinlog.cluster.configs import ResourceKind
from twinlog.model.ids import TopicName, TopicPartition
from twinlog.wire.messages.configs import (
    INCREMENTAL_ALTER_CONFIGS,
    ConfigAlteration,
    IncrementalAlterConfigsRequest,
    ResourceAlteration,
)


async def command(broker: LocalBroker, *arguments: str) -> Ran:
    """Run the mirrors command in a thread: the brokers live in this event loop."""
    at = ["mirrors", "--bootstrap-server", str(broker.address), "--mirror", "m"]
    return await asyncio.to_thread(run_command, [*at, *arguments])


async def verified(broker: LocalBroker, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Verify; give the exit code and what was found of the one partition."""
    ran = await command(broker, "--verify", "--json", *arguments)
    assert ran.out, ran.err
    (found,) = json.loads(ran.out)["partitions"]
    return ran.code, found


async def described(broker: LocalBroker) -> dict[tuple[str, int], dict[str, Any]]:
    """Describe every partition."""
    ran = await command(broker, "--describe", "--json")
    return {(row["topic"], row["partition"]): row for row in json.loads(ran.out)}


async def until_range(broker: LocalBroker, of: tuple[str, int], start: int, end: int) -> None:
    """Wait until a log is from there to there."""

    async def is_so() -> bool:
        log = log_of(broker, TopicPartition(TopicName(of[0]), of[1]))
        return log is not None and (log.start, log.end) == (start, end)

    await until(is_so)


async def until_held(pair: Pair, topic: str, witness: str) -> None:
    """Write to a throttled topic until nothing of it comes any more.

    The witness is not throttled, and fetched by the same requests: what was written to it comes by
    an answer that was given later than the record before it was written.
    """
    held = TopicPartition(TopicName(topic), 0)

    async def is_held() -> bool:
        before = log_of(pair.destination, held).end
        await pair.produce(topic)
        await pair.produce(witness)
        await pair.until_level(witness)
        return bool(log_of(pair.destination, held).end == before)

    await until(is_held)


async def set_config(pair: Pair, of: ResourceKind, name: str, key: str, value: str) -> None:
    """Alter a setting at the destination, as kafka-configs.sh does."""
    config = ConfigAlteration(name=key, config_operation=0, value=value)
    resource = ResourceAlteration(resource_type=of, resource_name=name, configs=(config,))
    answer = await pair.destination.ask(
        INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsRequest(resources=(resource,))
    )
    assert not answer.responses[0].error_code, answer


async def set_broker_config(pair: Pair, key: str, value: str) -> None:
    """Alter a setting of the destination broker."""
    broker = str(pair.destination.server._broker_id)
    await set_config(pair, ResourceKind.BROKER, broker, key, value)


async def set_mirror_config(pair: Pair, key: str, value: str) -> None:
    """Alter a setting of the mirror."""
    await set_config(pair, ResourceKind.CLUSTER_MIRROR, "m", key, value)
