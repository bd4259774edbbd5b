"""How the connections to one cluster are secured, and what they all know of a refused login."""

import asyncio
import ssl
from typing import Final

from twinlog.config.client_security import ClientSecurity
from twinlog.network.addresses import Address
from twinlog.network.exchange import PeerUnavailable
from twinlog.network.sasl import AuthenticationFailed
from twinlog.network.tls import TlsError, client_context

REFUSED_WAIT_S_MIN: Final = 1.0
REFUSED_WAIT_S_MAX: Final = 16.0


class Secured:
    """Shared by all connections that use the same credentials.

    A login that was refused is not tried again at once by the next connection, nor by the next
    broker's: all of them wait, for a time that doubles, and are told the reason meanwhile.
    """

    def __init__(self, security: ClientSecurity) -> None:
        self.security: Final = security
        self._refusal: AuthenticationFailed | None = None
        self._refusal_count = 0
        self._retry_at = 0.0

    def check(self, address: Address) -> None:
        """Raise AuthenticationFailed while a refused login has to wait."""
        if self._refusal is not None and asyncio.get_running_loop().time() < self._retry_at:
            raise AuthenticationFailed(address, self._refusal.why)

    def refused(self, failure: AuthenticationFailed) -> None:
        """Note that a broker refused the login."""
        self._refusal = failure
        wait_s = min(REFUSED_WAIT_S_MAX, REFUSED_WAIT_S_MIN * (1 << min(self._refusal_count, 10)))
        self._refusal_count += 1
        self._retry_at = asyncio.get_running_loop().time() + wait_s

    def accepted(self) -> None:
        """Note that a broker accepted the login."""
        self._refusal = None
        self._refusal_count = 0

    async def context(self, address: Address) -> ssl.SSLContext | None:
        """Give the context of a new connection, from the files as they are now; None without TLS.

        Raises PeerUnavailable.
        """
        tls = self.security.tls
        if tls is None:
            return None
        try:
            return await asyncio.to_thread(client_context, tls)
        except TlsError as error:
            raise PeerUnavailable(address, str(error)) from error


UNSECURED: Final = Secured(ClientSecurity())
