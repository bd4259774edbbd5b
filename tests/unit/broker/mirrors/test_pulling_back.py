"""Groups are pulled back together, and whoever waits for it knows that it is done."""

import asyncio

import pytest

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
    failed = [isinstance(result, ApiError) for result in results]
    assert sum(failed) == 1
    kept = [groups.offset_of("g", of) for of in PARTITIONS]
    assert kept == [9 if is_failed else 4 for is_failed in failed]


async def test_what_failed_and_nobody_waits_for_is_not_done_with_what_comes_later() -> None:
    groups = groups_at(9)
    groups.failures.append(ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "away"))
    pulling = PullingBack(groups.run_everywhere)
    given_up, later = PARTITIONS[:2]
    with pytest.raises(ApiError):
        await pulling.pull_back(given_up, Offset(4))
    await pulling.pull_back(later, Offset(5))
    assert groups.offset_of("g", given_up) == 9
    assert groups.offset_of("g", later) == 5
