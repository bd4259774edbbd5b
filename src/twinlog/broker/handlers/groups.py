"""FindCoordinator: v0-6. JoinGroup: v0-9. SyncGroup, LeaveGroup, ListGroups: v0-5. Heartbeat: v0-4.
DescribeGroups: v0-6. DeleteGroups: v0-3.

Differs from Kafka: authorized operations are answered with "not asked" (there is no authorizer
yet); the coordinator of a transaction is named, but there is none (InitProducerId says so); there
are no share groups, whose coordinator is COORDINATOR_NOT_AVAILABLE.
"""

from typing import Final

from twinlog.broker.context import Context
from twinlog.broker.internal_topics import offsets_topic
from twinlog.cluster.facts import CONSUMER_OFFSETS
from twinlog.cluster.image import ClusterImage
from twinlog.config.coordinators import (
    OFFSETS_COMMIT_TIMEOUT_MS,
)
from twinlog.coordination.homes import home_of
from twinlog.groups.classic_states import DEAD
from twinlog.groups.commands import (
    GroupDescription,
    GroupListing,
    Join,
    Joined,
    Leaver,
    MemberClaim,
    ProtocolOffer,
    Sync,
    Synced,
)
from twinlog.model.bounds import GROUP_TEXT_BYTES_MAX
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import BrokerId, TopicPartition
from twinlog.wire.messages.groups import (
    Coordinator,
    DeletedGroup,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribedMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupMember,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeavingMember,
    LeftMember,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

GROUP_KEY: Final = 0
TRANSACTION_KEY: Final = 1
SHARE_KEY: Final = 2
NO_NODE: Final = -1


async def handle_find_coordinator(
    request: FindCoordinatorRequest, context: Context
) -> FindCoordinatorResponse:
    """Tell which broker coordinates; the first one to ask lets ``__consumer_offsets`` be made."""
    if context.api_version >= 4:
        keys = request.coordinator_keys
        found = [await _coordinator(key, request.key_type, context) for key in keys]
        return FindCoordinatorResponse(coordinators=tuple(found))
    one = await _coordinator(request.key, request.key_type, context)
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


async def _coordinator(key: str, key_type: int, context: Context) -> Coordinator:
    try:
        node_id = await _coordinator_id(key, key_type, context)
        broker = context.broker.facts.image.brokers.get(node_id)
        if broker is None:
            why = f"broker {node_id}, which coordinates {key!r}, is not running"
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, why)
    except ApiError as error:
        return Coordinator(
            key=key,
            node_id=NO_NODE,
            host="",
            port=NO_NODE,
            error_code=error.code,
            error_message=error.why,
        )
    return Coordinator(key=key, node_id=broker.id, host=broker.host, port=broker.port)


async def _coordinator_id(key: str, key_type: int, context: Context) -> BrokerId:
    if key_type == TRANSACTION_KEY:
        return context.broker.broker_id
    if key_type == SHARE_KEY:
        raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "there are no share groups here")
    if key_type != GROUP_KEY:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"key type {key_type}: 0 is a group")
    await _ensure_offsets_topic(context)
    return _leader_of_home(key, context.broker.facts.image)


async def _ensure_offsets_topic(context: Context) -> None:
    topic = offsets_topic(context.broker.settings)
    try:
        await context.broker.new_topics.ensure(topic.name, topic.partition_count, topic.config)
    except ApiError as error:
        why = f"{CONSUMER_OFFSETS} cannot be made: {error}"
        raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, why) from error


def _leader_of_home(group_id: str, image: ClusterImage) -> BrokerId:
    topic = image.topics[CONSUMER_OFFSETS]
    index = home_of(group_id, len(topic.partitions))
    fact = image.partition(TopicPartition(CONSUMER_OFFSETS, index))
    assert fact is not None, f"{CONSUMER_OFFSETS}-{index} is not in the image"
    return fact.leader


async def handle_join_group(request: JoinGroupRequest, context: Context) -> JoinGroupResponse:
    """Answered when everybody has joined."""
    try:
        joined = await _join(request, context)
    except ApiError as error:
        joined = Joined(request.member_id, error=error.code)
    return JoinGroupResponse(
        error_code=joined.error,
        generation_id=joined.generation,
        protocol_type=joined.protocol_type,
        protocol_name=joined.protocol_name or ("" if context.api_version < 7 else None),
        leader=joined.leader,
        skip_assignment=joined.skip_assignment,
        member_id=joined.member_id,
        members=tuple(
            JoinGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                metadata=member.metadata,
            )
            for member in joined.members
        ),
    )


async def _join(request: JoinGroupRequest, context: Context) -> Joined:
    version, broker = context.api_version, context.broker
    client_id = context.client_id or ""
    _check_group_id(request.group_id)
    _check_text("client id", client_id)
    _check_text("group.instance.id", request.group_instance_id or "")
    _check_text("protocol type", request.protocol_type)
    for protocol in request.protocols:
        _check_text("name of a protocol", protocol.name)
    join = Join(
        group_id=request.group_id,
        member_id=request.member_id,
        fresh_member_id=f"{request.group_instance_id or client_id}-{broker.clock.uuid()}",
        protocol_type=request.protocol_type,
        protocols=tuple(ProtocolOffer(p.name, p.metadata) for p in request.protocols),
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=(
            request.session_timeout_ms if version == 0 else request.rebalance_timeout_ms
        ),
        instance_id=request.group_instance_id,
        client_id=client_id,
        client_host=f"/{context.peer.host}",
        must_know_its_id=version >= 4,
        may_skip_assignment=version >= 9,
    )
    joined: Joined = await broker.groups.run(
        join.group_id, lambda shard, now_ms: shard.join(join, now_ms), timeout_s=_timeout_s(context)
    )
    return joined


async def handle_sync_group(request: SyncGroupRequest, context: Context) -> SyncGroupResponse:
    """Answered when the leader has said who reads what."""
    _check_group_id(request.group_id)
    sync = Sync(
        claim=MemberClaim(
            group_id=request.group_id,
            member_id=request.member_id,
            generation=request.generation_id,
            instance_id=request.group_instance_id,
        ),
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignments=tuple((a.member_id, a.assignment) for a in request.assignments),
    )
    synced: Synced = await context.broker.groups.run(
        request.group_id,
        lambda shard, now_ms: shard.sync(sync, now_ms),
        timeout_s=_timeout_s(context),
    )
    return SyncGroupResponse(
        error_code=synced.error,
        protocol_type=synced.protocol_type,
        protocol_name=synced.protocol_name,
        assignment=synced.assignment,
    )


async def handle_heartbeat(request: HeartbeatRequest, context: Context) -> HeartbeatResponse:
    """Note that a member lives."""
    _check_group_id(request.group_id)
    claim = MemberClaim(
        group_id=request.group_id,
        member_id=request.member_id,
        generation=request.generation_id,
        instance_id=request.group_instance_id,
    )
    error: ErrorCode = await context.broker.groups.run(
        request.group_id,
        lambda shard, now_ms: shard.heartbeat(claim, now_ms),
        timeout_s=_timeout_s(context),
    )
    return HeartbeatResponse(error_code=error)


async def handle_leave_group(request: LeaveGroupRequest, context: Context) -> LeaveGroupResponse:
    """Let members go: one up to v2, several from v3 on."""
    _check_group_id(request.group_id)
    leaving = request.members
    if context.api_version < 3:
        leaving = (LeavingMember(member_id=request.member_id),)
    leavers = [Leaver(member.member_id, member.group_instance_id) for member in leaving]
    left = await context.broker.groups.run(
        request.group_id,
        lambda shard, now_ms: shard.leave(request.group_id, leavers, now_ms),
        timeout_s=_timeout_s(context),
    )
    if context.api_version < 3:
        return LeaveGroupResponse(error_code=left[0].error)
    return LeaveGroupResponse(
        members=tuple(
            LeftMember(
                member_id=one.member_id, group_instance_id=one.instance_id, error_code=one.error
            )
            for one in left
        )
    )


async def handle_describe_groups(
    request: DescribeGroupsRequest, context: Context
) -> DescribeGroupsResponse:
    """Describe groups one by one."""
    groups = [await _described(group_id, context) for group_id in request.groups]
    return DescribeGroupsResponse(groups=tuple(groups))


async def _described(group_id: str, context: Context) -> DescribedGroup:
    try:
        description: GroupDescription = await context.broker.groups.run(
            group_id, lambda shard, _: shard.describe(group_id), timeout_s=_timeout_s(context)
        )
        if description.state == DEAD and context.api_version >= 6:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id}")
    except ApiError as error:
        return DescribedGroup(
            error_code=error.code,
            error_message=error.why,
            group_id=group_id,
            group_state=DEAD if error.code is ErrorCode.GROUP_ID_NOT_FOUND else "",
            protocol_type="",
            protocol_data="",
            members=(),
        )
    return DescribedGroup(
        group_id=group_id,
        group_state=description.state,
        protocol_type=description.protocol_type,
        protocol_data=description.protocol_name,
        members=tuple(
            DescribedMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata,
                member_assignment=member.assignment,
            )
            for member in description.members
        ),
    )


async def handle_list_groups(request: ListGroupsRequest, context: Context) -> ListGroupsResponse:
    """List the groups that this broker coordinates."""
    listings = await context.broker.groups.run_everywhere(
        lambda shard, _: shard.list_groups(), timeout_s=_timeout_s(context)
    )
    states = {state.lower() for state in request.states_filter}
    types = {type_.lower() for type_ in request.types_filter}

    def is_wanted(group: GroupListing) -> bool:
        has_state = not states or group.state.lower() in states
        return has_state and (not types or group.type.lower() in types)

    return ListGroupsResponse(
        groups=tuple(
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type,
                group_state=group.state,
                group_type=group.type,
            )
            for listing in listings
            for group in listing
            if is_wanted(group)
        )
    )


async def handle_delete_groups(
    request: DeleteGroupsRequest, context: Context
) -> DeleteGroupsResponse:
    """Delete groups one by one."""
    results = [await _deleted(group_id, context) for group_id in request.groups_names]
    return DeleteGroupsResponse(results=tuple(results))


async def _deleted(group_id: str, context: Context) -> DeletedGroup:
    try:
        await context.broker.groups.run(
            group_id, lambda shard, _: shard.delete_group(group_id), timeout_s=_timeout_s(context)
        )
    except ApiError as error:
        return DeletedGroup(group_id=group_id, error_code=error.code, error_message=error.why)
    return DeletedGroup(group_id=group_id)


def _check_group_id(group_id: str) -> None:
    if not group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
    if len(group_id.encode()) > GROUP_TEXT_BYTES_MAX:
        why = f"the group id is longer than {GROUP_TEXT_BYTES_MAX} bytes"
        raise ApiError(ErrorCode.INVALID_GROUP_ID, why)


def _check_text(what: str, text: str) -> None:
    if len(text.encode()) > GROUP_TEXT_BYTES_MAX:
        why = f"the {what} is longer than {GROUP_TEXT_BYTES_MAX} bytes"
        raise ApiError(ErrorCode.INVALID_REQUEST, why)


def _timeout_s(context: Context) -> float:
    return context.broker.settings[OFFSETS_COMMIT_TIMEOUT_MS] / 1000
