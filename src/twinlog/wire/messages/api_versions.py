"""ApiVersions: v0-4.

v3: flexible, the client names itself (KIP-511), features (KIP-584). v4: features may begin at 0.
"""

from typing import Annotated, Final

from twinlog.wire.api_keys import ApiKey
from twinlog.wire.primitives import Int16, Int32, Int64
from twinlog.wire.schema import Api, message, since, tag


@message
class ApiVersionsRequest:
    client_software_name: Annotated[str, since(3)]
    client_software_version: Annotated[str, since(3)]


@message
class ApiVersion:
    api_key: Int16
    min_version: Int16
    max_version: Int16


@message
class SupportedFeature:
    name: Annotated[str, since(3)]
    min_version: Annotated[Int16, since(3)]
    max_version: Annotated[Int16, since(3)]


@message
class FinalizedFeature:
    name: Annotated[str, since(3)]
    max_version_level: Annotated[Int16, since(3)]
    min_version_level: Annotated[Int16, since(3)]


@message
class ApiVersionsResponse:
    error_code: Int16
    api_keys: tuple[ApiVersion, ...]
    throttle_time_ms: Annotated[Int32, since(1)] = 0
    supported_features: Annotated[tuple[SupportedFeature, ...], since(3), tag(0)] = ()
    finalized_features_epoch: Annotated[Int64, since(3), tag(1)] = -1
    finalized_features: Annotated[tuple[FinalizedFeature, ...], since(3), tag(2)] = ()
    zk_migration_ready: Annotated[bool, since(3), tag(3)] = False


API_VERSIONS: Final = Api(
    ApiKey.API_VERSIONS, ApiVersionsRequest, ApiVersionsResponse, 0, 4, flexible_since=3
)
