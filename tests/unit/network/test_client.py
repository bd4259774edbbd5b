import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.certificates import Certificates
from support.listening import echo, framed, listening
from support.scripted_broker import ScriptedBroker, serving
from twinlog.config.client_security import ClientSecurity, ClientTls
from twinlog.model.errors import ApiError, ErrorCode, WireError
from twinlog.network.addresses import Address
from twinlog.network.client import BrokerConnection
from twinlog.network.exchange import PeerUnavailable
from twinlog.network.peer import Peer
from twinlog.network.secured import Secured
from twinlog.wire.api_keys import ApiKey
from twinlog.wire.codec import Parts
from twinlog.wire.messages.fetch import (
    FETCH,
    FetchedPartition,
    FetchedTopic,
    FetchRequest,
    FetchResponse,
)
from twinlog.wire.messages.metadata import METADATA, MetadataRequest, MetadataResponse
from twinlog.wire.primitives import Buffer

FETCH_NOTHING = FetchRequest(max_wait_ms=0, min_bytes=0, topics=())


def fetched(records: bytes) -> FetchResponse:
    partition = FetchedPartition(partition_index=3, high_watermark=7, records=records)
    return FetchResponse(topics=(FetchedTopic(topic="orders", partitions=(partition,)),))


def records_of(response: FetchResponse) -> Any:
    return response.topics[0].partitions[0].records


@asynccontextmanager
async def opened(address: Address, *, timeout_s: float = 5) -> AsyncIterator[BrokerConnection]:
    connection = await BrokerConnection.open(address, "test", timeout_s=timeout_s)
    try:
        yield connection
    finally:
        await connection.close()


@pytest.mark.parametrize(
    ("api_versions_max", "lists_itself", "asked"),
    [(4, True, [3]), (3, True, [3]), (2, True, [3, 2]), (2, False, [3, 0]), (0, True, [3, 0])],
)
async def test_versions_are_agreed_with_new_brokers_and_with_old_ones(
    api_versions_max: int, lists_itself: object, asked: list[int]
) -> None:
    broker = ScriptedBroker(
        api_versions_max=api_versions_max,
        lists_itself_in_error_35=bool(lists_itself),
        ranges={ApiKey.FETCH: (0, 10)},
    )
    broker.on(FETCH, lambda request, version: fetched(b"%d" % version))
    async with serving(broker), opened(broker.address) as connection:
        assert broker.asked == [(ApiKey.API_VERSIONS, version) for version in asked]
        assert connection.version_of(FETCH) == 10
        response = await connection.call(FETCH, FETCH_NOTHING, timeout_s=60)
        assert records_of(response) == b"10"


async def test_a_broker_that_closes_on_an_unknown_version_is_asked_again_with_v0() -> None:
    broker = ScriptedBroker()

    def refuse_new(frame: Buffer, peer: Peer) -> Parts | Awaitable[Parts]:
        if bytes(frame[:4]) == b"\x00\x12\x00\x03":
            raise AssertionError("what is v3?")
        return broker.on_frame(frame, peer)

    async with (
        listening(refuse_new) as listener,
        opened(Address("127.0.0.1", listener.port)) as connection,
    ):
        assert not connection.supports(METADATA)
        assert broker.asked == [(ApiKey.API_VERSIONS, 0)]


async def test_a_request_without_common_version_is_refused_and_both_ranges_named() -> None:
    broker = ScriptedBroker(ranges={ApiKey.FETCH: (90, 95)})
    broker.on(FETCH, lambda request, version: fetched(b""))
    async with serving(broker), opened(broker.address) as connection:
        assert not connection.supports(FETCH)
        with pytest.raises(ApiError, match=r"FETCH: .* speaks 90-95, we speak 4-18") as failure:
            await connection.call(FETCH, FETCH_NOTHING, timeout_s=60)
        assert failure.value.code == ErrorCode.UNSUPPORTED_VERSION
        with pytest.raises(ApiError, match=r"METADATA: .* does not know it, we speak 0-13"):
            connection.version_of(METADATA)
        assert connection.is_open


async def test_a_version_can_be_asked_for() -> None:
    broker = ScriptedBroker()
    broker.on(FETCH, lambda request, version: fetched(b"%d" % version))
    async with serving(broker), opened(broker.address) as connection:
        response = await connection.call(FETCH, FETCH_NOTHING, timeout_s=60, version=4)
        assert records_of(response) == b"4"


async def test_records_of_an_answer_stay_as_they_are_while_somebody_holds_them() -> None:
    number = 0

    def next_records(request: FetchRequest, version: int) -> FetchResponse:
        nonlocal number
        number += 1
        return fetched(bytes([number]) * 1_000_000)

    broker = ScriptedBroker(ranges={ApiKey.FETCH: (4, 12)})
    broker.on(FETCH, next_records)
    async with serving(broker), opened(broker.address) as connection:
        held = [
            records_of(await connection.call(FETCH, FETCH_NOTHING, timeout_s=60)) for _ in range(5)
        ]
        pipelined = await asyncio.gather(
            *[connection.call(FETCH, FETCH_NOTHING, timeout_s=60) for _ in range(5)]
        )
        held += [records_of(response) for response in pipelined]
        assert all(isinstance(records, memoryview) for records in held)
        assert [bytes(records[:1]) * 1_000_000 == records for records in held] == [True] * 10
        assert [records[0] for records in held] == list(range(1, 11))


async def test_an_answer_that_cannot_be_read_closes_the_connection() -> None:
    broker = ScriptedBroker()
    broker.on(METADATA, lambda request, version: MetadataResponse(brokers=(), topics=()))

    def garble(frame: Buffer, peer: Peer) -> Parts | Awaitable[Parts]:
        if bytes(frame[:2]) == b"\x00\x03":
            return [framed(bytes(frame[4:8]) + b"\x00\xff\xff\xff\xff\xff\xff\xff\xff")]
        return broker.on_frame(frame, peer)

    async with (
        listening(garble) as listener,
        opened(Address("127.0.0.1", listener.port)) as connection,
    ):
        with pytest.raises(PeerUnavailable, match="broke the protocol: MetadataResponse v13"):
            await connection.call(METADATA, MetadataRequest(topics=None), timeout_s=60)
        assert not connection.is_open


async def test_a_port_where_nobody_listens_is_said_to_be_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    with pytest.raises(PeerUnavailable, match=rf"127\.0\.0\.1:{port}: cannot connect: .*refused"):
        await BrokerConnection.open(Address("127.0.0.1", port), "test", timeout_s=60)


async def test_a_host_that_does_not_exist_is_said_to_be_so() -> None:
    with pytest.raises(PeerUnavailable, match=r"nowhere\.invalid:9092: unknown host"):
        await BrokerConnection.open(Address("nowhere.invalid", 9092), "test", timeout_s=240)


async def test_a_peer_that_accepts_and_says_nothing_is_given_up() -> None:
    async with listening(lambda frame, peer: None) as listener:
        with pytest.raises(PeerUnavailable, match=r"no (answer|connection) within 0\.05 s"):
            await BrokerConnection.open(Address("127.0.0.1", listener.port), "test", timeout_s=0.05)


async def test_a_peer_that_speaks_something_else_is_said_to_do_so() -> None:
    async with listening(echo) as listener:
        address = Address("127.0.0.1", listener.port)
        with pytest.raises(PeerUnavailable, match="broke the protocol"):
            await BrokerConnection.open(address, "test", timeout_s=60)


async def test_a_peer_that_closes_on_every_version_may_expect_tls() -> None:
    def close(frame: Buffer, peer: Peer) -> Parts:
        raise WireError("not what was expected")

    async with listening(close) as listener:
        address = Address("127.0.0.1", listener.port)
        with pytest.raises(PeerUnavailable, match="ApiVersions; does it expect TLS"):
            await BrokerConnection.open(address, "test", timeout_s=60)


async def test_a_peer_that_closes_on_the_first_request_may_expect_a_login() -> None:
    broker = ScriptedBroker()
    broker.on(FETCH, lambda request, version: fetched(b""))

    def only_versions(frame: Buffer, peer: Peer) -> Parts | Awaitable[Parts]:
        if bytes(frame[:2]) != b"\x00\x12":
            raise WireError("who are you?")
        return broker.on_frame(frame, peer)

    async with (
        listening(only_versions) as listener,
        opened(Address("127.0.0.1", listener.port)) as connection,
    ):
        with pytest.raises(PeerUnavailable, match=r"on the first request; does it expect SASL\?"):
            await connection.call(FETCH, FETCH_NOTHING, timeout_s=60)


async def test_a_peer_without_tls_is_said_to_have_none(tmp_path: Path) -> None:
    trusted = str(Certificates(tmp_path).trusted)
    secured = Secured(ClientSecurity(tls=ClientTls(trusted)))
    async with serving(ScriptedBroker()) as broker:
        with pytest.raises(PeerUnavailable, match=r"in the TLS handshake; does it speak TLS\?"):
            await BrokerConnection.open(broker.address, "test", timeout_s=60, secured=secured)


async def test_localhost_is_found_on_whichever_address_listens() -> None:
    broker = ScriptedBroker()
    async with serving(broker), opened(Address("localhost", broker.address.port)) as connection:
        assert connection.is_open
