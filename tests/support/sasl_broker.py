"""A scripted broker that wants a login, by PLAIN or SCRAM, with a server's side of its own."""

import base64
import hashlib
import hmac
from typing import Any

from support.scripted_broker import ScriptedBroker
from twinlog.wire.messages.sasl import (
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class SaslBroker(ScriptedBroker):
    """Lets one user in. What it does wrong is set by the test."""

    def __init__(self, user: str, password: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.user = user
        self.password = password
        self.mechanisms: tuple[str, ...] = MECHANISMS
        self.handshake_error = 0
        self.lifetime_ms = 0
        self.iterations = 4_096
        self.knows_password = True
        self.login_count = 0
        self._mechanism = ""
        self._server: _ScramServer | None = None
        self.on(SASL_HANDSHAKE, self._handshake)
        self.on(SASL_AUTHENTICATE, self._authenticate)

    def _handshake(self, request: SaslHandshakeRequest, version: int) -> SaslHandshakeResponse:
        code = self.handshake_error or (0 if request.mechanism in self.mechanisms else 33)
        self._mechanism, self._server = request.mechanism, None
        return SaslHandshakeResponse(error_code=code, mechanisms=self.mechanisms)

    def _authenticate(
        self, request: SaslAuthenticateRequest, version: int
    ) -> SaslAuthenticateResponse:
        token = bytes(request.auth_bytes)
        if self._mechanism == "PLAIN":
            is_right = token == f"\0{self.user}\0{self.password}".encode()
            return self._accepted(b"") if is_right else self._refused()
        if self._server is None:
            self._server = _ScramServer(self, self._mechanism)
            return SaslAuthenticateResponse(error_code=0, auth_bytes=self._server.first(token))
        last = self._server.last(token)
        return self._refused() if last is None else self._accepted(last)

    def _accepted(self, token: bytes) -> SaslAuthenticateResponse:
        self.login_count += 1
        return SaslAuthenticateResponse(
            error_code=0, auth_bytes=token, session_lifetime_ms=self.lifetime_ms
        )

    def _refused(self) -> SaslAuthenticateResponse:
        why = "Authentication failed: Invalid username or password"
        return SaslAuthenticateResponse(error_code=58, error_message=why)


class _ScramServer:
    """Follows RFC 5802 from the server's side."""

    def __init__(self, broker: SaslBroker, mechanism: str) -> None:
        self._broker = broker
        self._hash = mechanism.removeprefix("SCRAM-").replace("-", "").lower()
        self._salt = b"salt of a test"
        self._talk: list[str] = []

    def first(self, token: bytes) -> bytes:
        bare = token.decode().removeprefix("n,,")
        self._user = bare.split(",")[0].removeprefix("n=").replace("=2C", ",").replace("=3D", "=")
        nonce = bare.split("r=")[1] + "-and-ours"
        salt = base64.b64encode(self._salt).decode()
        answer = f"r={nonce},s={salt},i={self._broker.iterations}"
        self._talk = [bare, answer]
        return answer.encode()

    def last(self, token: bytes) -> bytes | None:
        without_proof, _, proof = token.decode().rpartition(",p=")
        talk = ",".join([*self._talk, without_proof]).encode()
        salted = hashlib.pbkdf2_hmac(
            self._hash, self._broker.password.encode(), self._salt, self._broker.iterations
        )
        signature = self._mac(self._digest(self._mac(salted, b"Client Key")), talk)
        key = bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True))
        is_right = self._digest(key) == self._digest(self._mac(salted, b"Client Key"))
        if not is_right or self._user != self._broker.user:
            return None
        server_key = self._mac(salted, b"Server Key" if self._broker.knows_password else b"?")
        return b"v=" + base64.b64encode(self._mac(server_key, talk))

    def _mac(self, key: bytes, text: bytes) -> bytes:
        return hmac.new(key, text, self._hash).digest()

    def _digest(self, text: bytes) -> bytes:
        return hashlib.new(self._hash, text).digest()
