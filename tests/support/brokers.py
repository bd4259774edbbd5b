"""A broker asked over a real socket: a whole one in the test's own event loop, or any other."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from twinlog.broker.server import Server
from twinlog.config.broker import BROKER
from twinlog.config.declare import Settings
from twinlog.network.addresses import Address
from twinlog.network.client import BrokerConnection
from twinlog.wire.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from twinlog.wire.messages.produce import (
    PRODUCE,
    ProducedPartition,
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
)
from twinlog.wire.schema import Api

Request = TypeVar("Request")
Response = TypeVar("Response")

TIMEOUT_S = 50.0


class AskedBroker:
    """A broker and one connection to it."""

    def __init__(self, address: Address, connection: BrokerConnection) -> None:
        self.address = address
        self.connection = connection

    async def ask(
        self, api: Api[Request, Response], request: Request, version: int | None = None
    ) -> Response:
        """Send one request and give its answer."""
        return await self.connection.call(api, request, timeout_s=TIMEOUT_S, version=version)

    async def another_connection(self) -> BrokerConnection:
        """Give a second connection, for what must not wait for the first."""
        return await BrokerConnection.open(self.address, "test-2", timeout_s=TIMEOUT_S)

    async def make_topic(self, name: str) -> Any:
        """Create a topic as a producer does, by asking for it; give its metadata."""
        answer = await self.ask(
            METADATA, MetadataRequest(topics=(MetadataRequestTopic(name=name),))
        )
        return answer.topics[0]

    async def produce(
        self, topic: str, batches: bytes, *, partition: int = 0, acks: int = -1
    ) -> ProducedPartition:
        """Append one batch to a topic by name."""
        sent = ProducePartition(index=partition, records=batches)
        request = ProduceRequest(
            acks=acks,
            timeout_ms=60_000,
            topic_data=(ProduceTopic(name=topic, partition_data=(sent,)),),
        )
        answer = await self.ask(PRODUCE, request, 12)
        return answer.responses[0].partition_responses[0]


class LocalBroker(AskedBroker):
    """A broker that runs in this event loop."""

    def __init__(self, server: Server, address: Address, connection: BrokerConnection) -> None:
        super().__init__(address, connection)
        self.server = server


@asynccontextmanager
async def connected_to(bootstrap: str) -> AsyncIterator[AskedBroker]:
    """Ask a broker that runs elsewhere."""
    host, _, port = bootstrap.rpartition(":")
    address = Address(host, int(port))
    connection = await BrokerConnection.open(address, "test", timeout_s=TIMEOUT_S)
    try:
        yield AskedBroker(address, connection)
    finally:
        await connection.close()


@asynccontextmanager
async def local_broker(
    folder: Path, overrides: Mapping[str, str] | None = None
) -> AsyncIterator[LocalBroker]:
    """Run a broker on a port of the system's choice, with its data in ``folder``."""
    given = {
        "node.id": "1",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(folder / "data"),
        "group.initial.rebalance.delay.ms": "0",
        **(overrides or {}),
    }
    server = Server(Settings.of(BROKER, given))
    serving = asyncio.ensure_future(server.serve())
    opening = asyncio.ensure_future(server.wait_until_open())
    await asyncio.wait({serving, opening}, return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        opening.cancel()
        serving.result()
    endpoint = opening.result()[0]
    address = Address(endpoint.host, endpoint.port)
    connection = await BrokerConnection.open(address, "test", timeout_s=TIMEOUT_S)
    try:
        yield LocalBroker(server, address, connection)
    finally:
        await connection.close()
        server.stop()
        await serving
