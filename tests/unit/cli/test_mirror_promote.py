"""--stop --promote: it waits for everything, then stops, then looks whether all is there."""

from collections.abc import Iterator
from typing import Any

import pytest

from support.answering_broker import AnsweringBroker, answering_broker
from support.batches import batch
from support.commands import Ran, run_command
from support.mirror_answers import TOPIC, describes, filters, lists_mirror, partition_of
from twinlog.cli import mirror_promote, mirror_wait
from twinlog.cli.log_reading import Bounds
from twinlog.cli.mirror_promote import Seen, beyond_the_stop
from twinlog.cli.mirror_tables import PartitionRow
from twinlog.wire.messages import configs, group_offsets, groups, mirrors, offsets

MIRRORING = partition_of("MIRRORING")


@pytest.fixture(autouse=True)
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror_promote, "POLL_S", 0)
    monkeypatch.setattr(mirror_wait, "POLL_S", 0)


@pytest.fixture
def source() -> Iterator[AnsweringBroker]:
    with answering_broker() as running:
        running.append(TOPIC, 0, batch(4))
        running.on(groups.LIST_GROUPS, groups.ListGroupsResponse(groups=()))
        running.on(configs.DESCRIBE_CONFIGS, configs.DescribeConfigsResponse(results=()))
        yield running


@pytest.fixture
def mirrored(broker: AnsweringBroker, source: AnsweringBroker) -> AnsweringBroker:
    """Give a destination that is level with its source, and can be stopped."""
    lists_mirror(broker, source)
    broker.append(TOPIC, 0, batch(4))
    broker.on(configs.DESCRIBE_CONFIGS, configs.DescribeConfigsResponse(results=()))
    describes(broker, [MIRRORING])

    def stop(_: Any) -> mirrors.MirrorTopicsResponse:
        describes(broker, [partition_of("STOPPED", last_mirror_offset=4)])
        return mirrors.MirrorTopicsResponse(topics=(mirrors.MirrorTopicResult(topic_name=TOPIC),))

    broker.on(mirrors.STOP_MIRROR_TOPICS, stop)
    return broker


def promote(broker: AnsweringBroker, *more: str) -> Ran:
    at = ["--bootstrap-server", broker.bootstrap, "--mirror", "m"]
    return run_command(["mirrors", *at, "--stop", "--promote", "--topics", TOPIC, *more])


def test_a_level_mirror_is_stopped_and_told(mirrored: AnsweringBroker) -> None:
    ran = promote(mirrored)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "Stopped[orders] topic(s) in mirror m\n"
        "Mirror m: 1 partition(s) in state STOPPED\n"
        "Promoted 1 topic(s) of mirror m: lag 0, groups in step\n"
    )


def test_a_lag_that_does_not_end_is_refused_and_nothing_is_stopped(
    mirrored: AnsweringBroker, source: AnsweringBroker
) -> None:
    source.append(TOPIC, 0, batch(3))
    ran = promote(mirrored, "--timeout-ms", "0")
    assert ran.code == 1
    assert "not promoted: lag 3 after 0 ms. Stop the producers at the source first" in ran.err
    assert mirrored.asked_for(mirrors.StopMirrorTopicsRequest) == []


def test_the_stop_is_decided_by_what_was_seen_at_the_beginning(
    mirrored: AnsweringBroker, source: AnsweringBroker
) -> None:
    listed = mirrors.ListedMirror(
        mirror_name="m", source_bootstrap=source.bootstrap, topic_names=(TOPIC,), state_offset=7
    )
    mirrored.on(mirrors.LIST_CLUSTER_MIRRORS, mirrors.ListClusterMirrorsResponse(mirrors=(listed,)))
    assert promote(mirrored).code == 0
    (asked,) = mirrored.asked_for(mirrors.StopMirrorTopicsRequest)
    assert asked.state_offset == 7


def test_it_waits_for_what_is_still_on_its_way(mirrored: AnsweringBroker) -> None:
    describes(mirrored, [partition_of("LOG_ALIGNMENT")], [MIRRORING])
    assert promote(mirrored).code == 0


def test_a_partition_that_is_not_here_yet_is_waited_for(
    mirrored: AnsweringBroker, source: AnsweringBroker
) -> None:
    source.logs[TOPIC, 1] = b""
    ran = promote(mirrored, "--timeout-ms", "0")
    assert ran.code == 1
    assert "not promoted: lag 0 after 0 ms; orders-1 is not mirrored yet. Stop" in ran.err


@pytest.mark.parametrize("state", ["FAILED", "PAUSED"])
def test_a_partition_that_does_not_follow_is_refused(mirrored: AnsweringBroker, state: str) -> None:
    describes(mirrored, [partition_of(state, error_message="bad batch")])
    ran = promote(mirrored)
    assert ran.code == 1
    assert f"not promoted: orders-0 is {state}: bad batch. Let them go on first" in ran.err
    assert mirrored.asked_for(mirrors.StopMirrorTopicsRequest) == []


def test_a_source_that_is_away_is_refused_with_the_way_out(mirrored: AnsweringBroker) -> None:
    listed = mirrors.ListedMirror(
        mirror_name="m", source_bootstrap="127.0.0.1:1", topic_names=(TOPIC,)
    )
    answer = mirrors.ListClusterMirrorsResponse(mirrors=(listed,))
    mirrored.on(mirrors.LIST_CLUSTER_MIRRORS, answer)
    ran = promote(mirrored)
    assert ran.code == 1
    assert "not promoted: no broker can be reached at 127.0.0.1:1" in ran.err
    assert "If the source is lost, stop without --promote" in ran.err


def test_a_partition_that_the_source_has_no_more_is_refused(
    mirrored: AnsweringBroker, source: AnsweringBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twinlog.cli.log_reading.RETRY_DELAY_S", 0)
    del source.logs[TOPIC, 0]
    ran = promote(mirrored)
    assert ran.code == 1
    assert "not promoted: orders-0 at the source: there is no orders-0" in ran.err


def test_a_topic_that_is_meant_and_not_here_yet_is_refused(
    mirrored: AnsweringBroker, source: AnsweringBroker
) -> None:
    filters(mirrored, topics_include=".*")
    source.logs["bills", 0] = b""
    at = ["--bootstrap-server", mirrored.bootstrap, "--mirror", "m", "--topics", ".*"]
    ran = run_command(["mirrors", *at, "--stop", "--promote"])
    assert ran.code == 1
    assert "not promoted: bills of the source is meant, too, and not mirrored yet" in ran.err
    assert mirrored.asked_for(mirrors.StopMirrorTopicsRequest) == []
    assert promote(mirrored).code == 0, "it is not named"


def test_a_source_that_fails_on_the_way_is_told_with_what_was_done(
    mirrored: AnsweringBroker, source: AnsweringBroker
) -> None:
    def stop(_: Any) -> mirrors.MirrorTopicsResponse:
        source.forget(offsets.LIST_OFFSETS)
        describes(mirrored, [partition_of("STOPPED", last_mirror_offset=4)])
        return mirrors.MirrorTopicsResponse()

    mirrored.on(mirrors.STOP_MIRROR_TOPICS, stop)
    after = promote(mirrored)
    assert after.code == 1
    assert "stopped, with lag 0 a moment before, but whether the source has more by" in after.err
    describes(mirrored, [MIRRORING])
    before = promote(mirrored)
    assert before.code == 1
    assert "not promoted: " in before.err
    assert "Nothing was stopped. If the source is lost, stop without --promote" in before.err


def test_records_written_while_it_was_stopped_are_told(
    mirrored: AnsweringBroker, source: AnsweringBroker
) -> None:
    def stop(_: Any) -> mirrors.MirrorTopicsResponse:
        source.append(TOPIC, 0, batch(2))
        describes(mirrored, [partition_of("STOPPED", last_mirror_offset=4)])
        return mirrors.MirrorTopicsResponse()

    mirrored.on(mirrors.STOP_MIRROR_TOPICS, stop)
    ran = promote(mirrored)
    assert ran.code == 1
    assert "orders-0: the source has 2 record(s) more, from offset 4 on" in ran.err


def test_a_group_that_does_not_come_into_step_is_named_and_stops_nothing_for_ever(
    mirrored: AnsweringBroker, source: AnsweringBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror_promote, "SYNC_WAIT_MS", 0)
    listed = groups.ListedGroup(group_id="billing", protocol_type="consumer")
    source.on(groups.LIST_GROUPS, groups.ListGroupsResponse(groups=(listed,)))
    source.on(group_offsets.OFFSET_FETCH, committed(3))
    mirrored.on(group_offsets.OFFSET_FETCH, committed(1))
    ran = promote(mirrored)
    assert ran.code == 0
    assert ran.err == "not in step: group billing on orders-0: 3 at the source, 1 here\n"
    assert ran.out.endswith("lag 0, 1 group offset(s) not in step\n")


def test_a_group_is_waited_for_until_a_sync_has_brought_it_into_step(
    mirrored: AnsweringBroker, source: AnsweringBroker
) -> None:
    listed = groups.ListedGroup(group_id="billing", protocol_type="consumer")
    source.on(groups.LIST_GROUPS, groups.ListGroupsResponse(groups=(listed,)))
    source.on(group_offsets.OFFSET_FETCH, committed(3))
    answers = [committed(1), committed(1), committed(3)]
    mirrored.on(
        group_offsets.OFFSET_FETCH, lambda _: answers.pop(0) if len(answers) > 1 else answers[0]
    )
    ran = promote(mirrored)
    assert (ran.code, ran.err) == (0, "")
    assert len(mirrored.asked_for(group_offsets.OffsetFetchRequest)) == 3


def has_retention(broker: AnsweringBroker, *values: str) -> None:
    """Let the topic have that retention.ms at each look; the last one stays."""
    left = list(values)

    def answer(_: Any) -> configs.DescribeConfigsResponse:
        value = left.pop(0) if len(left) > 1 else left[0]
        row = configs.DescribedConfig(name="retention.ms", value=value, config_source=1)
        resource = configs.DescribedResource(resource_type=2, resource_name=TOPIC, configs=(row,))
        return configs.DescribeConfigsResponse(results=(resource,))

    broker.on(configs.DESCRIBE_CONFIGS, answer)


def test_a_setting_that_does_not_come_into_step_is_named(
    mirrored: AnsweringBroker, source: AnsweringBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror_promote, "SYNC_WAIT_MS", 0)
    has_retention(source, "7")
    has_retention(mirrored, "5")
    ran = promote(mirrored)
    assert ran.code == 0
    assert ran.err == (
        "not in step: topic orders: retention.ms: retention.ms=7 at the source, "
        "retention.ms=5 here\n"
    )
    assert ran.out.endswith("lag 0, groups in step, 1 setting(s) not in step\n")


def test_a_setting_is_waited_for_until_a_sync_has_brought_it(
    mirrored: AnsweringBroker, source: AnsweringBroker
) -> None:
    has_retention(source, "5", "5", "7")
    has_retention(mirrored, "7")
    ran = promote(mirrored)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.endswith("lag 0, groups in step\n")


def test_settings_that_may_not_be_seen_stop_no_promotion(
    mirrored: AnsweringBroker, source: AnsweringBroker
) -> None:
    source.forget(configs.DESCRIBE_CONFIGS)
    ran = promote(mirrored)
    assert ran.code == 0
    assert ran.err.startswith("Topic settings could not be compared: UNSUPPORTED_VERSION")


def committed(offset: int) -> group_offsets.OffsetFetchResponse:
    row = group_offsets.OffsetFetchedPartitions(partition_index=0, committed_offset=offset)
    topic = group_offsets.OffsetFetchedTopics(name=TOPIC, partitions=(row,))
    group = group_offsets.OffsetFetchedGroup(group_id="billing", topics=(topic,))
    return group_offsets.OffsetFetchResponse(groups=(group,))


def test_level_is_a_lag_of_0_in_mirroring_everywhere() -> None:
    mirroring = PartitionRow("m", "t", 0, None, None, "MIRRORING", 0, None)
    aligning = PartitionRow("m", "t", 0, None, None, "LOG_ALIGNMENT", 0, None)
    here, there = {("t", 0): Bounds(0, 5)}, {("t", 0): Bounds(0, 7)}
    assert Seen([mirroring], here, here).is_level
    assert not Seen([aligning], here, here).is_level
    assert not Seen([mirroring], here, there).is_level
    assert Seen([mirroring], here, there).lag == 2
    assert not Seen([mirroring], here, here, [("t", 1)]).is_level
    # A source that lost its end has nothing to wait for; --verify tells of it.
    assert Seen([mirroring], there, here).lag == 0


def test_what_is_beyond_the_stop_is_counted_where_it_is_known() -> None:
    row = PartitionRow("m", "t", 0, None, None, "STOPPED", 0, None, None, 5)
    unknown = PartitionRow("m", "t", 0, None, None, "STOPPED", 0, None)
    there = {("t", 0): Bounds(0, 5)}
    assert beyond_the_stop([row, unknown], there) == []
    assert beyond_the_stop([row], {}) == []
    (told,) = beyond_the_stop([row], {("t", 0): Bounds(0, 8)})
    assert told.startswith("t-0: the source has 3 record(s) more, from offset 5 on")


def test_of_many_lines_the_first_are_told_and_how_many_more_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    mirror_promote._tell(["line"] * mirror_promote.TOLD_MAX, "partition(s)")
    assert capsys.readouterr().err.splitlines() == ["line"] * mirror_promote.TOLD_MAX
    mirror_promote._tell(["line"] * (mirror_promote.TOLD_MAX + 2), "partition(s)")
    assert capsys.readouterr().err.splitlines()[-1] == "and 2 more partition(s)"
