"""Request and response headers: which version goes with which api, and their bytes.

Request header v1 is (api key, version, correlation id, client id); v2 adds tagged fields but keeps
the client id in the old string form. Response header v0 is the correlation id; v1 adds tagged
fields. ApiVersions is answered with v0 in every version (KIP-511), so that any client can read it.
"""

import struct
from dataclasses import dataclass
from typing import Any, Final

from twinlog.model.bounds import TAGGED_FIELDS_MAX
from twinlog.model.errors import WireError
from twinlog.wire.api_keys import ApiKey
from twinlog.wire.primitives import Buffer, decode_uvarint
from twinlog.wire.schema import Api

_FIXED: Final = struct.Struct(">hhih")
_FIXED_WITHOUT_CLIENT_ID: Final = struct.Struct(">hhi")
_CORRELATION_ID: Final = struct.Struct(">i")

_CLIENT_ID_BYTES_MAX: Final = 32_767


@dataclass(slots=True)
class RequestHeader:
    """Who asks what: ``api_key`` may be a number we do not know."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def decode_request_header(frame: Buffer) -> tuple[RequestHeader, int]:
    """Read the part common to all header versions; give it and the position after the client id.

    Tagged fields of header v2 are left for ``skip_tags``: only the api's row tells if there are
    any. Raises WireError when the frame is too short or the client id's length is nonsense.
    """
    try:
        api_key, api_version, correlation_id, length = _FIXED.unpack_from(frame)
    except struct.error as error:
        raise WireError(f"request header in a frame of {len(frame)} bytes") from error
    end = _FIXED.size + max(length, 0)
    if length < -1 or end > len(frame):
        raise WireError(f"client id of {length} bytes in a frame of {len(frame)} bytes")
    try:
        client_id = None if length < 0 else str(frame[_FIXED.size : end], "utf-8")
    except UnicodeDecodeError as error:
        raise WireError("client id is not UTF-8") from error
    return RequestHeader(api_key, api_version, correlation_id, client_id), end


def skip_tags(frame: Buffer, position: int) -> int:
    """Step over tagged fields; give the position after them."""
    try:
        if frame[position] == 0:
            return position + 1  # as in nearly every header
        count, position = decode_uvarint(frame, position)
        if count > TAGGED_FIELDS_MAX:
            raise WireError(f"{count} tagged fields in a header")
        for _ in range(count):
            _, position = decode_uvarint(frame, position)
            size, position = decode_uvarint(frame, position)
            position += size
    except IndexError as error:
        raise WireError("a header's tagged fields pass the end of the frame") from error
    if position > len(frame):
        raise WireError("a header's tagged fields pass the end of the frame")
    return position


def encode_request_header(
    api: Api[Any, Any], version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """Give the request header that ``api`` has in ``version``.

    Raises WireError when the client id does not fit in the old string form.
    """
    name = None if client_id is None else client_id.encode()
    if name is not None and len(name) > _CLIENT_ID_BYTES_MAX:
        raise WireError(f"client id of {len(name)} bytes")
    head = _FIXED_WITHOUT_CLIENT_ID.pack(api.key, version, correlation_id)
    head += struct.pack(">h", -1) if name is None else struct.pack(">h", len(name)) + name
    return head + b"\x00" if api.is_flexible(version) else head


def encode_response_header(api: Api[Any, Any], version: int, correlation_id: int) -> bytes:
    """Give the response header that ``api`` has in ``version``."""
    head = _CORRELATION_ID.pack(correlation_id)
    return head + b"\x00" if _response_has_tags(api, version) else head


def decode_correlation_id(frame: Buffer) -> int:
    """Read whose answer this is. Raises WireError when the frame is too short."""
    if len(frame) < _CORRELATION_ID.size:
        raise WireError(f"response of {len(frame)} bytes")
    correlation_id: int = _CORRELATION_ID.unpack_from(frame)[0]
    return correlation_id


def response_body_start(api: Api[Any, Any], version: int, frame: Buffer) -> int:
    """Give the position after the response header."""
    if _response_has_tags(api, version):
        return skip_tags(frame, _CORRELATION_ID.size)
    return _CORRELATION_ID.size


def _response_has_tags(api: Api[Any, Any], version: int) -> bool:
    return api.key != ApiKey.API_VERSIONS and api.is_flexible(version)
