"""Logs in at a broker by SASL: SaslHandshake, then SaslAuthenticate once or twice (KIP-152)."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from typing import Any, Final

from twinlog.config.client_security import PLAIN, ClientLogin
from twinlog.model.errors import ErrorCode, error_name
from twinlog.network.exchange import PeerUnavailable
from twinlog.network.scram import ScramClient, ScramError
from twinlog.wire.messages.sasl import (
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
)
from twinlog.wire.schema import Api

NONCE_BYTES: Final = 24
HANDSHAKE_VERSION: Final = 1
"""After v0, bare tokens would follow, without an error's text."""

Ask = Callable[[Api[Any, Any], Any, int], Awaitable[Any]]
"""Sends a request in a version, ahead of those that have to wait for the login."""


class AuthenticationFailed(PeerUnavailable):
    """A broker refuses our login. Trying the same again at once is of no use."""


class SaslLogin:
    """Logs in over one connection, the first time and again before that expires (KIP-368)."""

    def __init__(self, login: ClientLogin, address: object, ask: Ask) -> None:
        self._login: Final = login
        self._address: Final = str(address)
        self._ask: Final = ask

    async def run(self, authenticate_version: int) -> int:
        """Log in; give for how many ms that holds, 0 for as long as the connection.

        Raises AuthenticationFailed, and PeerUnavailable when the connection is lost.
        """
        mechanism = self._login.mechanism
        response = await self._ask(
            SASL_HANDSHAKE, SaslHandshakeRequest(mechanism=mechanism), HANDSHAKE_VERSION
        )
        if response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            offered = ", ".join(response.mechanisms) or "none"
            raise self._failure(f"sasl.mechanism={mechanism} is not offered, but {offered}")
        if response.error_code == ErrorCode.ILLEGAL_SASL_STATE:
            raise self._failure(
                "there is no SASL at this port (ILLEGAL_SASL_STATE); "
                "security.protocol should be PLAINTEXT or SSL"
            )
        if response.error_code:
            raise self._failure(f"SaslHandshake: {error_name(response.error_code)}")
        if mechanism == PLAIN:
            return await self._plain(authenticate_version)
        return await self._scram(authenticate_version)

    async def _plain(self, version: int) -> int:
        login = self._login
        token = f"\0{login.username}\0{login.password}".encode()
        return (await self._send(token, version)).session_lifetime_ms

    async def _scram(self, version: int) -> int:
        login = self._login
        nonce = secrets.token_urlsafe(NONCE_BYTES)
        client = ScramClient(login.mechanism, login.username, login.password, nonce)
        try:
            answer = await self._send(client.first(), version)
            # In a thread, since a server may ask for a second of work.
            proof = await asyncio.to_thread(client.final, bytes(answer.auth_bytes))
            answer = await self._send(proof, version)
            client.check(bytes(answer.auth_bytes))
        except ScramError as error:
            raise self._failure(f"{login.mechanism}: {error}") from error
        return answer.session_lifetime_ms

    async def _send(self, token: bytes, version: int) -> SaslAuthenticateResponse:
        response: SaslAuthenticateResponse = await self._ask(
            SASL_AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=token), version
        )
        if response.error_code:
            why = error_name(response.error_code)
            raise self._failure(f"{why}: {response.error_message or 'no reason is given'}")
        return response

    def _failure(self, why: str) -> AuthenticationFailed:
        return AuthenticationFailed(
            self._address, f"the login of User:{self._login.username} is refused: {why}"
        )
