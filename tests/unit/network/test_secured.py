"""A refused login waits, for all that would try the same."""

import asyncio
from pathlib import Path

import pytest

from support.certificates import Certificates
from twinlog.config.client_security import ClientLogin, ClientSecurity, ClientTls
from twinlog.network import secured
from twinlog.network.addresses import Address
from twinlog.network.exchange import PeerUnavailable
from twinlog.network.sasl import AuthenticationFailed
from twinlog.network.secured import UNSECURED, Secured

HERE, THERE = Address("a", 1), Address("b", 1)
REFUSAL = AuthenticationFailed(HERE, "the login of User:me is refused")


def shared() -> Secured:
    return Secured(ClientSecurity(login=ClientLogin("PLAIN", "me", "secret")))


async def test_a_refused_login_is_not_tried_again_at_once_whoever_asks() -> None:
    one = shared()
    one.check(HERE)
    one.refused(REFUSAL)
    with pytest.raises(AuthenticationFailed, match="b:1: the login of User:me is refused"):
        one.check(THERE)


async def test_the_wait_doubles_up_to_a_bound_and_ends_with_a_login() -> None:
    one, loop = shared(), asyncio.get_running_loop()
    waits = []
    for _ in range(30):
        one.refused(REFUSAL)
        waits.append(round(one._retry_at - loop.time()))
    assert waits[:5] == [1, 2, 4, 8, 16]
    assert set(waits[5:]) == {16}
    one.accepted()
    one.check(HERE)
    one.refused(REFUSAL)
    assert round(one._retry_at - loop.time()) == 1


async def test_after_the_wait_it_may_be_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secured, "REFUSED_WAIT_S_MIN", 0.0)
    one = shared()
    one.refused(REFUSAL)
    one.check(HERE)


async def test_without_tls_there_is_no_context() -> None:
    assert await UNSECURED.context(HERE) is None


async def test_files_are_read_for_each_connection(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    one = Secured(ClientSecurity(tls=ClientTls(truststore_file=str(certificates.trusted))))
    assert await one.context(HERE) is not None
    certificates.trusted.unlink()
    with pytest.raises(PeerUnavailable, match=r"a:1: ssl\.truststore\.location=.* No such file"):
        await one.context(HERE)
