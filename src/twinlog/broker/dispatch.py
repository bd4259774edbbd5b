"""Frame in, frame out: version, decoding, handler, encoding; failures become codes here only."""

import logging
from collections.abc import Awaitable, Mapping
from typing import Any, Final

from twinlog.broker.api_table import Row
from twinlog.broker.context import Broker, Context
from twinlog.model.errors import ApiError, ErrorCode, WireError
from twinlog.network.peer import Peer
from twinlog.wire.api_keys import ApiKey
from twinlog.wire.codec import Parts, decode_request, encode_response
from twinlog.wire.frames import with_length
from twinlog.wire.headers import (
    RequestHeader,
    decode_request_header,
    encode_response_header,
    skip_tags,
)
from twinlog.wire.messages.api_versions import API_VERSIONS, ApiVersion, ApiVersionsResponse
from twinlog.wire.primitives import Buffer

log: Final = logging.getLogger(__name__)


class Dispatch:
    """Answers every frame of every connection through one table of rows."""

    def __init__(self, rows: tuple[Row, ...], broker: Broker) -> None:
        self._rows: Final[Mapping[int, Row]] = {row.api.key: row for row in rows}
        self._broker: Final = broker

    def __call__(self, frame: Buffer, peer: Peer) -> Parts | Awaitable[Parts | None] | None:
        """Answer one frame: at once, later, or (a produce without acks) not at all.

        Raises WireError when the connection must be closed: a header that is none, an api or a
        version we do not speak, a body that does not fit.
        """
        header, position = decode_request_header(frame)
        row = self._rows.get(header.api_key)
        if row is None:
            raise WireError(f"request with api key {header.api_key}, which is not spoken here")
        version = header.api_version
        if not row.api.min_version <= version <= row.api.max_version:
            return _refuse_version(row, header)
        if row.api.is_flexible(version):
            position = skip_tags(frame, position)
        request = decode_request(row.api, frame, version, position)
        context = Context(self._broker, version, header.client_id, peer)
        try:
            answer = row.handler(request, context)
        except ApiError as error:
            answer = _failure(row, error)
        if answer is None or isinstance(answer, row.api.response):
            return None if answer is None else _encode(row, header, answer)
        return self._answer_later(row, header, answer)

    async def _answer_later(
        self, row: Row, header: RequestHeader, answer: Awaitable[Any]
    ) -> Parts | None:
        try:
            response = await answer
        except ApiError as error:
            response = _failure(row, error)
        return None if response is None else _encode(row, header, response)


def _encode(row: Row, header: RequestHeader, response: Any) -> Parts:
    version = header.api_version
    head = encode_response_header(row.api, version, header.correlation_id)
    return with_length(head, encode_response(row.api, response, version))


def _refuse_version(row: Row, header: RequestHeader) -> Parts:
    """Answer ApiVersions in its oldest form (KIP-511); close the connection for all others."""
    if row.api.key != ApiKey.API_VERSIONS:
        raise WireError(
            f"{row.api.key.name} v{header.api_version} is not spoken here, "
            f"only v{row.api.min_version} to v{row.api.max_version}"
        )
    spoken = ApiVersion(
        api_key=row.api.key, min_version=row.api.min_version, max_version=row.api.max_version
    )
    response = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=(spoken,),
    )
    head = encode_response_header(API_VERSIONS, 0, header.correlation_id)
    return with_length(head, encode_response(API_VERSIONS, response, 0))


def _failure(row: Row, error: ApiError) -> Any:
    """Make the answer that says of the whole request that it failed.

    A response that has no error code of its own must have been given its codes by its handler.
    """
    fields = row.api.response.__dataclass_fields__
    if "error_code" not in fields:
        raise AssertionError(f"{row.api.key.name} cannot carry {error}") from error
    log.debug("request failed", extra={"api": row.api.key.name, "error": str(error)})
    if "error_message" in fields:
        return row.api.response(error_code=error.code, error_message=error.why)
    return row.api.response(error_code=error.code)
