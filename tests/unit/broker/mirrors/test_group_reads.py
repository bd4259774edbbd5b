"""Groups and their offsets are read in old forms and new ones, and many in one request."""

from collections import Counter
from pathlib import Path

import pytest

from support.mirror_bench import mirror_bench
from support.scripted_source import NODE, ScriptedSource, scripted_source
from twinlog.broker.mirrors.group_reads import (
    GROUPS_PER_REQUEST_MAX,
    GroupAtSource,
    consumer_groups,
    offsets_of_groups,
)
from twinlog.mirroring.group_sync import SourceOffset
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import BrokerId, LeaderEpoch, Offset, TopicName, TopicPartition
from twinlog.network.addresses import Address
from twinlog.network.peer_metadata import PeerNode
from twinlog.wire.messages.group_offsets import (
    OFFSET_FETCH,
    OffsetFetchedGroup,
    OffsetFetchedPartition,
    OffsetFetchedPartitions,
    OffsetFetchedTopic,
    OffsetFetchedTopics,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from twinlog.wire.messages.groups import (
    FIND_COORDINATOR,
    LIST_GROUPS,
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListedGroup,
    ListGroupsResponse,
)

OF = TopicPartition(TopicName("t"), 0)
UNTOLD = TopicPartition(TopicName("t"), 1)
ELSEWHERE = 99
FOUND = GroupAtSource({OF: SourceOffset(Offset(5), LeaderEpoch(2), "m")}, {UNTOLD})


async def test_groups_of_other_protocols_are_not_consumer_groups(tmp_path: Path) -> None:
    async with scripted_source() as source, mirror_bench(tmp_path, source.address) as bench:
        groups = tuple(
            ListedGroup(group_id=name, protocol_type=kind)
            for name, kind in (("a", "consumer"), ("b", ""), ("c", "connect"))
        )
        source.on(LIST_GROUPS, lambda *_: ListGroupsResponse(groups=groups))
        await bench.source.peers.refresh(())
        assert await consumer_groups(bench.source) == ({"a", "b"}, [])


async def test_a_broker_that_cannot_be_asked_hides_no_other_s_groups(tmp_path: Path) -> None:
    async with scripted_source() as source, mirror_bench(tmp_path, source.address) as bench:
        group = ListedGroup(group_id="a", protocol_type="consumer")
        source.on(LIST_GROUPS, lambda *_: ListGroupsResponse(groups=(group,)))
        peers = bench.source.peers
        await peers.refresh(())
        peers.metadata.learn_node(PeerNode(BrokerId(ELSEWHERE), Address("127.0.0.1", 1)))
        groups, failures = await consumer_groups(bench.source)
        assert groups == {"a"}
        assert len(failures) == 1
        assert "127.0.0.1:1" in failures[0]
        # It is gone for good: the source's metadata has it no more, and nobody asks it again.
        assert await consumer_groups(bench.source) == ({"a"}, [])


async def test_where_no_broker_tells_its_groups_that_is_raised(tmp_path: Path) -> None:
    async with scripted_source() as source, mirror_bench(tmp_path, source.address) as bench:
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        source.on(LIST_GROUPS, lambda *_: ListGroupsResponse(error_code=loading, groups=()))
        await bench.source.peers.refresh(())
        with pytest.raises(ApiError) as refused:
            await consumer_groups(bench.source)
        assert refused.value.code == loading


class Coordinating:
    """What the source answers of groups: where they live, and what they have committed."""

    def __init__(self, source: ScriptedSource, errors: dict[str, int] | None = None) -> None:
        self.errors = errors or {}
        self.asked: Counter[str] = Counter()
        self._source = source
        source.on(FIND_COORDINATOR, self._find)
        source.on(OFFSET_FETCH, self._fetch)

    def _find(self, request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
        self.asked["coordinators"] += 1
        address = self._source.address
        return FindCoordinatorResponse(
            node_id=NODE,
            host=address.host,
            port=address.port,
            coordinators=tuple(
                Coordinator(
                    key=key,
                    node_id=ELSEWHERE if key.startswith("dark") else NODE,
                    host=address.host,
                    port=1 if key.startswith("dark") else address.port,
                    error_code=15 if key == "homeless" else 0,
                )
                for key in request.coordinator_keys
            ),
        )

    def _fetch(self, request: OffsetFetchRequest, version: int) -> OffsetFetchResponse:
        self.asked["offsets"] += 1
        if version < 8:
            assert request.topics is None
            old = (
                OffsetFetchedPartition(
                    partition_index=0, committed_offset=5, committed_leader_epoch=2, metadata="m"
                ),
                OffsetFetchedPartition(partition_index=1, committed_offset=-1, error_code=29),
            )
            return OffsetFetchResponse(topics=(OffsetFetchedTopic(name="t", partitions=old),))
        new = (
            OffsetFetchedPartitions(
                partition_index=0, committed_offset=5, committed_leader_epoch=2, metadata="m"
            ),
            OffsetFetchedPartitions(partition_index=1, committed_offset=-1, error_code=29),
        )
        return OffsetFetchResponse(
            groups=tuple(
                OffsetFetchedGroup(
                    group_id=group.group_id,
                    topics=(OffsetFetchedTopics(name="t", partitions=new),),
                    error_code=self.errors.get(group.group_id, 0),
                )
                for group in request.groups
                if group.group_id != "forgotten"
            )
        )


@pytest.mark.parametrize("version", [5, 8, 10])
async def test_all_offsets_of_each_group_are_read_and_what_is_refused_is_not_absent(
    tmp_path: Path, version: int
) -> None:
    ranges = {
        OFFSET_FETCH.key: (min(version, 8), version),
        FIND_COORDINATOR.key: (0, 4 if version >= 8 else 2),
    }
    async with (
        scripted_source(ranges=ranges) as source,
        mirror_bench(tmp_path, source.address) as bench,
    ):
        coordinating = Coordinating(source)
        await bench.source.peers.refresh(())
        assert await offsets_of_groups(bench.source, ["g", "h"]) == {"g": FOUND, "h": FOUND}
        at_once = version >= 8
        assert coordinating.asked == {
            "coordinators": 1 if at_once else 2,
            "offsets": 1 if at_once else 2,
        }


async def test_of_many_groups_a_request_holds_a_hundred(tmp_path: Path) -> None:
    async with scripted_source() as source, mirror_bench(tmp_path, source.address) as bench:
        coordinating = Coordinating(source)
        await bench.source.peers.refresh(())
        names = [f"group {number}" for number in range(2 * GROUPS_PER_REQUEST_MAX + 1)]
        found = await offsets_of_groups(bench.source, names)
        assert list(found) == names
        assert coordinating.asked == {"coordinators": 1, "offsets": 3}


async def test_a_group_that_cannot_be_read_holds_up_no_other(tmp_path: Path) -> None:
    async with scripted_source() as source, mirror_bench(tmp_path, source.address) as bench:
        Coordinating(source, {"gone": ErrorCode.GROUP_ID_NOT_FOUND, "hidden": 30})
        await bench.source.peers.refresh(())
        names = ["good", "gone", "hidden", "homeless", "dark", "forgotten"]
        found = await offsets_of_groups(bench.source, names)
        assert found["good"] == FOUND
        assert found["gone"] == GroupAtSource()
        told = {name: str(error) for name, error in found.items() if isinstance(error, ApiError)}
        assert set(told) == {"hidden", "homeless", "dark", "forgotten"}
        assert "User:ANONYMOUS needs Describe on group hidden" in told["hidden"]
        assert "coordinator of group homeless: COORDINATOR_NOT_AVAILABLE" in told["homeless"]
        assert "COORDINATOR_NOT_AVAILABLE" in told["dark"]
        assert "offsets of group forgotten: not told" in told["forgotten"]


async def test_what_the_source_tells_of_groups_nobody_asked_for_is_passed_over(
    tmp_path: Path,
) -> None:
    async with scripted_source() as source, mirror_bench(tmp_path, source.address) as bench:
        Coordinating(source)
        excluded = OffsetFetchedGroup(group_id="excluded", topics=())
        source.on(OFFSET_FETCH, lambda *_: OffsetFetchResponse(groups=(excluded,)))
        await bench.source.peers.refresh(())
        assert set(await offsets_of_groups(bench.source, ["a"])) == {"a"}
