"""DescribeConfigs: v1-4. IncrementalAlterConfigs, ListConfigResources: v0-1. AlterConfigs: v0-2.

DescribeConfigs v1: source and synonyms. v3: type and documentation (KIP-569). v4: flexible.
IncrementalAlterConfigs v1: flexible. AlterConfigs v2: flexible.
ListConfigResources v0: client metrics only (KIP-1000). v1: any type (KIP-1142).
"""

from typing import Annotated, Final

from twinlog.wire.api_keys import ApiKey
from twinlog.wire.primitives import Int8, Int16, Int32
from twinlog.wire.schema import Api, message, since


@message
class ResourceToDescribe:
    resource_type: Int8
    resource_name: str
    configuration_keys: tuple[str, ...] | None = None


@message
class DescribeConfigsRequest:
    resources: tuple[ResourceToDescribe, ...]
    include_synonyms: bool = False
    include_documentation: Annotated[bool, since(3)] = False


@message
class ConfigSynonym:
    name: str
    value: str | None
    source: Int8


@message
class DescribedConfig:
    name: str
    value: str | None
    read_only: bool = False
    config_source: Int8 = -1
    is_sensitive: bool = False
    synonyms: tuple[ConfigSynonym, ...] = ()
    config_type: Annotated[Int8, since(3)] = 0
    documentation: Annotated[str | None, since(3)] = None


@message
class DescribedResource:
    error_code: Int16 = 0
    error_message: str | None = None
    resource_type: Int8
    resource_name: str
    configs: tuple[DescribedConfig, ...]


@message
class DescribeConfigsResponse:
    throttle_time_ms: Int32 = 0
    results: tuple[DescribedResource, ...]


@message
class ConfigAlteration:
    name: str
    config_operation: Int8
    value: str | None


@message
class ResourceAlteration:
    resource_type: Int8
    resource_name: str
    configs: tuple[ConfigAlteration, ...]


@message
class IncrementalAlterConfigsRequest:
    resources: tuple[ResourceAlteration, ...]
    validate_only: bool = False


@message
class AlteredResource:
    error_code: Int16 = 0
    error_message: str | None = None
    resource_type: Int8
    resource_name: str


@message
class IncrementalAlterConfigsResponse:
    throttle_time_ms: Int32 = 0
    responses: tuple[AlteredResource, ...]


@message
class ConfigReplacement:
    name: str
    value: str | None


@message
class ResourceReplacement:
    resource_type: Int8
    resource_name: str
    configs: tuple[ConfigReplacement, ...]


@message
class AlterConfigsRequest:
    resources: tuple[ResourceReplacement, ...]
    validate_only: bool = False


@message
class AlterConfigsResponse:
    throttle_time_ms: Int32 = 0
    responses: tuple[AlteredResource, ...]


@message
class ListConfigResourcesRequest:
    resource_types: Annotated[tuple[Int8, ...], since(1)] = ()


@message
class ConfigResource:
    resource_name: str
    resource_type: Annotated[Int8, since(1)] = 16


@message
class ListConfigResourcesResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    config_resources: tuple[ConfigResource, ...]


DESCRIBE_CONFIGS: Final = Api(
    ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequest, DescribeConfigsResponse, 1, 4, flexible_since=4
)
INCREMENTAL_ALTER_CONFIGS: Final = Api(
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    0,
    1,
    flexible_since=1,
)
ALTER_CONFIGS: Final = Api(
    ApiKey.ALTER_CONFIGS, AlterConfigsRequest, AlterConfigsResponse, 0, 2, flexible_since=2
)
LIST_CONFIG_RESOURCES: Final = Api(
    ApiKey.LIST_CONFIG_RESOURCES,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    0,
    1,
    flexible_since=0,
)
