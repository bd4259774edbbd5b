"""A login that holds for a while is made anew in time, with all else held back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from support.sasl_broker import SaslBroker
from support.scripted_broker import serving
from twinlog.config.client_security import ClientLogin, ClientSecurity
from twinlog.network import session
from twinlog.network.client import BrokerConnection
from twinlog.network.exchange import PeerUnavailable
from twinlog.network.sasl import AuthenticationFailed
from twinlog.network.secured import Secured
from twinlog.wire.api_keys import ApiKey
from twinlog.wire.messages.metadata import (
    METADATA,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

LOGIN_KEYS = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)


def broker_of(lifetime_ms: int) -> SaslBroker:
    broker = SaslBroker("me", "secret")
    broker.lifetime_ms = lifetime_ms
    broker.on(METADATA, lambda request, version: MetadataResponse(brokers=(), topics=()))
    return broker


@asynccontextmanager
async def opened(broker: SaslBroker) -> AsyncIterator[BrokerConnection]:
    secured = Secured(ClientSecurity(login=ClientLogin("SCRAM-SHA-256", "me", "secret")))
    async with serving(broker):
        connection = await BrokerConnection.open(
            broker.address, "test", timeout_s=60, secured=secured
        )
        try:
            yield connection
        finally:
            await connection.close()


async def ask(connection: BrokerConnection) -> None:
    await connection.call(METADATA, MetadataRequest(topics=()), timeout_s=60)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a login be due for renewal as soon as it is made."""
    monkeypatch.setattr(session, "RENEWED_AFTER", 0.0)


async def test_a_login_without_an_end_is_made_once() -> None:
    broker = broker_of(0)
    async with opened(broker) as connection:
        await ask(connection)
        await ask(connection)
        assert broker.login_count == 1


async def test_a_login_that_holds_long_enough_is_not_renewed() -> None:
    broker = broker_of(3_600_000)
    async with opened(broker) as connection:
        await ask(connection)
        assert broker.login_count == 1


@pytest.mark.usefixtures("at_once")
async def test_a_login_that_ends_is_renewed_before_the_next_request() -> None:
    broker = broker_of(60_000)
    async with opened(broker) as connection:
        await ask(connection)
        assert broker.login_count == 2
        await ask(connection)
        assert broker.login_count == 3


async def test_requests_made_together_renew_it_once_and_nothing_comes_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = broker_of(60_000)
    async with opened(broker) as connection:
        assert connection._session is not None
        connection._session._renew_at = 0.0
        await asyncio.gather(*[ask(connection) for _ in range(200)])
        assert broker.login_count == 2
        keys = [key for key, _ in broker.asked]
        first = keys.index(ApiKey.SASL_HANDSHAKE, 4)
        assert keys[first : first + 3] == [LOGIN_KEYS[0], LOGIN_KEYS[1], LOGIN_KEYS[1]]
        assert keys.count(ApiKey.METADATA) == 200


async def test_requests_that_waited_for_the_renewal_are_overtaken_by_none() -> None:
    broker = broker_of(60_000)
    seen: list[str | None] = []
    names: list[str] = []

    def note(request: MetadataRequest, version: int) -> MetadataResponse:
        assert request.topics is not None
        seen.append(request.topics[0].name)
        return MetadataResponse(brokers=(), topics=())

    broker.on(METADATA, note)
    async with opened(broker) as connection, asyncio.TaskGroup() as asking:

        def begin() -> None:
            names.append(f"{len(names):05}")
            request = MetadataRequest(topics=(MetadataRequestTopic(name=names[-1]),))
            asking.create_task(connection.call(METADATA, request, timeout_s=60))

        assert connection._session is not None
        connection._session._renew_at = 0.0
        for _ in range(20):
            begin()
        while broker.login_count < 2:
            begin()
            await asyncio.sleep(0.001)
        for _ in range(20):
            begin()
            await asyncio.sleep(0)
    assert seen == names


@pytest.mark.usefixtures("at_once")
async def test_a_password_that_was_changed_meanwhile_is_found_out_and_the_connection_closed() -> (
    None
):
    broker = broker_of(60_000)
    async with opened(broker) as connection:
        broker.password = "another"
        with pytest.raises(AuthenticationFailed, match="SASL_AUTHENTICATION_FAILED"):
            await ask(connection)
        assert not connection.is_open
        with pytest.raises(PeerUnavailable, match="SASL_AUTHENTICATION_FAILED"):
            await ask(connection)


@pytest.mark.usefixtures("at_once")
async def test_a_renewal_that_is_given_up_closes_the_connection() -> None:
    broker = broker_of(60_000)
    async with opened(broker) as connection:
        asking = asyncio.get_running_loop().create_task(ask(connection))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert not connection.is_open
