"""The login of one connection: made when it is opened, and anew before it expires (KIP-368)."""

import asyncio
from typing import Final

from twinlog.config.client_security import ClientLogin
from twinlog.network.addresses import Address
from twinlog.network.exchange import Exchange, PeerUnavailable
from twinlog.network.sasl import Ask, AuthenticationFailed, SaslLogin
from twinlog.network.secured import Secured

RENEWED_AFTER: Final = 0.85
"""Of its time. Kafka's clients draw between this and 0.95."""


class Session:
    """Holds requests back while it is renewed: a broker takes no others meanwhile."""

    def __init__(
        self, secured: Secured, exchange: Exchange, address: Address, ask: Ask, *, timeout_s: float
    ) -> None:
        login = secured.security.login
        assert isinstance(login, ClientLogin), "there is nobody to log in"
        self._secured: Final = secured
        self._exchange: Final = exchange
        self._address: Final = address
        self._login: Final = SaslLogin(login, address, ask)
        self._timeout_s: Final = timeout_s
        self._lock: Final = asyncio.Lock()
        self._loop: Final = asyncio.get_running_loop()
        self._renew_at: float | None = None
        self._waiting_count = 0

    @property
    def is_due(self) -> bool:
        """Whether to log in anew before anything else is asked, or to go behind who waits for it.

        Those who wait go on one by one: who comes meanwhile would overtake them.
        """
        return self._waiting_count > 0 or self._has_come

    @property
    def _has_come(self) -> bool:
        return self._renew_at is not None and self._loop.time() >= self._renew_at

    async def log_in(self, authenticate_version: int) -> None:
        """Log in. Raises AuthenticationFailed or PeerUnavailable; the connection is closed then."""
        try:
            async with asyncio.timeout(self._timeout_s):
                lifetime_ms = await self._login.run(authenticate_version)
        except AuthenticationFailed as failure:
            self._secured.refused(failure)
            self._exchange.fail(failure.why)
            raise
        except TimeoutError:
            why = f"no login within {self._timeout_s:g} s"
            self._exchange.fail(why)
            raise PeerUnavailable(self._address, why) from None
        except asyncio.CancelledError:
            self._exchange.fail("the login was given up")
            raise
        self._secured.accepted()
        lifetime_s = lifetime_ms / 1000 * RENEWED_AFTER
        self._renew_at = self._loop.time() + lifetime_s if lifetime_ms > 0 else None

    async def renew(self, authenticate_version: int) -> None:
        """Log in anew, unless another request has done so meanwhile. Raises as ``log_in``.

        Who was first to call this is the first to go on.
        """
        self._waiting_count += 1
        try:
            async with self._lock:
                if self._has_come and self._exchange.is_open:
                    await self._renew_alone(authenticate_version)
        finally:
            self._waiting_count -= 1

    async def _renew_alone(self, authenticate_version: int) -> None:
        self._exchange.hold_back()
        try:
            await self.log_in(authenticate_version)
        finally:
            self._exchange.let_go()
