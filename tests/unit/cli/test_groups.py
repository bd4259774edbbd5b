"""The verbs of groups: what is asked, what is printed, exit codes."""

import pytest

from support.answering_broker import AnsweringBroker
from support.commands import Ran, run_command
from twinlog.wire.messages import group_offsets, groups
from twinlog.wire.records.build import build_batch, records_of_pairs


def groups_command(broker: AnsweringBroker, *arguments: str) -> Ran:
    return run_command(["groups", "--bootstrap-server", broker.bootstrap, *arguments])


def with_groups(broker: AnsweringBroker, states: dict[str, str]) -> None:
    """Let there be groups in these states."""
    listed = tuple(
        groups.ListedGroup(group_id=name, protocol_type="consumer", group_state=state)
        for name, state in states.items()
    )

    def described(request: groups.DescribeGroupsRequest) -> groups.DescribeGroupsResponse:
        name = request.groups[0]
        state = states.get(name, "Dead")
        group = groups.DescribedGroup(
            error_code=0 if name in states else 69,
            group_id=name,
            group_state=state,
            protocol_type="consumer",
            protocol_data="",
            members=(),
        )
        return groups.DescribeGroupsResponse(groups=(group,))

    broker.on(groups.LIST_GROUPS, groups.ListGroupsResponse(groups=listed))
    broker.on(groups.DESCRIBE_GROUPS, described)
    with_offsets(broker, {})


def with_offsets(broker: AnsweringBroker, offsets: dict[int, int]) -> None:
    """Let every group have committed these offsets of topic a."""
    rows = tuple(
        group_offsets.OffsetFetchedPartitions(partition_index=p, committed_offset=o)
        for p, o in offsets.items()
    )
    topics = (group_offsets.OffsetFetchedTopics(name="a", partitions=rows),) if rows else ()
    group = group_offsets.OffsetFetchedGroup(group_id="g", topics=topics)
    broker.on(group_offsets.OFFSET_FETCH, group_offsets.OffsetFetchResponse(groups=(group,)))


def with_records(broker: AnsweringBroker, count: int) -> None:
    records = records_of_pairs([(None, b"v")] * count, timestamp_ms=5)
    broker.logs["a", 0] = build_batch(records)


def test_list(broker: AnsweringBroker) -> None:
    with_groups(broker, {"b": "Empty", "a": "Stable"})
    assert groups_command(broker, "--list").out == "a\nb\n"
    states = groups_command(broker, "--list", "--state").out
    assert [line.split() for line in states.splitlines()] == [
        ["GROUP", "STATE"],
        ["a", "Stable"],
        ["b", "Empty"],
    ]


def test_describe_shows_offsets_and_lag(broker: AnsweringBroker) -> None:
    with_groups(broker, {"g": "Empty"})
    with_records(broker, 7)
    with_offsets(broker, {0: 3})
    ran = groups_command(broker, "--describe", "--group", "g")
    assert ran.code == 0
    assert ran.err == "\nConsumer group 'g' has no active members.\n"
    assert ran.out.splitlines()[2].split() == ["g", "a", "0", "3", "7", "4", "-", "-", "-"]


def test_offsets_of_a_topic_that_is_gone_have_no_end(broker: AnsweringBroker) -> None:
    with_groups(broker, {"g": "Empty"})
    with_offsets(broker, {0: 3})
    ran = groups_command(broker, "--describe", "--group", "g")
    assert ran.code == 0
    assert ran.out.splitlines()[2].split() == ["g", "a", "0", "3", "-", "-", "-", "-", "-"]


def test_describe_of_states_and_members(broker: AnsweringBroker) -> None:
    with_groups(broker, {"g": "Empty"})
    ran = groups_command(broker, "--describe", "--all-groups", "--state")
    assert f"{broker.bootstrap} (5)" in ran.out
    assert "Empty" in ran.out
    ran = groups_command(broker, "--describe", "--group", "g", "--members")
    assert ran.out.splitlines()[1].split()[-1] == "#PARTITIONS"


def test_a_group_that_is_not_there_is_code_1(broker: AnsweringBroker) -> None:
    with_groups(broker, {})
    ran = groups_command(broker, "--describe", "--group", "x")
    assert (ran.code, ran.out) == (1, "")
    assert "there is no group x (GROUP_ID_NOT_FOUND). See which groups there are" in ran.err


def test_delete_tells_each_group(broker: AnsweringBroker) -> None:
    def deleted(request: groups.DeleteGroupsRequest) -> groups.DeleteGroupsResponse:
        name = request.groups_names[0]
        row = groups.DeletedGroup(group_id=name, error_code=68 if name == "busy" else 0)
        return groups.DeleteGroupsResponse(results=(row,))

    broker.on(groups.DELETE_GROUPS, deleted)
    ran = groups_command(broker, "--delete", "--group", "g", "--group", "busy")
    assert ran.code == 1
    assert ran.out == "Deletion of requested consumer groups ('g') was successful.\n"
    assert ran.err == (
        "group busy was not deleted: NON_EMPTY_GROUP. Stop the members of the group first.\n"
    )


@pytest.mark.parametrize("verb", ["--describe", "--delete", "--reset-offsets"])
def test_a_group_must_be_named(broker: AnsweringBroker, verb: str) -> None:
    ran = groups_command(broker, verb)
    assert ran.code == 2
    assert f"{verb} needs --group ID or --all-groups" in ran.err


def committed(broker: AnsweringBroker) -> list[tuple[int, int]]:
    return [
        (partition.partition_index, partition.committed_offset)
        for request in broker.asked_for(group_offsets.OffsetCommitRequest)
        for topic in request.topics
        for partition in topic.partitions
    ]


def test_a_reset_is_only_told_until_it_is_executed(broker: AnsweringBroker) -> None:
    with_groups(broker, {"g": "Empty"})
    with_records(broker, 7)
    row = group_offsets.OffsetCommittedPartition(partition_index=0)
    topic = group_offsets.OffsetCommittedTopic(name="a", partitions=(row,))
    broker.on(group_offsets.OFFSET_COMMIT, group_offsets.OffsetCommitResponse(topics=(topic,)))
    arguments = ("--reset-offsets", "--group", "g", "--topic", "a", "--to-offset", "4")
    ran = groups_command(broker, *arguments)
    assert ran.out.splitlines()[1].split() == ["g", "a", "0", "4"]
    assert ran.err == "Nothing was changed: pass --execute to do it.\n"
    assert committed(broker) == []
    ran = groups_command(broker, *arguments, "--execute")
    assert (ran.code, ran.err) == (0, "")
    assert committed(broker) == [(0, 4)]


def test_a_group_with_members_is_not_reset(broker: AnsweringBroker) -> None:
    with_groups(broker, {"g": "Stable"})
    ran = groups_command(
        broker, "--reset-offsets", "--group", "g", "--topic", "a", "--to-latest", "--execute"
    )
    assert ran.code == 1
    assert "but g is Stable: stop its members first" in ran.err
