"""A broker of few words: it answers what a test tells it to, over a real socket."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from support.listening import listening
from twinlog.network.addresses import Address
from twinlog.network.peer import Peer
from twinlog.wire.api_keys import ApiKey
from twinlog.wire.codec import Parts, decode_request, encode_response
from twinlog.wire.frames import with_length
from twinlog.wire.headers import decode_request_header, encode_response_header, skip_tags
from twinlog.wire.messages.api_versions import API_VERSIONS, ApiVersion, ApiVersionsResponse
from twinlog.wire.primitives import Buffer
from twinlog.wire.schema import Api

# A handler gets the request and its version, and gives the response, now or later.
Handler: TypeAlias = Callable[[Any, int], Any | Awaitable[Any]]


class ScriptedBroker:
    """Speaks ApiVersions and the apis it has handlers for."""

    def __init__(
        self,
        *,
        api_versions_max: int = 4,
        ranges: dict[ApiKey, tuple[int, int]] | None = None,
        lists_itself_in_error_35: bool = True,
    ) -> None:
        self.address = Address("127.0.0.1", 0)
        self.asked: list[tuple[ApiKey, int]] = []
        self.connection_count: Callable[[], int] = lambda: 0
        self._api_versions_max = api_versions_max
        self._ranges = ranges or {}
        self._lists_itself = lists_itself_in_error_35
        self._handlers: dict[int, tuple[Api[Any, Any], Handler]] = {}

    def on(self, api: Api[Any, Any], handler: Handler) -> None:
        """Answer ``api`` with what ``handler`` gives."""
        self._handlers[api.key] = (api, handler)

    def on_frame(self, frame: Buffer, peer: Peer) -> Parts | Awaitable[Parts]:
        """Answer one request."""
        header, position = decode_request_header(frame)
        self.asked.append((ApiKey(header.api_key), header.api_version))
        if header.api_key == ApiKey.API_VERSIONS:
            return self._api_versions(header.api_version, header.correlation_id)
        api, handler = self._handlers[header.api_key]
        if api.is_flexible(header.api_version):
            position = skip_tags(frame, position)
        request = decode_request(api, frame, header.api_version, position)
        response = handler(request, header.api_version)
        if asyncio.iscoroutine(response) or isinstance(response, asyncio.Future):
            return self._later(api, header.api_version, header.correlation_id, response)
        return answer(api, header.api_version, header.correlation_id, response)

    async def _later(
        self, api: Api[Any, Any], version: int, correlation_id: int, response: Awaitable[Any]
    ) -> Parts:
        return answer(api, version, correlation_id, await response)

    def _api_versions(self, version: int, correlation_id: int) -> Parts:
        itself = ApiVersion(
            api_key=ApiKey.API_VERSIONS, min_version=0, max_version=self._api_versions_max
        )
        if version > self._api_versions_max:
            listed = (itself,) if self._lists_itself else ()
            refusal = ApiVersionsResponse(error_code=35, api_keys=listed)
            return answer(API_VERSIONS, 0, correlation_id, refusal)
        spoken = [itself]
        for api, _ in self._handlers.values():
            low, high = self._ranges.get(api.key, (api.min_version, api.max_version))
            spoken.append(ApiVersion(api_key=api.key, min_version=low, max_version=high))
        response = ApiVersionsResponse(error_code=0, api_keys=tuple(spoken))
        return answer(API_VERSIONS, version, correlation_id, response)


def answer(api: Api[Any, Any], version: int, correlation_id: int, response: Any) -> Parts:
    """Give a whole frame."""
    header = encode_response_header(api, version, correlation_id)
    return with_length(header, encode_response(api, response, version))


@asynccontextmanager
async def serving(broker: ScriptedBroker) -> AsyncIterator[ScriptedBroker]:
    """Let ``broker`` listen on a port of its own."""
    async with listening(broker.on_frame) as listener:
        broker.address = Address("127.0.0.1", listener.port)
        broker.connection_count = lambda: listener.connection_count
        yield broker
