"""Printing records: where it begins, when it ends, what a line shows."""

import pytest

from support.answering_broker import AnsweringBroker
from support.commands import Ran, run_command
from twinlog.model.ids import Offset
from twinlog.wire.messages import group_offsets
from twinlog.wire.records.build import build_batch
from twinlog.wire.records.records import Record


def consume(broker: AnsweringBroker, *arguments: str) -> Ran:
    return run_command(
        ["consume", "--bootstrap-server", broker.bootstrap, "--topic", "a", *arguments]
    )


def filled(broker: AnsweringBroker, counts: tuple[int, ...] = (5,)) -> None:
    """Fill the partitions of topic a with records ``<partition>-<offset>``, two to a batch."""
    for partition, count in enumerate(counts):
        broker.logs["a", partition] = b""
        for first in range(0, count, 2):
            some = [
                Record(Offset(i), 1_000 + i, b"k%d" % i, b"%d-%d" % (partition, first + i))
                for i in range(min(2, count - first))
            ]
            broker.append("a", partition, build_batch(some))


def test_from_the_beginning_until_nothing_comes(broker: AnsweringBroker) -> None:
    filled(broker)
    ran = consume(broker, "--from-beginning", "--timeout-ms", "0")
    assert (ran.code, ran.out) == (0, "0-0\n0-1\n0-2\n0-3\n0-4\n")
    assert ran.err == "Processed a total of 5 messages\n"


def test_by_default_only_what_is_new(broker: AnsweringBroker) -> None:
    filled(broker)
    assert consume(broker, "--timeout-ms", "0").out == ""


def test_it_ends_after_so_many(broker: AnsweringBroker) -> None:
    filled(broker, (3, 3))
    ran = consume(broker, "--from-beginning", "--max-messages", "4")
    assert len(ran.out.splitlines()) == 4
    assert ran.err == "Processed a total of 4 messages\n"


def test_one_partition_from_an_offset_in_the_middle_of_a_batch(broker: AnsweringBroker) -> None:
    filled(broker, (5, 5))
    ran = consume(broker, "--partition", "1", "--offset", "3", "--timeout-ms", "0")
    assert ran.out == "1-3\n1-4\n"


def test_a_line_shows_what_is_asked_for(broker: AnsweringBroker) -> None:
    record = Record(Offset(0), 7, None, b"v", (("h", b"1"), ("n", None)))
    broker.logs["a", 0] = build_batch([record])
    shown = ("timestamp", "partition", "offset", "headers", "key")
    flags = [word for part in shown for word in ("--property", f"print.{part}=true")]
    ran = consume(
        broker, "--from-beginning", "--timeout-ms", "0", *flags, "--property", "key.separator=|"
    )
    assert ran.out == "CreateTime:7|Partition:0|Offset:0|h:1,n:null|null|v\n"


def test_without_headers_that_is_said(broker: AnsweringBroker) -> None:
    filled(broker, (1,))
    flags = ["--property", "print.headers=true", "--property", "print.value=false"]
    assert consume(broker, "--from-beginning", "--timeout-ms", "0", *flags).out == "NO_HEADERS\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--offset", "3"], "--offset needs --partition N"),
        (["--partition", "0", "--offset", "x"], "--offset x is not earliest, latest or a number"),
        (["--property", "print.kee=true"], "no property print.kee; there are print.timestamp"),
        (["--property", "x"], "'x' is not key=value"),
        (["--isolation-level", "none"], "invalid choice"),
    ],
    ids=str,
)
def test_flags_that_do_not_fit_are_code_2(
    broker: AnsweringBroker, arguments: list[str], message: str
) -> None:
    ran = consume(broker, *arguments)
    assert ran.code == 2
    assert message in ran.err


def test_what_is_not_there_is_named(broker: AnsweringBroker) -> None:
    ran = consume(broker, "--from-beginning")
    assert ran.code == 1
    assert "topic a cannot be used: UNKNOWN_TOPIC_OR_PARTITION. See which topics" in ran.err
    filled(broker)
    ran = consume(broker, "--partition", "4")
    assert "topic a has no partition 4" in ran.err


def with_group(broker: AnsweringBroker, committed: dict[int, int], error_code: int = 0) -> None:
    """Let a group have committed offsets of topic a, and take new ones."""

    def fetched(_: object) -> group_offsets.OffsetFetchResponse:
        rows = tuple(
            group_offsets.OffsetFetchedPartitions(partition_index=p, committed_offset=o)
            for p, o in committed.items()
        )
        topic = group_offsets.OffsetFetchedTopics(name="a", partitions=rows)
        group = group_offsets.OffsetFetchedGroup(group_id="g", topics=(topic,))
        return group_offsets.OffsetFetchResponse(groups=(group,))

    def commit(request: group_offsets.OffsetCommitRequest) -> group_offsets.OffsetCommitResponse:
        rows = []
        for partition in request.topics[0].partitions:
            committed[partition.partition_index] = partition.committed_offset
            rows.append(
                group_offsets.OffsetCommittedPartition(
                    partition_index=partition.partition_index, error_code=error_code
                )
            )
        topic = group_offsets.OffsetCommittedTopic(name="a", partitions=tuple(rows))
        return group_offsets.OffsetCommitResponse(topics=(topic,))

    broker.on(group_offsets.OFFSET_FETCH, fetched)
    broker.on(group_offsets.OFFSET_COMMIT, commit)


def test_a_group_goes_on_where_it_stood_and_commits_what_was_printed(
    broker: AnsweringBroker,
) -> None:
    filled(broker, (5, 5))
    committed: dict[int, int] = {0: 1}
    with_group(broker, committed)
    first = consume(broker, "--from-beginning", "--group", "g", "--max-messages", "3").out
    rest = consume(broker, "--from-beginning", "--group", "g", "--timeout-ms", "0").out
    seen = (first + rest).splitlines()
    assert len(first.splitlines()) == 3
    assert sorted(seen) == [f"0-{n}" for n in range(1, 5)] + [f"1-{n}" for n in range(5)]
    assert committed == {0: 5, 1: 5}


def test_a_group_with_members_is_left_alone(broker: AnsweringBroker) -> None:
    filled(broker)
    with_group(broker, {}, error_code=25)
    ran = consume(broker, "--from-beginning", "--group", "g", "--timeout-ms", "0")
    assert ran.code == 1
    assert "group g has active members: stop them first" in ran.err
