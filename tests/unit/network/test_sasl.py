"""A login over a real socket: what is accepted, what is refused, and what is told of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from support.sasl_broker import MECHANISMS, SaslBroker
from support.scripted_broker import serving
from twinlog.config.client_security import ClientLogin, ClientSecurity
from twinlog.network.client import BrokerConnection
from twinlog.network.exchange import PeerUnavailable
from twinlog.network.sasl import AuthenticationFailed
from twinlog.network.secured import Secured
from twinlog.wire.api_keys import ApiKey

PASSWORD = "päss=word, \0 and more".replace("\0", "")


@asynccontextmanager
async def logged_in(
    broker: SaslBroker, mechanism: str = "PLAIN", *, user: str = "m,e", password: str = PASSWORD
) -> AsyncIterator[BrokerConnection]:
    secured = Secured(ClientSecurity(login=ClientLogin(mechanism, user, password)))
    async with serving(broker):
        connection = await BrokerConnection.open(
            broker.address, "test", timeout_s=60, secured=secured
        )
        try:
            yield connection
        finally:
            await connection.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("version", [0, 1, 2])
async def test_a_login_is_made_right_after_the_versions(mechanism: str, version: int) -> None:
    broker = SaslBroker("m,e", PASSWORD, ranges={ApiKey.SASL_AUTHENTICATE: (0, version)})
    async with logged_in(broker, mechanism) as connection:
        assert connection.is_open
        assert broker.login_count == 1
        said = 1 if mechanism == "PLAIN" else 2
        assert broker.asked == [
            (ApiKey.API_VERSIONS, 3),
            (ApiKey.SASL_HANDSHAKE, 1),
            *[(ApiKey.SASL_AUTHENTICATE, version)] * said,
        ]


async def refused(
    broker: SaslBroker, mechanism: str = "PLAIN", *, user: str = "m,e", password: str = PASSWORD
) -> PeerUnavailable:
    secured = Secured(ClientSecurity(login=ClientLogin(mechanism, user, password)))
    async with serving(broker):
        with pytest.raises(PeerUnavailable) as caught:
            await BrokerConnection.open(broker.address, "test", timeout_s=60, secured=secured)
    return caught.value


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("user", "password"), [("m,e", "wrong"), ("you", PASSWORD)])
async def test_a_wrong_password_or_name_is_told_with_the_brokers_words(
    mechanism: str, user: str, password: str
) -> None:
    failure = await refused(SaslBroker("m,e", PASSWORD), mechanism, user=user, password=password)
    assert isinstance(failure, AuthenticationFailed)
    assert failure.why == (
        f"the login of User:{user} is refused: SASL_AUTHENTICATION_FAILED: "
        "Authentication failed: Invalid username or password"
    )


async def test_a_mechanism_that_is_not_offered_is_told_with_those_that_are() -> None:
    broker = SaslBroker("m,e", PASSWORD)
    broker.mechanisms = ("SCRAM-SHA-512", "GSSAPI")
    failure = await refused(broker)
    assert isinstance(failure, AuthenticationFailed)
    assert "sasl.mechanism=PLAIN is not offered, but SCRAM-SHA-512, GSSAPI" in str(failure)
    assert (ApiKey.SASL_AUTHENTICATE, 2) not in broker.asked


@pytest.mark.parametrize(
    ("code", "why"), [(34, "there is no SASL at this port"), (-1, "UNKNOWN_SERVER_ERROR")]
)
async def test_a_port_without_sasl_gets_no_password(code: int, why: str) -> None:
    broker = SaslBroker("m,e", PASSWORD)
    broker.handshake_error = code
    failure = await refused(broker)
    assert isinstance(failure, AuthenticationFailed)
    assert why in str(failure)
    assert (ApiKey.SASL_AUTHENTICATE, 2) not in broker.asked


async def test_a_broker_that_knows_no_sasl_is_said_so() -> None:
    broker = SaslBroker("m,e", PASSWORD, ranges={ApiKey.SASL_HANDSHAKE: (5, 5)})
    assert (await refused(broker)).why == "it knows no SASL"


async def test_a_server_that_does_not_know_the_password_either_is_not_talked_to() -> None:
    broker = SaslBroker("m,e", PASSWORD)
    broker.knows_password = False
    failure = await refused(broker, "SCRAM-SHA-256")
    assert "SCRAM-SHA-256: it could not prove that it knows the password" in str(failure)


async def test_a_server_that_asks_for_too_little_work_is_not_talked_to() -> None:
    broker = SaslBroker("m,e", PASSWORD)
    broker.iterations = 1
    assert "wants 1 iterations" in str(await refused(broker, "SCRAM-SHA-512"))


async def test_one_refusal_is_enough_for_the_other_connections_that_would_try_the_same() -> None:
    broker = SaslBroker("m,e", PASSWORD)
    secured = Secured(ClientSecurity(login=ClientLogin("PLAIN", "m,e", "wrong")))
    async with serving(broker):
        for _ in range(5):
            with pytest.raises(AuthenticationFailed, match="Invalid username or password"):
                await BrokerConnection.open(broker.address, "test", timeout_s=60, secured=secured)
    assert [key for key, _ in broker.asked].count(ApiKey.SASL_AUTHENTICATE) == 1
