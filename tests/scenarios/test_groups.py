"""What broke for consumer groups elsewhere: offsets during a load, commits during a rebalance."""

import asyncio
from pathlib import Path

import pytest

from support.brokers import LocalBroker, local_broker
from twinlog.broker import led_shards
from twinlog.model.errors import ErrorCode
from twinlog.network.client import BrokerConnection
from twinlog.wire.messages.group_offsets import (
    OFFSET_COMMIT,
    OFFSET_FETCH,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
    OffsetFetchGroup,
    OffsetFetchRequest,
    OffsetFetchTopics,
)
from twinlog.wire.messages.groups import (
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    SYNC_GROUP,
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupProtocol,
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupAssignment,
    SyncGroupRequest,
)

LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
ONE_PARTITION = {"offsets.topic.num.partitions": "1"}
NOTE = "n" * 4_000


async def commit(
    broker: LocalBroker, offset: int, *, generation: int = -1, member_id: str = ""
) -> ErrorCode:
    part = OffsetCommitPartition(
        partition_index=0,
        committed_offset=offset,
        committed_leader_epoch=-1,
        committed_metadata=NOTE,
    )
    request = OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=(OffsetCommitTopic(name="t", partitions=(part,)),),
    )
    answer = await broker.ask(OFFSET_COMMIT, request, 8)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


async def committed(broker: LocalBroker) -> tuple[ErrorCode, int | None]:
    """Give the answer to OffsetFetch: its code, and the offset if there is one."""
    topic = OffsetFetchTopics(name="t", partition_indexes=(0,))
    request = OffsetFetchRequest(groups=(OffsetFetchGroup(group_id="g", topics=(topic,)),))
    (group,) = (await broker.ask(OFFSET_FETCH, request, 9)).groups
    offsets = [part.committed_offset for each in group.topics for part in each.partitions]
    return ErrorCode(group.error_code), offsets[0] if offsets else None


async def find_coordinator(broker: LocalBroker) -> None:
    await broker.ask(FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=("g",)))
    async with asyncio.timeout(60):
        while (await committed(broker))[0] == LOADING:
            pass


async def test_while_the_coordinator_loads_no_group_is_told_that_it_has_no_offset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answered -1 while the group was being loaded, consumers went to the end of the log."""
    async with local_broker(tmp_path, ONE_PARTITION) as broker:
        await broker.make_topic("t")
        await find_coordinator(broker)
        for offset in range(300):
            assert await commit(broker, offset) == ErrorCode.NONE
    monkeypatch.setattr(led_shards, "LOAD_CHUNK_BYTES", 1)  # one commit at a time
    async with local_broker(tmp_path, ONE_PARTITION) as broker:
        answers = [await committed(broker)]
        while answers[-1][0] != ErrorCode.NONE:
            answers.append(await committed(broker))
        assert answers[0][0] == LOADING, "it was over before anybody asked"
        assert set(answers[:-1]) == {(LOADING, None)}
        assert answers[-1] == (ErrorCode.NONE, 299)


async def join(
    connection: BrokerConnection, member_id: str = "", *, version: int = 3
) -> JoinGroupResponse:
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=60_000,
        rebalance_timeout_ms=120_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=(JoinGroupProtocol(name="range", metadata=b""),),
    )
    return await connection.call(JOIN_GROUP, request, timeout_s=120, version=version)


async def sync(broker: LocalBroker, generation: int, member_id: str, *members: str) -> int:
    request = SyncGroupRequest(
        group_id="g",
        generation_id=generation,
        member_id=member_id,
        assignments=tuple(SyncGroupAssignment(member_id=m, assignment=b"p") for m in members),
    )
    return (await broker.ask(SYNC_GROUP, request)).error_code


async def until_heartbeat_says(
    broker: LocalBroker, code: ErrorCode, claim: HeartbeatRequest
) -> None:
    async with asyncio.timeout(60):
        while (await broker.ask(HEARTBEAT, claim)).error_code != code:
            pass


async def test_a_commit_that_meets_a_rebalance_is_answered_at_once(tmp_path: Path) -> None:
    """A commit that overlapped a rebalance hung, and so did the next generation's."""
    async with local_broker(tmp_path, ONE_PARTITION) as broker:
        await broker.make_topic("t")
        await find_coordinator(broker)
        first = await join(broker.connection)
        assert await sync(broker, 1, first.member_id, first.member_id) == ErrorCode.NONE
        other = await broker.another_connection()
        joining = asyncio.ensure_future(join(other))
        beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=first.member_id)
        await until_heartbeat_says(broker, ErrorCode.REBALANCE_IN_PROGRESS, beat)

        # The old generation may still say where it stands; that is what it is asked to do.
        async with asyncio.timeout(60):
            assert await commit(broker, 5, generation=1, member_id=first.member_id) == 0
        again, second = await asyncio.gather(join(broker.connection, first.member_id), joining)
        assert again.generation_id == second.generation_id == 2
        async with asyncio.timeout(60):
            stale = await commit(broker, 6, generation=1, member_id=first.member_id)
            early = await commit(broker, 6, generation=2, member_id=first.member_id)
        assert (stale, early) == (
            ErrorCode.ILLEGAL_GENERATION,
            ErrorCode.REBALANCE_IN_PROGRESS,
        )
        members = (first.member_id, second.member_id)
        assert await sync(broker, 2, first.member_id, *members) == ErrorCode.NONE
        assert await commit(broker, 7, generation=2, member_id=first.member_id) == ErrorCode.NONE
        assert await committed(broker) == (ErrorCode.NONE, 7)
        await other.close()
