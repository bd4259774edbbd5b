"""Where a reset puts a group: each target, inside the log; and flags that do not fit."""

import pytest

from support.answering_broker import AnsweringBroker
from support.commands import Ran, run_command
from twinlog.wire.messages import group_offsets, groups
from twinlog.wire.records.build import build_batch, records_of_pairs


def asked(broker: AnsweringBroker, *arguments: str) -> Ran:
    given = ["groups", "--bootstrap-server", broker.bootstrap, "--group", "g", *arguments]
    return run_command(given)


def reset(broker: AnsweringBroker, *arguments: str) -> list[list[str]]:
    ran = asked(broker, "--reset-offsets", *arguments)
    assert ran.code == 0, ran.err
    return [line.split() for line in ran.out.splitlines()[1:]]


@pytest.fixture
def filled(broker: AnsweringBroker) -> AnsweringBroker:
    """Give a broker with topic a: offsets 10 to 19 in two batches, of time 1000 and 2000."""
    first = records_of_pairs([(None, b"")] * 5, timestamp_ms=1_000, base_offset=10)
    second = records_of_pairs([(None, b"")] * 5, timestamp_ms=2_000, base_offset=15)
    broker.logs["a", 0] = build_batch(first, base_offset=10) + build_batch(second, base_offset=15)
    broker.logs["a", 1] = b""
    group = groups.DescribedGroup(
        group_id="g",
        group_state="Empty",
        protocol_type="consumer",
        protocol_data="",
        members=(),
    )
    broker.on(groups.DESCRIBE_GROUPS, groups.DescribeGroupsResponse(groups=(group,)))
    row = group_offsets.OffsetFetchedPartitions(partition_index=0, committed_offset=12)
    topic = group_offsets.OffsetFetchedTopics(name="a", partitions=(row,))
    fetched = group_offsets.OffsetFetchedGroup(group_id="g", topics=(topic,))
    broker.on(group_offsets.OFFSET_FETCH, group_offsets.OffsetFetchResponse(groups=(fetched,)))
    return broker


@pytest.mark.parametrize(
    ("target", "offset"),
    [
        (["--to-earliest"], 10),
        (["--to-latest"], 20),
        (["--to-current"], 12),
        (["--to-offset", "17"], 17),
        (["--to-offset", "1"], 10),
        (["--to-offset", "99"], 20),
        (["--shift-by", "3"], 15),
        (["--shift-by", "-3"], 10),
        (["--to-datetime", "1970-01-01T00:00:01.500"], 15),
        (["--to-datetime", "1970-01-01T01:00:01.500+01:00"], 15),
        (["--to-datetime", "2200-01-01T00:00:00.000"], 20),
    ],
    ids=str,
)
def test_a_target_comes_to_an_offset_inside_the_log(
    filled: AnsweringBroker, target: list[str], offset: int
) -> None:
    assert reset(filled, "--topic", "a:0", *target) == [["g", "a", "0", str(offset)]]


def test_a_topic_is_all_its_partitions_and_all_topics_are_those_with_offsets(
    filled: AnsweringBroker,
) -> None:
    assert [row[2] for row in reset(filled, "--topic", "a", "--to-earliest")] == ["0", "1"]
    assert reset(filled, "--all-topics", "--to-earliest") == [["g", "a", "0", "10"]]


def test_a_partition_that_is_not_there_is_named(filled: AnsweringBroker) -> None:
    ran = asked(filled, "--reset-offsets", "--topic", "a:7", "--to-latest")
    assert ran.code == 1
    assert "topic a has no partition 7" in ran.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--reset-offsets", "--topic", "a"], "--reset-offsets needs one of --to-earliest"),
        (["--reset-offsets", "--topic", "a", "--to-latest", "--to-current"], "needs one of"),
        (["--reset-offsets", "--to-latest"], "needs --topic NAME or --all-topics"),
        (["--reset-offsets", "--topic", "a", "--all-topics", "--to-latest"], "needs --topic"),
        (["--describe", "--to-latest"], "--to-latest goes with --reset-offsets only"),
        (["--delete", "--execute"], "--execute goes with --reset-offsets only"),
        (
            ["--reset-offsets", "--topic", "a", "--to-latest", "--execute", "--dry-run"],
            "exclude each other",
        ),
        (
            ["--reset-offsets", "--topic", "a", "--to-datetime", "noon"],
            "--to-datetime noon is not YYYY",
        ),
        (["--reset-offsets", "--topic", "a:x", "--to-latest"], "--topic a:x is not NAME or"),
    ],
    ids=str,
)
def test_flags_that_do_not_fit_are_code_2(
    filled: AnsweringBroker, arguments: list[str], message: str
) -> None:
    ran = asked(filled, *arguments)
    assert ran.code == 2
    assert message in ran.err
