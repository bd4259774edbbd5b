import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.brokers import LocalBroker, local_broker
from twinlog.model.errors import ErrorCode
from twinlog.network.client import BrokerConnection
from twinlog.wire.messages.groups import (
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_GROUPS,
    SYNC_GROUP,
    DeleteGroupsRequest,
    DescribedGroup,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupProtocol,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeavingMember,
    ListGroupsRequest,
    SyncGroupAssignment,
    SyncGroupRequest,
)

LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[LocalBroker]:
    async with local_broker(tmp_path, {"offsets.topic.num.partitions": "2"}) as found:
        yield found


async def find(broker: LocalBroker, group_id: str = "g") -> None:
    """Find the coordinator, and wait until it has loaded."""
    await broker.ask(FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=(group_id,)))
    async with asyncio.timeout(60):
        while (await describe(broker, group_id)).error_code == LOADING:
            pass


async def join(
    broker: LocalBroker,
    version: int,
    *,
    member_id: str = "",
    group_id: str = "g",
    instance_id: str | None = None,
) -> JoinGroupResponse:
    request = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=120_000,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type="consumer",
        protocols=(JoinGroupProtocol(name="range", metadata=b"meta"),),
    )
    return await broker.ask(JOIN_GROUP, request, version)


async def describe(broker: LocalBroker, group_id: str = "g", version: int = 6) -> DescribedGroup:
    answer = await broker.ask(DESCRIBE_GROUPS, DescribeGroupsRequest(groups=(group_id,)), version)
    return answer.groups[0]


async def a_stable_member(broker: LocalBroker) -> str:
    await find(broker)
    joined = await join(broker, 3)
    request = SyncGroupRequest(
        group_id="g",
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=(SyncGroupAssignment(member_id=joined.member_id, assignment=b"part"),),
    )
    synced = await broker.ask(SYNC_GROUP, request)
    assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, b"part")
    return joined.member_id


@pytest.mark.parametrize("version", range(7))
async def test_the_coordinator_is_found_in_every_version(broker: LocalBroker, version: int) -> None:
    request = FindCoordinatorRequest(key="g", coordinator_keys=("g", "h"))
    answer = await broker.ask(FIND_COORDINATOR, request, version)
    if version < 4:
        assert (answer.error_code, answer.node_id, answer.port) == (0, 1, broker.address.port)
    else:
        assert [(c.key, c.node_id) for c in answer.coordinators] == [("g", 1), ("h", 1)]
        assert {c.port for c in answer.coordinators} == {broker.address.port}


@pytest.mark.parametrize(
    ("key_type", "error"),
    [
        (1, ErrorCode.NONE),
        (2, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (9, ErrorCode.INVALID_REQUEST),
    ],
)
async def test_other_kinds_of_coordinators_are_named_or_refused(
    broker: LocalBroker, key_type: int, error: ErrorCode
) -> None:
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=("k",))
    (one,) = (await broker.ask(FIND_COORDINATOR, request)).coordinators
    assert one.error_code == error
    assert one.node_id == (1 if error is ErrorCode.NONE else -1)


@pytest.mark.parametrize("version", range(10))
async def test_before_anybody_asked_for_it_there_is_no_coordinator(
    broker: LocalBroker, version: int
) -> None:
    told = await join(broker, version, member_id="m")
    assert (told.error_code, told.member_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, "m")
    gone = ErrorCode.COORDINATOR_NOT_AVAILABLE
    sync = SyncGroupRequest(group_id="g", generation_id=1, member_id="m", assignments=())
    assert (await broker.ask(SYNC_GROUP, sync, min(version, 5))).error_code == gone
    beat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    assert (await broker.ask(HEARTBEAT, beat, min(version, 4))).error_code == gone
    leave = LeaveGroupRequest(group_id="g", member_id="m")
    assert (await broker.ask(LEAVE_GROUP, leave, min(version, 5))).error_code == gone
    assert (await describe(broker, "g", min(version, 6))).error_code == gone


@pytest.mark.parametrize("version", range(10))
async def test_a_member_joins_in_every_version(broker: LocalBroker, version: int) -> None:
    await find(broker)
    joined = await join(broker, version)
    if version >= 4:
        assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert joined.protocol_name == (None if version >= 7 else "")
        joined = await join(broker, version, member_id=joined.member_id)
    assert (joined.error_code, joined.generation_id) == (ErrorCode.NONE, 1)
    assert joined.leader == joined.member_id
    assert joined.member_id.startswith("test-")
    assert [member.metadata for member in joined.members] == [b"meta"]


async def test_an_empty_group_id_is_refused(broker: LocalBroker) -> None:
    assert (await join(broker, 9, group_id="")).error_code == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"group_id": "g" * 20_000}, ErrorCode.INVALID_GROUP_ID),
        ({"instance_id": "i" * 20_000}, ErrorCode.INVALID_REQUEST),
    ],
)
async def test_names_too_long_to_be_written_are_refused(
    broker: LocalBroker, more: dict[str, str], error: ErrorCode
) -> None:
    await find(broker)
    assert (await join(broker, 9, **more)).error_code == error


async def test_a_static_member_that_comes_back_keeps_its_generation(broker: LocalBroker) -> None:
    await find(broker)
    first = await join(broker, 5, instance_id="one")
    request = SyncGroupRequest(
        group_id="g",
        generation_id=1,
        member_id=first.member_id,
        group_instance_id="one",
        assignments=(),
    )
    await broker.ask(SYNC_GROUP, request)
    again = await join(broker, 9, instance_id="one")
    assert (again.error_code, again.generation_id) == (ErrorCode.NONE, 1)
    assert again.skip_assignment
    assert again.member_id != first.member_id
    beat = HeartbeatRequest(
        group_id="g", generation_id=1, member_id=first.member_id, group_instance_id="one"
    )
    assert (await broker.ask(HEARTBEAT, beat)).error_code == ErrorCode.FENCED_INSTANCE_ID


async def test_a_member_beats_and_leaves(broker: LocalBroker) -> None:
    member_id = await a_stable_member(broker)
    beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=member_id)
    assert (await broker.ask(HEARTBEAT, beat)).error_code == ErrorCode.NONE
    leave = LeaveGroupRequest(group_id="g", member_id=member_id)
    assert (await broker.ask(LEAVE_GROUP, leave, 2)).error_code == ErrorCode.NONE
    assert (await broker.ask(LEAVE_GROUP, leave, 2)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert (await broker.ask(HEARTBEAT, beat)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_several_leave_at_once_and_each_is_answered(broker: LocalBroker) -> None:
    member_id = await a_stable_member(broker)
    leaving = (LeavingMember(member_id=member_id), LeavingMember(member_id="nobody"))
    answer = await broker.ask(LEAVE_GROUP, LeaveGroupRequest(group_id="g", members=leaving), 5)
    assert answer.error_code == ErrorCode.NONE
    assert [(left.member_id, left.error_code) for left in answer.members] == [
        (member_id, ErrorCode.NONE),
        ("nobody", ErrorCode.UNKNOWN_MEMBER_ID),
    ]


async def test_a_group_is_described_and_listed(broker: LocalBroker) -> None:
    member_id = await a_stable_member(broker)
    described = await describe(broker)
    assert (described.group_state, described.protocol_data) == ("Stable", "range")
    (member,) = described.members
    assert (member.member_id, member.client_id) == (member_id, "test")
    assert (member.client_host, member.member_assignment) == ("/127.0.0.1", b"part")
    listed = await broker.ask(LIST_GROUPS, ListGroupsRequest())
    assert [(g.group_id, g.group_state, g.group_type) for g in listed.groups] == [
        ("g", "Stable", "Classic")
    ]


@pytest.mark.parametrize(
    ("states", "types", "count"),
    [((), (), 1), (("stable",), (), 1), (("Empty",), (), 0), ((), ("consumer",), 0)],
)
async def test_groups_are_listed_by_state_and_type(
    broker: LocalBroker, states: tuple[str, ...], types: tuple[str, ...], count: int
) -> None:
    await a_stable_member(broker)
    request = ListGroupsRequest(states_filter=states, types_filter=types)
    assert len((await broker.ask(LIST_GROUPS, request)).groups) == count


async def test_a_group_that_is_not_there_is_dead_and_since_v6_not_found(
    broker: LocalBroker,
) -> None:
    await find(broker)
    old = await describe(broker, "none", 5)
    assert (old.error_code, old.group_state) == (ErrorCode.NONE, "Dead")
    new = await describe(broker, "none", 6)
    assert (new.error_code, new.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert new.error_message == "there is no group none"


async def test_a_group_is_deleted_once_its_members_are_gone(broker: LocalBroker) -> None:
    member_id = await a_stable_member(broker)

    async def delete() -> int:
        request = DeleteGroupsRequest(groups_names=("g",))
        return (await broker.ask(DELETE_GROUPS, request)).results[0].error_code

    assert await delete() == ErrorCode.NON_EMPTY_GROUP
    leave = LeaveGroupRequest(group_id="g", members=(LeavingMember(member_id=member_id),))
    await broker.ask(LEAVE_GROUP, leave)
    assert await delete() == ErrorCode.NONE
    assert await delete() == ErrorCode.GROUP_ID_NOT_FOUND


async def test_a_member_that_waits_does_not_hold_up_a_stop(tmp_path: Path) -> None:
    settings = {
        "offsets.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "600000",
    }
    async with (
        asyncio.timeout(300),
        asyncio.TaskGroup() as tasks,
        local_broker(tmp_path, settings) as broker,
    ):
        await find(broker)
        waiting = tasks.create_task(join(broker, 3))
        while (await describe_elsewhere(broker)).group_state != "PreparingRebalance":
            pass
        broker.server.stop()
        assert (await waiting).error_code == ErrorCode.NOT_COORDINATOR


async def describe_elsewhere(broker: LocalBroker) -> DescribedGroup:
    """Describe the group over a connection of its own: the first one is busy with a join."""
    connection = await BrokerConnection.open(broker.address, "other", timeout_s=60)
    try:
        request = DescribeGroupsRequest(groups=("g",))
        return (await connection.call(DESCRIBE_GROUPS, request, timeout_s=60)).groups[0]
    finally:
        await connection.close()
