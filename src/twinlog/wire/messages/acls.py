"""DescribeAcls: v1-3.

v1: pattern types (KIP-290). v2: flexible. v3: users as resources (KIP-373).
"""

from typing import Final

from twinlog.wire.api_keys import ApiKey
from twinlog.wire.primitives import Int8, Int16, Int32
from twinlog.wire.schema import Api, message


@message
class DescribeAclsRequest:
    resource_type_filter: Int8
    resource_name_filter: str | None = None
    pattern_type_filter: Int8 = 3
    principal_filter: str | None = None
    host_filter: str | None = None
    operation: Int8
    permission_type: Int8


@message
class AclDescription:
    principal: str
    host: str
    operation: Int8
    permission_type: Int8


@message
class DescribedAclResource:
    resource_type: Int8
    resource_name: str
    pattern_type: Int8 = 3
    acls: tuple[AclDescription, ...]


@message
class DescribeAclsResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = None
    resources: tuple[DescribedAclResource, ...]


DESCRIBE_ACLS: Final = Api(
    ApiKey.DESCRIBE_ACLS, DescribeAclsRequest, DescribeAclsResponse, 1, 3, flexible_since=2
)
