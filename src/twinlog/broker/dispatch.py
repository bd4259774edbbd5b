"""Frame in, frame out: version, decoding, handler, encoding; failures become codes here only."""

import logging
from collections.abc import Awaitable, Mapping
from typing import Any, Final, TypeAlias, cast

from twinlog.broker.api_table import Row
from twinlog.broker.context import Broker, Context
from twinlog.broker.kept_answers import KeptAnswers
from twinlog.broker.request_counts import ApiCounts
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

Answer: TypeAlias = Parts | Awaitable[Parts | None] | None


class Dispatch:
    """Answers every frame of every connection through one table of rows."""

    def __init__(self, rows: tuple[Row, ...], broker: Broker) -> None:
        self._rows: Final[Mapping[int, tuple[Row, ApiCounts]]] = {
            int(row.api.key): (row, broker.requests.of(row.api)) for row in rows
        }
        self._broker: Final = broker
        self._kept: Final = KeptAnswers()

    def __call__(self, frame: Buffer, peer: Peer) -> Answer:
        """Answer one frame: at once, later, or (a produce without acks) not at all.

        Raises WireError when the connection must be closed: a header that is none, an api or a
        version we do not speak, a body that does not fit.
        """
        header, position = decode_request_header(frame)
        found = self._rows.get(header.api_key)
        if found is None:
            raise WireError(f"request with api key {header.api_key}, which is not spoken here")
        row, counts = found
        version = header.api_version
        if not row.api.min_version <= version <= row.api.max_version:
            return _refuse_version(row, header)
        counts.versions[version] += 1
        if row.api.is_flexible(version):
            position = skip_tags(frame, position)
        if row.answers_from_image:
            return self._answer_from_image(row, header, frame, position, peer)
        return self._answer(row, header, frame, position, peer)

    def _answer_from_image(
        self, row: Row, header: RequestHeader, frame: Buffer, position: int, peer: Peer
    ) -> Answer:
        """Answer as ``_answer`` does, unless the image has been asked the very same before."""
        image = self._broker.facts.image
        question = (header.api_key, header.api_version, bytes(frame[position:]))
        kept = self._kept.find(image, question, header.correlation_id)
        if kept is not None:
            return kept
        answer = self._answer(row, header, frame, position, peer)
        if isinstance(answer, list):  # one that has to wait changes the image
            self._kept.keep(image, question, b"".join(cast("list[Buffer]", answer)))
        return answer

    def _answer(
        self, row: Row, header: RequestHeader, frame: Buffer, position: int, peer: Peer
    ) -> Answer:
        request = decode_request(row.api, frame, header.api_version, position)
        context = Context(self._broker, header.api_version, header.client_id, peer)
        try:
            answer = row.handler(request, context)
        except ApiError as error:
            answer = self._failed(row, error)
        if answer is None or isinstance(answer, row.api.response):
            return None if answer is None else self._encode(row, header, answer)
        return self._answer_later(row, header, answer)

    async def _answer_later(
        self, row: Row, header: RequestHeader, answer: Awaitable[Any]
    ) -> Parts | None:
        try:
            response = await answer
        except ApiError as error:
            response = self._failed(row, error)
        return None if response is None else self._encode(row, header, response)

    def _encode(self, row: Row, header: RequestHeader, response: Any) -> Parts:
        if not row.counts_errors:
            self._broker.requests.of(row.api).note_errors(response)
        version = header.api_version
        head = encode_response_header(row.api, version, header.correlation_id)
        return with_length(head, encode_response(row.api, response, version))

    def _failed(self, row: Row, error: ApiError) -> Any:
        if row.counts_errors:
            self._broker.requests.of(row.api).errors[error.code] += 1
        return _failure(row, error)


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
