"""--stop --plan: both clusters are looked at, and nothing is changed."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.answering_broker import AnsweringBroker, answering_broker
from support.batches import batch
from support.commands import Ran, run_command
from support.mirror_answers import TOPIC, describes, filters, lists_mirror, partition_of
from twinlog.cli.mirror_plan import differences_of
from twinlog.cli.stop_plan import ConfigDifference
from twinlog.wire.messages import configs, groups, mirrors, offsets
from twinlog.wire.messages.configs import DescribedConfig

MIRRORING = partition_of("MIRRORING", source_offset=4, destination_offset=4)


@pytest.fixture
def source() -> Iterator[AnsweringBroker]:
    with answering_broker() as running:
        running.append(TOPIC, 0, batch(4))
        running.on(groups.LIST_GROUPS, groups.ListGroupsResponse(groups=()))
        has_configs(running)
        yield running


@pytest.fixture
def mirrored(broker: AnsweringBroker, source: AnsweringBroker) -> AnsweringBroker:
    """Give a destination that is level with its source."""
    lists_mirror(broker, source)
    broker.append(TOPIC, 0, batch(4))
    has_configs(broker)
    describes(broker, [MIRRORING])
    return broker


def has_configs(broker: AnsweringBroker, **overrides: str) -> None:
    """Have these overrides (``_`` for ``.``) beside what is not overridden."""
    own = {name.replace("_", "."): value for name, value in overrides.items()}
    names = {"retention.ms", "cleanup.policy", *own}
    described = tuple(
        DescribedConfig(name=name, value=own.get(name, "-1"), config_source=1 if name in own else 5)
        for name in sorted(names)
    )

    def answer(request: configs.DescribeConfigsRequest) -> configs.DescribeConfigsResponse:
        return configs.DescribeConfigsResponse(
            results=tuple(
                configs.DescribedResource(
                    resource_type=asked.resource_type,
                    resource_name=asked.resource_name,
                    configs=described if asked.resource_type == 2 else (),
                )
                for asked in request.resources
            )
        )

    broker.on(configs.DESCRIBE_CONFIGS, answer)


def plan(broker: AnsweringBroker, *more: str) -> Ran:
    at = ["--bootstrap-server", broker.bootstrap, "--mirror", "m"]
    ran = run_command(["mirrors", *at, "--stop", "--plan", "--topics", TOPIC, *more])
    assert broker.asked_for(mirrors.StopMirrorTopicsRequest) == []
    return ran


def told(broker: AnsweringBroker) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(plan(broker, "--json").out)
    return found


def test_a_level_mirror_is_code_0(mirrored: AnsweringBroker) -> None:
    ran = plan(mirrored)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.endswith("now would lose nothing. Nothing was changed.\n")


def test_what_the_source_has_more_is_lost(
    mirrored: AnsweringBroker, source: AnsweringBroker
) -> None:
    source.append(TOPIC, 0, batch(3))
    ran = plan(mirrored)
    assert ran.code == 1
    assert "orders-0 is MIRRORING, 3 record(s) behind" in ran.out
    lost = told(mirrored)["topics"][0]
    assert (lost["recordsLost"], lost["bytesLost"]) == (3, len(batch(3)))


def test_a_partition_that_is_not_here_yet_would_be_lost(
    mirrored: AnsweringBroker, source: AnsweringBroker
) -> None:
    source.logs[TOPIC, 1] = b""
    empty = plan(mirrored)
    assert empty.code == 1
    source.append(TOPIC, 1, batch(5))
    ran = plan(mirrored)
    assert ran.code == 1
    assert (
        "orders-1 is UNKNOWN, 5 record(s) behind: the source has this partition, and it is not "
        "mirrored yet"
    ) in ran.out
    lost = told(mirrored)["topics"][0]
    assert (lost["recordsLost"], lost["bytesLost"]) == (5, len(batch(5)))


def test_a_topic_that_is_meant_and_not_here_yet_would_be_lost(
    mirrored: AnsweringBroker, source: AnsweringBroker
) -> None:
    source.append("orders-new", 0, batch(6))
    filters(mirrored, topics_include="orders.*")
    assert plan(mirrored).code == 0, "it is not named"
    at = ["--bootstrap-server", mirrored.bootstrap, "--mirror", "m", "--topics", ".*"]
    ran = run_command(["mirrors", *at, "--stop", "--plan"])
    assert ran.code == 1
    assert "orders-new-0 is UNKNOWN, 6 record(s) behind: the source has this" in ran.out


def test_settings_that_differ_are_told(mirrored: AnsweringBroker, source: AnsweringBroker) -> None:
    has_configs(source, retention_ms="7", min_insync_replicas="2")
    assert told(mirrored)["configs"] == [
        {"topic": TOPIC, "name": "retention.ms", "source": "7", "destination": None}
    ]


def test_a_transaction_behind_the_last_stable_offset_would_be_aborted(
    mirrored: AnsweringBroker,
) -> None:
    opened = batch(1, producer=(7, 2, 0), is_transactional=True)
    for _ in range(2):
        mirrored.append(TOPIC, 0, opened)
    plain = mirrored._list_offsets

    def answer(request: offsets.ListOffsetsRequest) -> offsets.ListOffsetsResponse:
        if not request.isolation_level:
            return plain(request)
        row = offsets.ListedPartition(partition_index=0, offset=4)
        return offsets.ListOffsetsResponse(
            topics=(offsets.ListedTopic(name=TOPIC, partitions=(row,)),)
        )

    mirrored.on(offsets.LIST_OFFSETS, answer)
    (partition,) = told(mirrored)["topics"][0]["partitions"]
    assert partition["openTransactions"] == [
        {"producerId": 7, "producerEpoch": 2, "firstOffset": 4}
    ]


def test_without_the_source_the_last_figures_are_told(mirrored: AnsweringBroker) -> None:
    listed = mirrors.ListedMirror(
        mirror_name="m", source_bootstrap="127.0.0.1:1", topic_names=(TOPIC,)
    )
    answer = mirrors.ListClusterMirrorsResponse(mirrors=(listed,))
    mirrored.on(mirrors.LIST_CLUSTER_MIRRORS, answer)
    looks = [
        partition_of("MIRRORING", source_offset=9, destination_offset=here, lag_ms=lag_ms)
        for here, lag_ms in ((9, 0), (4, 12_000))
    ]
    describes(mirrored, *([one] for one in looks))
    ran = plan(mirrored)
    assert ran.code == 1
    assert ran.out.startswith("The source cannot be asked, so these are the last known figures: no")
    assert "orders-0 is MIRRORING, 5 record(s) behind" in ran.out
    assert "(it was level 12.0 s ago)" in ran.out, "as it is after the source was waited for"


def test_a_source_that_tells_nothing_of_groups_is_said_to(
    mirrored: AnsweringBroker, source: AnsweringBroker
) -> None:
    source.on(groups.LIST_GROUPS, groups.ListGroupsResponse(error_code=30, groups=()))
    source.forget(configs.DESCRIBE_CONFIGS)
    ran = plan(mirrored)
    assert ran.code == 1
    assert "Group offsets could not be compared: broker 5 cannot list its groups" in ran.out
    assert "Topic settings could not be compared: UNSUPPORTED_VERSION" in ran.out


def test_what_is_stopped_already_is_left_out(mirrored: AnsweringBroker) -> None:
    describes(mirrored, [partition_of("STOPPED")])
    ran = plan(mirrored)
    assert ran.code == 0
    assert told(mirrored)["topics"] == []


def test_a_partition_that_the_source_lost_is_told(
    mirrored: AnsweringBroker, source: AnsweringBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twinlog.cli.log_reading.RETRY_DELAY_S", 0)
    del source.logs[TOPIC, 0]
    ran = plan(mirrored)
    assert ran.code == 1
    assert "0 record(s) behind: at the source: there is no orders-0" in ran.out


def test_settings_are_compared_by_the_rules_of_the_mirrors_own_sync() -> None:
    theirs = [
        DescribedConfig(name="retention.ms", value="7", config_source=1),
        DescribedConfig(name="min.insync.replicas", value="2", config_source=1),
        DescribedConfig(name="segment.bytes", value="9", config_source=5),
        DescribedConfig(name="not.known.here", value="9", config_source=1),
    ]
    ours = [
        DescribedConfig(name="retention.ms", value="-1", config_source=5),
        DescribedConfig(name="min.insync.replicas", value="1", config_source=5),
        DescribedConfig(name="segment.bytes", value="8", config_source=1),
    ]
    found = differences_of("t", theirs, ours, ("min.insync.replicas",))
    assert sorted(found) == [
        ConfigDifference("t", "retention.ms", "7", None),
        ConfigDifference("t", "segment.bytes", None, "8"),
    ]
