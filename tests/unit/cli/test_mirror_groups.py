"""A group's offsets are compared where the mirror holds them, and clamped where it does not."""

import asyncio
from dataclasses import replace

from support.answering_broker import AnsweringBroker, answering_broker
from twinlog.cli.cluster import Cluster
from twinlog.cli.log_reading import Bounds
from twinlog.cli.mirror_groups import GroupChange, changes_of, group_changes
from twinlog.network.addresses import Address
from twinlog.wire.messages import configs, group_offsets, groups

MIRRORED = {("t", 0): Bounds(10, 50), ("t", 1): Bounds(0, 5)}


def test_what_is_in_step_or_not_mirrored_is_no_change() -> None:
    at_source = {("t", 0): 20, ("other", 0): 7}
    assert changes_of("g", at_source, {("t", 0): 20, ("other", 0): 3}, MIRRORED) == []


def test_what_the_mirror_does_not_hold_is_clamped_to_its_ends() -> None:
    above, below = changes_of("g", {("t", 0): 60, ("t", 1): -0}, {("t", 0): 50}, MIRRORED)
    assert above == GroupChange("g", "t", 0, 60, 50, 50)
    assert (above.is_clamped, above.is_out_of_step) == (True, False)
    assert str(above) == "group g on t-0: 60 at the source, 50 here; clamped to 50"
    not_yet = replace(above, here=40)
    assert str(not_yet) == "group g on t-0: 60 at the source, 40 here; a sync would clamp it to 50"
    assert above.as_json()["clampedTo"] == 50
    assert (below.is_clamped, below.is_out_of_step) == (False, True)
    assert str(below) == "group g on t-1: 0 at the source, nothing here"
    assert (below.as_json()["clampedTo"], below.as_json()["destinationOffset"]) == (None, None)
    (lost,) = changes_of("g", {("t", 0): 3}, {("t", 0): 3}, MIRRORED)
    assert (lost.possible, lost.is_clamped, lost.is_out_of_step) == (10, True, True)


def test_what_the_source_does_not_hold_either_is_clamped_there_as_well() -> None:
    there = {("t", 0): Bounds(10, 50), ("t", 1): Bounds(0, 8)}
    at_source = {("t", 0): 60, ("t", 1): 7}
    gone, behind = changes_of("g", at_source, {("t", 0): 50, ("t", 1): 5}, MIRRORED, there)
    assert (gone.possible_at_source, gone.is_loss) == (50, False)
    assert str(gone).endswith("clamped to 50, where the source's own log ends")
    assert (behind.possible_at_source, behind.is_loss) == (7, True)
    assert replace(gone, here=40).is_loss
    assert replace(gone, possible_at_source=None).is_loss


def knows(broker: AnsweringBroker, offsets: dict[str, int]) -> None:
    """Have groups, each with an offset of t-0."""
    listed = tuple(groups.ListedGroup(group_id=name, protocol_type="consumer") for name in offsets)
    broker.on(groups.LIST_GROUPS, groups.ListGroupsResponse(groups=listed))

    def answer(request: group_offsets.OffsetFetchRequest) -> group_offsets.OffsetFetchResponse:
        name = request.groups[0].group_id
        row = group_offsets.OffsetFetchedPartitions(
            partition_index=0, committed_offset=offsets.get(name, -1)
        )
        topic = group_offsets.OffsetFetchedTopics(name="t", partitions=(row,))
        group = group_offsets.OffsetFetchedGroup(group_id=name, topics=(topic,))
        return group_offsets.OffsetFetchResponse(groups=(group,))

    broker.on(group_offsets.OFFSET_FETCH, answer)


def test_only_groups_that_the_mirror_brings_over_are_compared(broker: AnsweringBroker) -> None:
    excluded = configs.DescribedConfig(name="groups.exclude", value="private.*")
    resource = configs.DescribedResource(resource_type=64, resource_name="m", configs=(excluded,))
    broker.on(configs.DESCRIBE_CONFIGS, configs.DescribeConfigsResponse(results=(resource,)))
    knows(broker, {"billing": 20})

    async def run(source: AnsweringBroker) -> list[GroupChange]:
        ends = []
        for each in (broker, source):
            cluster = Cluster(
                (Address("127.0.0.1", each.port),), named_by="it", client_id="t", timeout_ms=5_000
            )
            await cluster.connect()
            await cluster.metadata([])
            ends.append(cluster)
        try:
            return await group_changes(ends[0], ends[1], "m", MIRRORED)
        finally:
            for end in ends:
                await end.close()

    with answering_broker() as source:
        knows(source, {"billing": 30, "private-1": 40})
        assert asyncio.run(run(source)) == [GroupChange("billing", "t", 0, 30, 20, 30)]
