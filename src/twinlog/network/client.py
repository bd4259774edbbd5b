"""A connection to a broker: versions agreed at the start, then requests and their answers.

What the two sides speak is found with ApiVersions v3; brokers before 2.4 (Kafka 2.1 among them)
answer that with error 35 in the form of v0, and are asked again with what they know (KIP-511).
"""

import asyncio
import os
import socket
import ssl
import struct
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, TypeVar

from twinlog.model.errors import ApiError, ErrorCode, WireError, error_name
from twinlog.network.addresses import Address
from twinlog.network.exchange import Exchange, PeerUnavailable
from twinlog.network.frames import ReceiveBuffers
from twinlog.network.secured import UNSECURED, Secured
from twinlog.network.session import Session
from twinlog.wire.api_keys import ApiKey
from twinlog.wire.codec import Parts, decode_response, encode_request
from twinlog.wire.frames import with_length
from twinlog.wire.headers import encode_request_header, response_body_start
from twinlog.wire.messages.api_versions import (
    API_VERSIONS,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from twinlog.wire.messages.sasl import SASL_AUTHENTICATE, SASL_HANDSHAKE
from twinlog.wire.primitives import Buffer
from twinlog.wire.schema import Api

Request = TypeVar("Request")
Response = TypeVar("Response")

FIRST_VERSION: Final = 3
_ERROR_CODE: Final = struct.Struct(">h")
_ERROR_CODE_AT: Final = 4


class BrokerConnection:
    """An open connection. Calls may overlap; they are sent in the order they are made.

    Records in an answer are a ``memoryview`` into its frame. A frame of 64 KB and more lies in a
    buffer that is used again as soon as nobody refers to it, so hold on to records or copy them.
    """

    def __init__(self, address: Address, client_id: str, exchange: Exchange) -> None:
        self.address = address
        self.client_id = client_id
        self._exchange = exchange
        self._spoken: dict[int, tuple[int, int]] = {}
        self._session: Session | None = None
        self._was_answered = False

    @classmethod
    async def open(
        cls,
        address: Address,
        client_id: str,
        *,
        timeout_s: float,
        secured: Secured = UNSECURED,
        buffers: ReceiveBuffers | None = None,
    ) -> "BrokerConnection":
        """Connect, agree on versions, and log in, within ``timeout_s`` seconds.

        Raises PeerUnavailable; AuthenticationFailed, which is one, when the login is refused.
        """
        secured.check(address)
        buffers = buffers or ReceiveBuffers()
        try:
            async with asyncio.timeout(timeout_s):
                tls = await secured.context(address)
                connection = cls(address, client_id, await _connect(address, tls, buffers))
                if not await connection._negotiate(FIRST_VERSION, timeout_s):
                    # Some close the connection on a version they do not know.
                    connection = cls(address, client_id, await _connect(address, tls, buffers))
                    await connection._negotiate(0, timeout_s)
                if secured.security.login is not None:
                    await connection._log_in(secured, timeout_s)
        except TimeoutError:
            raise PeerUnavailable(address, f"no connection within {timeout_s:g} s") from None
        return connection

    @property
    def is_open(self) -> bool:
        """Tell whether requests can be sent."""
        return self._exchange.is_open

    @property
    def in_flight_count(self) -> int:
        """How many requests wait for their answer."""
        return self._exchange.in_flight_count

    def supports(self, api: Api[Any, Any]) -> bool:
        """Tell whether both sides speak a version of ``api``."""
        low, high = self._common(api)
        return low <= high

    def version_of(self, api: Api[Any, Any]) -> int:
        """Give the highest version of ``api`` that both sides speak.

        Raises ApiError(UNSUPPORTED_VERSION), which names both ranges.
        """
        low, high = self._common(api)
        if low > high:
            ours = f"we speak {api.min_version}-{api.max_version}"
            theirs = self._spoken.get(api.key)
            they = "does not know it" if theirs is None else f"speaks {theirs[0]}-{theirs[1]}"
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION, f"{api.key.name}: {self.address} {they}, {ours}"
            )
        return high

    async def call(
        self,
        api: Api[Request, Response],
        request: Request,
        *,
        timeout_s: float,
        version: int | None = None,
    ) -> Response:
        """Send ``request`` and give its response; error codes in it are the caller's business.

        Raises PeerUnavailable when there is no answer within ``timeout_s`` seconds or one that
        cannot be read (the connection is closed then), ApiError when no version is common.
        """
        if version is None:
            version = self.version_of(api)
        if self._session is not None and self._session.is_due:
            await self._session.renew(self.version_of(SASL_AUTHENTICATE))
        exchange = self._exchange
        correlation_id, frame = self._framed(api, request, version)
        try:
            answer = await exchange.ask(correlation_id, frame, timeout_s=timeout_s)
        except PeerUnavailable:
            if self._was_answered or self._session is not None or not exchange.was_cut:
                raise
            why = "it closes the connection on the first request; does it expect SASL?"
            raise PeerUnavailable(self.address, why) from None
        self._was_answered = True
        return self._decoded(api, version, answer)

    async def close(self) -> None:
        """Close the connection; calls that wait get PeerUnavailable."""
        await self._exchange.close()

    def _framed(self, api: Api[Any, Any], request: Any, version: int) -> tuple[int, Parts]:
        correlation_id = self._exchange.next_id()
        header = encode_request_header(api, version, correlation_id, self.client_id)
        return correlation_id, with_length(header, encode_request(api, request, version))

    def _decoded(self, api: Api[Any, Response], version: int, answer: Buffer) -> Response:
        try:
            start = response_body_start(api, version, answer)
            return decode_response(api, answer, version, start)
        except WireError as error:
            self._exchange.fail(f"broke the protocol: {error}")
            raise PeerUnavailable(self.address, f"broke the protocol: {error}") from error

    async def _log_in(self, secured: Secured, timeout_s: float) -> None:
        async def ask(api: Api[Any, Any], request: Any, version: int) -> Any:
            correlation_id, frame = self._framed(api, request, version)
            answer = await self._exchange.ask_first(correlation_id, frame, timeout_s=timeout_s)
            return self._decoded(api, version, answer)

        if not (self.supports(SASL_HANDSHAKE) and self.supports(SASL_AUTHENTICATE)):
            await self.close()
            raise PeerUnavailable(self.address, "it knows no SASL")
        session = Session(secured, self._exchange, self.address, ask, timeout_s=timeout_s)
        await session.log_in(self.version_of(SASL_AUTHENTICATE))
        self._session = session

    def _common(self, api: Api[Any, Any]) -> tuple[int, int]:
        low, high = self._spoken.get(api.key, (0, -1))
        return max(low, api.min_version), min(high, api.max_version)

    async def _negotiate(self, version: int, timeout_s: float) -> bool:
        """Find out what the broker speaks; False if it closed the connection on ``version``."""
        try:
            answer = await self._ask_versions(version, timeout_s)
            if version > 0 and answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
                known = _highest_known(answer, version)
                answer = await self._ask_versions(known, timeout_s)
        except PeerUnavailable:
            if not self._exchange.was_cut:
                raise
            if version > 0:
                return False
            why = "it closes the connection on ApiVersions; does it expect TLS?"
            raise PeerUnavailable(self.address, why) from None
        except asyncio.CancelledError:
            self._exchange.fail("opening was given up")
            raise
        if answer.error_code:
            why = f"ApiVersions was answered with {error_name(answer.error_code)}"
            self._exchange.fail(why)
            raise PeerUnavailable(self.address, why)
        self._spoken = {a.api_key: (a.min_version, a.max_version) for a in answer.api_keys}
        return True

    async def _ask_versions(self, version: int, timeout_s: float) -> ApiVersionsResponse:
        exchange = self._exchange
        request = ApiVersionsRequest(
            client_software_name="twinlog", client_software_version=_software_version()
        )
        correlation_id = exchange.next_id()
        header = encode_request_header(API_VERSIONS, version, correlation_id, self.client_id)
        frame = with_length(header, encode_request(API_VERSIONS, request, version))
        answer = await exchange.ask(correlation_id, frame, timeout_s=timeout_s)
        try:
            code = _ERROR_CODE.unpack_from(answer, _ERROR_CODE_AT)[0]
            form = 0 if code == ErrorCode.UNSUPPORTED_VERSION else version
            return decode_response(API_VERSIONS, answer, form, _ERROR_CODE_AT)
        except (WireError, struct.error) as error:
            why = f"its answer to ApiVersions cannot be read: {error}"
            exchange.fail(why)
            raise PeerUnavailable(self.address, why) from error


def _highest_known(answer: ApiVersionsResponse, below: int) -> int:
    """Give the version to ask with after error 35: what the answer lists, or 0."""
    listed = (a.max_version for a in answer.api_keys if a.api_key == ApiKey.API_VERSIONS)
    return max(0, min(next(listed, 0), below - 1))


async def _connect(
    address: Address, tls: ssl.SSLContext | None, buffers: ReceiveBuffers
) -> Exchange:
    """Connect to the first of the host's addresses that answers."""
    loop = asyncio.get_running_loop()
    try:
        _, exchange = await loop.create_connection(
            lambda: Exchange(address, buffers),
            address.host,
            address.port,
            ssl=tls,
            server_hostname=address.host if tls else None,
        )
    except socket.gaierror as error:
        raise PeerUnavailable(address, f"unknown host: {error.strerror}") from error
    except ssl.SSLCertVerificationError as error:
        why = f"its certificate is not trusted: {error.verify_message}"
        raise PeerUnavailable(address, why) from error
    except ssl.SSLError as error:
        raise PeerUnavailable(address, f"TLS failed: {error.reason or error}") from error
    except OSError as error:
        why = str(error) if error.errno is None else os.strerror(error.errno)
        if tls is not None and error.errno is None:
            why = "it closes the connection in the TLS handshake; does it speak TLS?"
        raise PeerUnavailable(address, f"cannot connect: {why}") from error
    return exchange


@cache
def _software_version() -> str:
    try:
        return version("twinlog")
    except PackageNotFoundError:
        return "unknown"
