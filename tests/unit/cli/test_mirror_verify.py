"""--verify against two brokers: what is compared, what is found, what cannot be compared."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.answering_broker import AnsweringBroker, answering_broker
from support.batches import batch
from support.commands import Ran, run_command
from twinlog.cli import log_reading
from twinlog.cli.log_reading import Bounds
from twinlog.cli.mirror_tables import PartitionRow
from twinlog.cli.mirror_verify import Task, plan_task
from twinlog.wire.messages import configs, fetch, mirrors
from twinlog.wire.messages.mirrors import (
    DescribedMirror,
    DescribedMirrorPartition,
    DescribedMirrorTopic,
    ListedMirror,
)


@pytest.fixture(autouse=True)
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_reading, "RETRY_DELAY_S", 0)


@pytest.fixture
def source() -> Iterator[AnsweringBroker]:
    with answering_broker() as running:
        yield running


@pytest.fixture
def mirrored(source: AnsweringBroker, broker: AnsweringBroker) -> AnsweringBroker:
    """Give the destination of mirror m with topic orders, level with its source."""
    listed = ListedMirror(
        mirror_name="m", source_bootstrap=source.bootstrap, topic_names=("orders",)
    )
    broker.on(mirrors.LIST_CLUSTER_MIRRORS, mirrors.ListClusterMirrorsResponse(mirrors=(listed,)))
    states(broker, "MIRRORING", "MIRRORING")
    for each in (source, broker):
        each.logs["orders", 1] = b""
        for count in (3, 1, 2):
            each.append("orders", 0, batch(count))
    return broker


def states(broker: AnsweringBroker, *each: str, **fields: Any) -> None:
    partitions = tuple(
        DescribedMirrorPartition(partition_index=number, state_value=state, **fields)
        for number, state in enumerate(each)
    )
    topic = DescribedMirrorTopic(topic_name="orders", partitions=partitions)
    answer = mirrors.DescribeClusterMirrorsResponse(
        mirrors=(DescribedMirror(mirror_name="m", topics=(topic,)),)
    )
    broker.on(mirrors.DESCRIBE_CLUSTER_MIRRORS, answer)


def verify(broker: AnsweringBroker, *more: str) -> Ran:
    at = ["--bootstrap-server", broker.bootstrap, "--mirror", "m"]
    return run_command(["mirrors", *at, "--verify", *more])


def told(broker: AnsweringBroker) -> list[dict[str, Any]]:
    partitions: list[dict[str, Any]] = json.loads(verify(broker, "--json").out)["partitions"]
    return partitions


def test_equal_logs_are_code_0(mirrored: AnsweringBroker) -> None:
    ran = verify(mirrored)
    assert (ran.code, ran.err) == (0, "")
    lines = [line.split() for line in ran.out.splitlines()]
    assert lines[1][:5] == ["orders", "0", "0", "6", "3"]
    assert lines[2][:5] == ["orders", "1", "0", "0", "0"]
    assert ran.out.endswith("2 partition(s) equal, 0 different, 0 not compared\n")


def test_what_the_source_has_beyond_the_mirror_is_no_difference(
    source: AnsweringBroker, mirrored: AnsweringBroker
) -> None:
    source.append("orders", 0, batch(5))
    assert verify(mirrored).code == 0


def test_a_flipped_byte_at_the_destination_is_code_1_with_its_offset(
    mirrored: AnsweringBroker,
) -> None:
    spoilt = bytearray(mirrored.logs["orders", 0])
    spoilt[-1] ^= 1
    mirrored.logs["orders", 0] = bytes(spoilt)
    ran = verify(mirrored)
    assert ran.code == 1
    assert "orders-0 at offset 4: corrupt at the destination (source has 4-5 epoch 0" in ran.out
    found = told(mirrored)[0]
    assert (found["result"], found["equalUpTo"]) == ("DIFFERENT", 4)


def test_a_destination_beyond_its_source_has_extra_batches(mirrored: AnsweringBroker) -> None:
    mirrored.append("orders", 0, batch(2))
    (difference,) = told(mirrored)[0]["differences"]
    assert (difference["offset"], difference["what"]) == (6, ["extra"])


def test_what_was_written_here_after_the_stop_is_not_compared(mirrored: AnsweringBroker) -> None:
    states(mirrored, "STOPPED", "STOPPED", last_mirror_offset=6)
    mirrored.append("orders", 0, batch(2))
    assert verify(mirrored).code == 0


def test_a_copy_that_was_cut_after_the_stop_is_different(mirrored: AnsweringBroker) -> None:
    states(mirrored, "STOPPED", "STOPPED", last_mirror_offset=6)
    mirrored.logs["orders", 0] = mirrored.logs["orders", 0][: len(batch(3)) + len(batch(1))]
    found = told(mirrored)[0]
    assert (found["result"], found["equalUpTo"], found["mirroredEnd"]) == ("DIFFERENT", 4, 6)
    assert found["differences"][0]["what"] == ["missing"]


def test_a_topic_that_the_source_lost_is_not_compared_and_code_1(
    source: AnsweringBroker, mirrored: AnsweringBroker
) -> None:
    del source.logs["orders", 1]
    ran = verify(mirrored)
    assert ran.code == 1
    assert "orders-1 was not compared: at the source: there is no orders-1" in ran.out
    assert ran.out.endswith("1 partition(s) equal, 0 different, 1 not compared\n")


def test_a_partition_that_is_not_here_yet_is_not_equal_unless_it_was_stopped(
    source: AnsweringBroker, mirrored: AnsweringBroker
) -> None:
    source.logs["orders", 2] = b""
    ran = verify(mirrored)
    assert ran.code == 1
    assert "orders-2 was not compared: the source has this partition, and it is not" in ran.out
    states(mirrored, "STOPPED", "STOPPED", last_mirror_offset=0)
    assert verify(mirrored).code == 0


def test_retention_while_it_compares_is_told_and_no_difference(
    source: AnsweringBroker, mirrored: AnsweringBroker
) -> None:
    kept = source.logs["orders", 0]
    first = batch(3)

    def answer(request: fetch.FetchRequest) -> fetch.FetchResponse:
        source.logs["orders", 0] = kept[len(first) :]
        return source._fetch(request)

    source.on(fetch.FETCH, answer)
    ran = verify(mirrored)
    assert ran.code == 0, ran.out
    assert "orders-0 offsets 0 to 2 were deleted before they could be compared" in ran.out


def test_a_source_that_cannot_be_read_is_told_per_partition(
    source: AnsweringBroker, mirrored: AnsweringBroker
) -> None:
    partition = fetch.FetchedPartition(partition_index=0, error_code=29, high_watermark=-1)
    topic = fetch.FetchedTopic(topic="orders", partitions=(partition,))
    source.on(fetch.FETCH, fetch.FetchResponse(topics=(topic,)))
    ran = verify(mirrored)
    assert ran.code == 1
    assert "orders-0 was not compared to its end: at the source: offset 0 cannot be" in ran.out
    assert told(mirrored)[1]["result"] == "EQUAL"


def test_an_offset_out_of_range_inside_the_log_is_told(
    source: AnsweringBroker, mirrored: AnsweringBroker
) -> None:
    partition = fetch.FetchedPartition(partition_index=0, error_code=1, high_watermark=-1)
    topic = fetch.FetchedTopic(topic="orders", partitions=(partition,))
    source.on(fetch.FETCH, fetch.FetchResponse(topics=(topic,)))
    assert told(mirrored)[0]["why"] == (
        "at the source: offset 0 is not there; its log has 0 up to 6"
    )


def test_only_the_topics_that_are_meant_are_asked_for(mirrored: AnsweringBroker) -> None:
    assert verify(mirrored, "--topics", "ord.*").code == 0
    asked = mirrored.asked_for(mirrors.DescribeClusterMirrorsRequest)[-1]
    assert [topic.topic_name for topic in asked.topics] == ["orders"]
    ran = verify(mirrored, "--topics", "none")
    assert ran.code == 1
    assert "no topic of mirror m matches none" in ran.err


def test_a_source_that_is_away_is_code_1(mirrored: AnsweringBroker, tmp_path: Path) -> None:
    file = tmp_path / "source.properties"
    file.write_text("bootstrap.servers=127.0.0.1:1\n")
    ran = verify(mirrored, "--source-command-config", str(file))
    assert ran.code == 1
    assert "no broker can be reached at 127.0.0.1:1" in ran.err


def test_a_difference_of_a_compacted_topic_is_explained_where_the_source_tells(
    source: AnsweringBroker, mirrored: AnsweringBroker
) -> None:
    mirrored.append("orders", 0, batch(2))
    assert told(mirrored)[0]["note"] is None
    policy = configs.DescribedConfig(name="cleanup.policy", value="compact,delete")
    resource = configs.DescribedResource(resource_type=2, resource_name="orders", configs=(policy,))
    source.on(configs.DESCRIBE_CONFIGS, configs.DescribeConfigsResponse(results=(resource,)))
    ran = verify(mirrored)
    assert ran.code == 1
    assert "orders-0: the source compacts this topic; what it has cleaned since" in ran.out
    assert told(mirrored)[1]["note"] is None


def test_a_difference_of_a_failed_partition_is_told_with_its_cause(
    mirrored: AnsweringBroker,
) -> None:
    mirrored.append("orders", 0, batch(2))
    states(mirrored, "FAILED", "MIRRORING", error_message="topic orders was created again")
    ran = verify(mirrored)
    assert ran.code == 1
    assert "orders-0: FAILED, topic orders was created again" in ran.out
    assert "orders-1: " not in ran.out


def row(state: str, last_mirror_offset: int | None = None) -> PartitionRow:
    return PartitionRow("m", "t", 0, None, None, state, 0, None, None, last_mirror_offset)


def test_equality_begins_where_both_logs_do_and_ends_where_the_mirror_does() -> None:
    following, stopped, failed = row("MIRRORING", 3), row("STOPPED", 7), row("FAILED")
    assert plan_task(following, Bounds(2, 9), Bounds(4, 20)) == Task("t", 0, 4, 9, 9, 9, 4)
    assert plan_task(stopped, Bounds(2, 9), Bounds(1, 20)) == Task("t", 0, 2, 7, 7, 7, 1)
    assert plan_task(failed, Bounds(0, 9), Bounds(0, 5)) == Task("t", 0, 0, 9, 5, 9, 0)


def test_what_cannot_be_compared_says_why() -> None:
    bounds = Bounds(0, 9)
    assert plan_task(row("PAUSED"), "no leader", bounds) == "at the destination: no leader"
    assert plan_task(row("PAUSED"), bounds, "no leader") == "at the source: no leader"
    assert "does not tell how far" in str(plan_task(row("STOPPED"), bounds, bounds))
    assert "no offset is in both logs: the source's begins at 12" in str(
        plan_task(row("MIRRORING"), bounds, Bounds(12, 20))
    )
