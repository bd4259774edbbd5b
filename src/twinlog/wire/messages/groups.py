"""FindCoordinator: v0-6. JoinGroup: v0-9. SyncGroup, LeaveGroup, ListGroups: v0-5. Heartbeat: v0-4.
DescribeGroups: v0-6. DeleteGroups: v0-3.

FindCoordinator v1: kinds of keys. v3: flexible. v4: several keys at once (KIP-699).
v6: share groups (KIP-932).
JoinGroup v1: rebalance timeout. v4: the member id comes from the broker (KIP-394). v5: static
members (KIP-345). v6: flexible. v7: protocol type in the answer (KIP-559). v8: reason (KIP-800).
v9: the leader may skip the assignment (KIP-814).
SyncGroup v3: static members. v4: flexible. v5: protocol (KIP-559).
Heartbeat v3: static members. v4: flexible.
LeaveGroup v3: several members at once (KIP-345). v4: flexible. v5: reason (KIP-800).
DescribeGroups v3: authorized operations (KIP-430). v4: static members. v5: flexible. v6: error
message, GROUP_ID_NOT_FOUND (KIP-1043).
ListGroups v3: flexible. v4: states (KIP-518). v5: types (KIP-848).
DeleteGroups v2: flexible. v3: error message.
"""

from typing import Annotated, Final

from twinlog.wire.api_keys import ApiKey
from twinlog.wire.primitives import NO_OPERATIONS, Int8, Int16, Int32
from twinlog.wire.schema import Api, message, null_since, since, until


@message
class FindCoordinatorRequest:
    key: Annotated[str, until(3)] = ""
    key_type: Annotated[Int8, since(1)] = 0
    coordinator_keys: Annotated[tuple[str, ...], since(4)] = ()


@message
class Coordinator:
    key: Annotated[str, since(4)]
    node_id: Annotated[Int32, since(4)]
    host: Annotated[str, since(4)]
    port: Annotated[Int32, since(4)]
    error_code: Annotated[Int16, since(4)] = 0
    error_message: Annotated[str | None, since(4)] = None


@message
class FindCoordinatorResponse:
    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Annotated[Int16, until(3)] = 0
    error_message: Annotated[str | None, since(1), until(3)] = None
    node_id: Annotated[Int32, until(3)] = 0
    host: Annotated[str, until(3)] = ""
    port: Annotated[Int32, until(3)] = 0
    coordinators: Annotated[tuple[Coordinator, ...], since(4)] = ()


@message
class JoinGroupProtocol:
    name: str
    metadata: bytes


@message
class JoinGroupRequest:
    group_id: str
    session_timeout_ms: Int32
    rebalance_timeout_ms: Annotated[Int32, since(1)] = -1
    member_id: str
    group_instance_id: Annotated[str | None, since(5)] = None
    protocol_type: str
    protocols: tuple[JoinGroupProtocol, ...]
    reason: Annotated[str | None, since(8)] = None


@message
class JoinGroupMember:
    member_id: str
    group_instance_id: Annotated[str | None, since(5)] = None
    metadata: bytes


@message
class JoinGroupResponse:
    throttle_time_ms: Annotated[Int32, since(2)] = 0
    error_code: Int16 = 0
    generation_id: Int32 = -1
    protocol_type: Annotated[str | None, since(7)] = None
    protocol_name: Annotated[str | None, null_since(7)]
    leader: str
    skip_assignment: Annotated[bool, since(9)] = False
    member_id: str
    members: tuple[JoinGroupMember, ...]


@message
class SyncGroupAssignment:
    member_id: str
    assignment: bytes


@message
class SyncGroupRequest:
    group_id: str
    generation_id: Int32
    member_id: str
    group_instance_id: Annotated[str | None, since(3)] = None
    protocol_type: Annotated[str | None, since(5)] = None
    protocol_name: Annotated[str | None, since(5)] = None
    assignments: tuple[SyncGroupAssignment, ...]


@message
class SyncGroupResponse:
    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Int16 = 0
    protocol_type: Annotated[str | None, since(5)] = None
    protocol_name: Annotated[str | None, since(5)] = None
    assignment: bytes


@message
class HeartbeatRequest:
    group_id: str
    generation_id: Int32
    member_id: str
    group_instance_id: Annotated[str | None, since(3)] = None


@message
class HeartbeatResponse:
    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Int16 = 0


@message
class LeavingMember:
    member_id: Annotated[str, since(3)]
    group_instance_id: Annotated[str | None, since(3)] = None
    reason: Annotated[str | None, since(5)] = None


@message
class LeaveGroupRequest:
    group_id: str
    member_id: Annotated[str, until(2)] = ""
    members: Annotated[tuple[LeavingMember, ...], since(3)] = ()


@message
class LeftMember:
    member_id: Annotated[str, since(3)]
    group_instance_id: Annotated[str | None, since(3)] = None
    error_code: Annotated[Int16, since(3)] = 0


@message
class LeaveGroupResponse:
    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Int16 = 0
    members: Annotated[tuple[LeftMember, ...], since(3)] = ()


@message
class DescribeGroupsRequest:
    groups: tuple[str, ...]
    include_authorized_operations: Annotated[bool, since(3)] = False


@message
class DescribedMember:
    member_id: str
    group_instance_id: Annotated[str | None, since(4)] = None
    client_id: str
    client_host: str
    member_metadata: bytes
    member_assignment: bytes


@message
class DescribedGroup:
    error_code: Int16 = 0
    error_message: Annotated[str | None, since(6)] = None
    group_id: str
    group_state: str
    protocol_type: str
    protocol_data: str
    members: tuple[DescribedMember, ...]
    authorized_operations: Annotated[Int32, since(3)] = NO_OPERATIONS


@message
class DescribeGroupsResponse:
    throttle_time_ms: Annotated[Int32, since(1)] = 0
    groups: tuple[DescribedGroup, ...]


@message
class ListGroupsRequest:
    states_filter: Annotated[tuple[str, ...], since(4)] = ()
    types_filter: Annotated[tuple[str, ...], since(5)] = ()


@message
class ListedGroup:
    group_id: str
    protocol_type: str
    group_state: Annotated[str, since(4)] = ""
    group_type: Annotated[str, since(5)] = ""


@message
class ListGroupsResponse:
    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Int16 = 0
    groups: tuple[ListedGroup, ...]


@message
class DeleteGroupsRequest:
    groups_names: tuple[str, ...]


@message
class DeletedGroup:
    group_id: str
    error_code: Int16 = 0
    error_message: Annotated[str | None, since(3)] = None


@message
class DeleteGroupsResponse:
    throttle_time_ms: Int32 = 0
    results: tuple[DeletedGroup, ...]


FIND_COORDINATOR: Final = Api(
    ApiKey.FIND_COORDINATOR,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    0,
    6,
    flexible_since=3,
)
JOIN_GROUP: Final = Api(
    ApiKey.JOIN_GROUP, JoinGroupRequest, JoinGroupResponse, 0, 9, flexible_since=6
)
SYNC_GROUP: Final = Api(
    ApiKey.SYNC_GROUP, SyncGroupRequest, SyncGroupResponse, 0, 5, flexible_since=4
)
HEARTBEAT: Final = Api(
    ApiKey.HEARTBEAT, HeartbeatRequest, HeartbeatResponse, 0, 4, flexible_since=4
)
LEAVE_GROUP: Final = Api(
    ApiKey.LEAVE_GROUP, LeaveGroupRequest, LeaveGroupResponse, 0, 5, flexible_since=4
)
DESCRIBE_GROUPS: Final = Api(
    ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest, DescribeGroupsResponse, 0, 6, flexible_since=5
)
LIST_GROUPS: Final = Api(
    ApiKey.LIST_GROUPS, ListGroupsRequest, ListGroupsResponse, 0, 5, flexible_since=3
)
DELETE_GROUPS: Final = Api(
    ApiKey.DELETE_GROUPS, DeleteGroupsRequest, DeleteGroupsResponse, 0, 3, flexible_since=2
)
