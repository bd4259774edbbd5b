"""SaslHandshake: v0-1. SaslAuthenticate: v0-2.

SaslHandshake v1: what follows are SaslAuthenticate requests, and not bare tokens (KIP-152).
SaslAuthenticate v1: how long the authentication holds (KIP-368). v2: flexible.
"""

from typing import Annotated, Final

from twinlog.wire.api_keys import ApiKey
from twinlog.wire.primitives import Int16, Int64
from twinlog.wire.schema import Api, message, since


@message
class SaslHandshakeRequest:
    mechanism: str


@message
class SaslHandshakeResponse:
    error_code: Int16
    mechanisms: tuple[str, ...]


@message
class SaslAuthenticateRequest:
    auth_bytes: bytes


@message
class SaslAuthenticateResponse:
    error_code: Int16
    error_message: str | None = None
    auth_bytes: bytes = b""
    session_lifetime_ms: Annotated[Int64, since(1)] = 0


SASL_HANDSHAKE: Final = Api(
    ApiKey.SASL_HANDSHAKE, SaslHandshakeRequest, SaslHandshakeResponse, 0, 1
)
SASL_AUTHENTICATE: Final = Api(
    ApiKey.SASL_AUTHENTICATE,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    0,
    2,
    flexible_since=2,
)
