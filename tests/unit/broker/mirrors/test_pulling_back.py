"""Groups are pulled back together, and whoever waits for it knows that it is done."""

import asyncio

from support.mirror_bench import Groups
from twinlog.broker.mirrors.pulling_back import PullingBack
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import Offset, TopicName, TopicPartition

PARTITIONS = [TopicPartition(TopicName("t"), number) for number in range(20)]


def groups_at(offset: int) -> Groups:
    groups = Groups()
    for of in PARTITIONS:
        groups.commit("g", of, offset)
    return groups


def offsets_in(groups: Groups) -> set[int]:
    return {groups.offset_of("g", of) for of in PARTITIONS}


async def test_what_is_asked_meanwhile_is_done_together() -> None:
    groups = groups_at(9)
    pulling = PullingBack(groups.run_everywhere)
    await asyncio.gather(*(pulling.pull_back(of, Offset(4)) for of in PARTITIONS))
    assert offsets_in(groups) == {4}
    assert groups.run_count <= 2


async def test_who_came_along_with_a_failure_tries_for_himself() -> None:
    groups = groups_at(9)
    groups.failures.append(ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "away"))
    pulling = PullingBack(groups.run_everywhere)
    asked = (pulling.pull_back(of, Offset(4)) for of in PARTITIONS)
    results = await asyncio.gather(*asked, return_exceptions=True)
    assert sum(isinstance(result, ApiError) for result in results) == 1
    assert offsets_in(groups) == {4}
