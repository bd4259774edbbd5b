"""--wait: by itself and behind another action, until the goal, the bound, or no hope."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from support.answering_broker import AnsweringBroker
from support.commands import Ran, run_command
from support.mirror_answers import describes, lists_mirror, partition_of
from twinlog.cli import mirror_wait
from twinlog.cli.mirror_tables import PartitionRow
from twinlog.cli.mirror_wait import TOLD_MAX, Deadline, Goal, lines_of, standing_of
from twinlog.wire.messages import mirrors
from twinlog.wire.messages.configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsResponse,
    DescribedConfig,
    DescribedResource,
)

LEVEL = partition_of("MIRRORING", source_offset=9, destination_offset=9)
BEHIND = partition_of("MIRRORING", source_offset=9, destination_offset=4)
STOPPED = partition_of("STOPPED")
DEAD = partition_of("FAILED", retry_attempt=-1, error_message="no way")


@pytest.fixture(autouse=True)
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror_wait, "POLL_S", 0)


@pytest.fixture
def mirrored(broker: AnsweringBroker) -> AnsweringBroker:
    lists_mirror(broker, broker)
    return broker


def command(broker: AnsweringBroker, *arguments: str) -> Ran:
    at = ["--bootstrap-server", broker.bootstrap, "--mirror", "m"]
    return run_command(["mirrors", *at, *arguments])


def row(
    state: str, lag: int | None = None, retry_attempt: int = 0, lag_ms: int | None = None
) -> PartitionRow:
    source, here = (None, None) if lag is None else (100 + lag, 100)
    return PartitionRow("m", "t", 0, source, here, state, retry_attempt, None, lag_ms=lag_ms)


def test_alone_it_waits_until_nothing_is_left_to_mirror(mirrored: AnsweringBroker) -> None:
    describes(mirrored, [BEHIND], [BEHIND], [LEVEL])
    ran = command(mirrored, "--wait")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "Mirror m: 1 partition(s) in state MIRRORING and lag 0\n"
    asked = mirrored.asked_for(mirrors.ListClusterMirrorsRequest)[-1]
    assert asked.desired_state_filter == ("MIRRORING",)


def test_a_mirror_with_filters_that_has_no_topic_yet_is_waited_for(
    mirrored: AnsweringBroker,
) -> None:
    looks = [(), (), ("orders",)]

    def listed(_: Any) -> mirrors.ListClusterMirrorsResponse:
        names = looks.pop(0)
        found = mirrors.ListedMirror(mirror_name="m", source_bootstrap="s:1", topic_names=names)
        return mirrors.ListClusterMirrorsResponse(mirrors=(found,))

    mirrored.on(mirrors.LIST_CLUSTER_MIRRORS, listed)
    mirrored.on(DESCRIBE_CONFIGS, filters_are("orders"))
    describes(mirrored, [LEVEL])
    ran = command(mirrored, "--wait")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "Mirror m: 1 partition(s) in state MIRRORING and lag 0\n"


@pytest.mark.parametrize(("filters", "timeout_ms"), [("", "600000"), ("orders", "0")])
def test_a_mirror_that_has_no_topic_and_gets_none_is_told_so(
    mirrored: AnsweringBroker, filters: str, timeout_ms: str
) -> None:
    listed = mirrors.ListedMirror(mirror_name="m", source_bootstrap="s:1")
    mirrored.on(mirrors.LIST_CLUSTER_MIRRORS, mirrors.ListClusterMirrorsResponse(mirrors=(listed,)))
    mirrored.on(DESCRIBE_CONFIGS, filters_are(filters))
    ran = command(mirrored, "--wait", "--timeout-ms", timeout_ms)
    assert (ran.code, ran.out) == (1, "")
    assert "no topic of mirror m is to be mirrored: see what it has with" in ran.err


def filters_are(include: str) -> DescribeConfigsResponse:
    config = DescribedConfig(name="topics.include", value=include)
    described = DescribedResource(resource_type=64, resource_name="m", configs=(config,))
    return DescribeConfigsResponse(results=(described,))


def test_a_state_is_waited_for_whatever_the_lag(mirrored: AnsweringBroker) -> None:
    describes(mirrored, [LEVEL], [STOPPED])
    ran = command(mirrored, "--wait", "--state", "STOPPED", "--topics", "ord.*")
    assert (ran.code, ran.out) == (0, "Mirror m: 1 partition(s) in state STOPPED\n")


def test_the_bound_is_code_1_and_names_what_is_missing(mirrored: AnsweringBroker) -> None:
    describes(mirrored, [BEHIND])
    ran = command(mirrored, "--wait", "--timeout-ms", "0")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "orders-0 is MIRRORING, lag 5\n"
        "Mirror m: state MIRRORING and lag 0 was not reached: 0 of 1 partition(s), lag 5; "
        "not within 0 ms\n"
    )


def test_a_topic_that_left_the_mirror_meanwhile_is_named(mirrored: AnsweringBroker) -> None:
    describes(mirrored, [])
    ran = command(mirrored, "--wait", "--timeout-ms", "0")
    assert ran.code == 1
    assert "mirror m has no partition of orders\n" in ran.err


def test_what_is_failed_for_good_is_not_waited_for(mirrored: AnsweringBroker) -> None:
    describes(mirrored, [DEAD])
    ran = command(mirrored, "--wait")
    assert ran.code == 1
    assert "orders-0 is FAILED: no way\n" in ran.err
    assert "will not get there by itself" in ran.err


@pytest.mark.parametrize(
    ("action", "end", "told"),
    [
        ("start", LEVEL, "state MIRRORING and lag 0"),
        ("resume", LEVEL, "state MIRRORING and lag 0"),
        ("pause", partition_of("PAUSED"), "state PAUSED"),
        ("stop", STOPPED, "state STOPPED"),
    ],
)
def test_behind_an_action_it_waits_until_that_is_done(
    mirrored: AnsweringBroker, action: str, end: mirrors.DescribedMirrorPartition, told: str
) -> None:
    done = mirrors.MirrorTopicsResponse(topics=(mirrors.MirrorTopicResult(topic_name="orders"),))
    for api in (
        mirrors.START_MIRROR_TOPICS,
        mirrors.RESUME_MIRROR_TOPICS,
        mirrors.PAUSE_MIRROR_TOPICS,
        mirrors.STOP_MIRROR_TOPICS,
    ):
        mirrored.on(api, done)
    describes(mirrored, [BEHIND], [end])
    ran = command(mirrored, f"--{action}", "--topics", "orders", "--wait")
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[-1] == f"Mirror m: 1 partition(s) in {told}"
    asked = mirrored.asked_for(mirrors.ListClusterMirrorsRequest)[-1]
    assert asked.desired_state_filter == (told.split()[1],)


def test_behind_a_start_that_found_nothing_there_is_nothing_to_wait_for(
    mirrored: AnsweringBroker,
) -> None:
    listed = mirrors.ListedMirror(mirror_name="m", source_bootstrap="s:1")
    mirrored.on(mirrors.LIST_CLUSTER_MIRRORS, mirrors.ListClusterMirrorsResponse(mirrors=(listed,)))
    mirrored.on(mirrors.START_MIRROR_TOPICS, mirrors.MirrorTopicsResponse())
    ran = command(mirrored, "--start", "--topics", "later.*", "--wait")
    assert ran.code == 0
    assert mirrored.asked_for(mirrors.DescribeClusterMirrorsRequest) == []


def test_a_broker_that_loads_is_asked_again_within_bounds(mirrored: AnsweringBroker) -> None:
    loading = mirrors.DescribeClusterMirrorsResponse(error_code=14)
    mirrored.on(mirrors.DESCRIBE_CLUSTER_MIRRORS, loading)
    ran = command(mirrored, "--wait")
    assert ran.code == 1
    assert "mirror m cannot be described: COORDINATOR_LOAD_IN_PROGRESS" in ran.err
    asked = mirrored.asked_for(mirrors.DescribeClusterMirrorsRequest)
    assert len(asked) == mirror_wait.UNANSWERED_MAX


def test_a_goal_is_a_state_or_that_nothing_is_left() -> None:
    assert Goal().is_reached_by(row("MIRRORING", 0))
    assert Goal().is_reached_by(row("MIRRORING", 0, lag_ms=0))
    dark = row("MIRRORING", 0, lag_ms=7_000)
    assert not Goal().is_reached_by(dark)
    assert not Goal().is_reached_by(replace(row("MIRRORING", 0), error_message="fenced"))
    assert lines_of([dark]) == ["t-0 is MIRRORING, lag 0 as of 7000 ms ago"]
    assert not Goal().is_reached_by(row("MIRRORING", 3))
    assert not Goal().is_reached_by(row("MIRRORING"))
    assert not Goal().is_reached_by(row("PAUSED", 0))
    assert Goal("PAUSED").is_reached_by(row("PAUSED", 3))
    assert Goal("MIRRORING").is_lost_for(row("FAILED", retry_attempt=-1))
    assert not Goal("MIRRORING").is_lost_for(row("FAILED", retry_attempt=2))
    assert not Goal("STOPPED").is_lost_for(row("FAILED", retry_attempt=-1))


def test_no_partition_at_all_is_not_there_yet() -> None:
    assert not standing_of([], Goal()).is_reached
    standing = standing_of([row("MIRRORING", 3), row("MIRRORING", 0)], Goal())
    assert (str(standing), standing.lag) == ("1 of 2 partition(s), lag 3", 3)


def test_of_many_partitions_the_first_are_told() -> None:
    told = lines_of([row("MIRRORING", 1)] * (TOLD_MAX + 2))
    assert len(told) == TOLD_MAX + 1
    assert told[-1] == "and 2 more partition(s)"


def test_a_deadline_has_nothing_left_when_it_is_over() -> None:
    async def left() -> tuple[int, int]:
        return Deadline(0).left_ms, Deadline(60_000).left_ms

    over, ahead = asyncio.run(left())
    assert over == 0
    assert 50_000 < ahead <= 60_000
