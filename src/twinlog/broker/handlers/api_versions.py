"""ApiVersions: v0-4.

Any other version is answered by ``dispatch`` in the form of v0 with UNSUPPORTED_VERSION (KIP-511).
No features are listed: none that a client asks for (transaction.version and so on) exists here.
"""

import re
from typing import Final

from twinlog.broker.context import Context
from twinlog.model.errors import ErrorCode
from twinlog.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse

_SOFTWARE_NAME: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle_api_versions(request: ApiVersionsRequest, context: Context) -> ApiVersionsResponse:
    """Say what is spoken here; remember what software asks."""
    if context.api_version >= 3 and not (
        _SOFTWARE_NAME.fullmatch(request.client_software_name)
        and _SOFTWARE_NAME.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=())
    context.peer.software_name = request.client_software_name
    context.peer.software_version = request.client_software_version
    return ApiVersionsResponse(
        error_code=ErrorCode.NONE,
        api_keys=tuple(
            ApiVersion(api_key=a.key, min_version=a.min_version, max_version=a.max_version)
            for a in context.broker.spoken
        ),
    )
