"""The verbs of mirrors: flags, what is asked of the broker, what is printed, exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.answering_broker import AnsweringBroker
from support.commands import Ran, run_command
from twinlog.wire.messages import mirrors
from twinlog.wire.messages.configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsResponse,
    DescribedConfig,
    DescribedResource,
)
from twinlog.wire.messages.mirrors import (
    DescribedMirror,
    DescribedMirrorPartition,
    DescribedMirrorTopic,
    ListClusterMirrorsResponse,
    ListedMirror,
    MirrorConfig,
    MirrorTopic,
    MirrorTopicResult,
    MirrorTopicsResponse,
)
from twinlog.wire.schema import Api

LISTED = ListClusterMirrorsResponse(
    mirrors=(
        ListedMirror(
            mirror_name="m",
            source_bootstrap="s:1",
            topic_count=3,
            topic_names=("orders", "payments", "paychecks"),
        ),
    )
)


def mirrors_command(broker: AnsweringBroker, *arguments: str) -> Ran:
    return run_command(["mirrors", "--bootstrap-server", broker.bootstrap, *arguments])


def results(*names: str, failed: tuple[str, ...] = ()) -> MirrorTopicsResponse:
    good = tuple(MirrorTopicResult(topic_name=name) for name in names)
    bad = tuple(
        MirrorTopicResult(topic_name=name, error_code=138, error_message="it is in mirror x")
        for name in failed
    )
    return MirrorTopicsResponse(topics=good + bad)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "one of the arguments --create --start"),
        (["--list", "--describe"], "not allowed with argument"),
        (["--start", "--topics", "a"], "--start needs --mirror NAME"),
        (["--create", "--mirror", "m"], "--create needs --mirror-config FILE"),
        (["--start", "--mirror", "m"], "--start needs --topics A,B,REGEX"),
        (["--stop", "--mirror", "m", "--topics", ","], "--stop needs --topics"),
        (["--pause", "--mirror", "m"], "--pause needs --topics"),
        (["--list", "--json"], "--json goes with --describe and --verify and --stop"),
        (["--list", "--failed"], "--failed goes with --describe only"),
        (["--list", "--tasks"], "--tasks goes with --describe only"),
        (["--describe", "--failed", "--tasks"], "leave out one of them"),
        (["--describe", "--source-cluster-id", "c"], "--source-cluster-id goes with --list only"),
        (["--describe", "--desired-state", "PAUSED"], "--desired-state goes with --list only"),
        (["--list", "--desired-state", "FAILED"], "there are MIRRORING, PAUSED, STOPPED"),
        (["--stop", "--mirror", "m", "--topics", "a", "--exclude", "b"], "--exclude goes with"),
        (["--start", "--mirror", "m", "--topics", "a("], "'a(' is not a regular expression"),
        (["--start", "--mirror", "m", "--topics", "a{1,3}"], "'a{1' is a piece of a regular"),
        (["--list", "--mirror-config", "f"], "--mirror-config goes with --create only"),
        (["--list", "--wait"], "--wait goes with --start and --resume and --pause and --stop"),
        (["--wait"], "--wait needs --mirror NAME"),
        (["--verify"], "--verify needs --mirror NAME"),
        (["--verify", "--mirror", "m", "--promote"], "--promote goes with --stop only"),
        (["--verify", "--mirror", "m", "--state", "PAUSED"], "--state goes with --wait only"),
        (["--verify", "--mirror", "m", "--timeout-ms", "1"], "--timeout-ms goes with --wait and"),
        (["--wait", "--mirror", "m", "--timeout-ms", "-1"], "--timeout-ms -1 cannot be"),
        (
            ["--stop", "--mirror", "m", "--topics", "a", "--wait", "--state", "PAUSED"],
            "--stop is done in state STOPPED, not PAUSED",
        ),
        (
            ["--stop", "--mirror", "m", "--topics", "a", "--source-command-config", "f"],
            "--source-command-config goes with --stop --plan and --stop --promote",
        ),
        (
            ["--stop", "--mirror", "m", "--topics", "a", "--plan", "--promote"],
            "--plan changes nothing: leave out --promote and --wait",
        ),
        (["--stop", "--mirror", "m", "--topics", "a", "--json"], "--json goes with --stop --plan"),
    ],
    ids=str,
)
def test_flags_that_do_not_fit_are_code_2_and_ask_nothing(
    broker: AnsweringBroker, arguments: list[str], message: str
) -> None:
    ran = mirrors_command(broker, *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert broker.asked == []


def test_create_sends_the_file_and_leaves_out_what_has_no_effect(
    broker: AnsweringBroker, tmp_path: Path
) -> None:
    broker.on(mirrors.CREATE_CLUSTER_MIRROR, mirrors.CreateClusterMirrorResponse())
    file = tmp_path / "m.properties"
    file.write_text(
        "bootstrap.servers=s:1\ntopics.include=a.*\nsasl.kerberos.service.name=k\n"
        "connections.max.idle.ms=7\n"
    )
    ran = mirrors_command(broker, "--create", "--mirror", "m", "--mirror-config", str(file))
    assert (ran.code, ran.out) == (0, "Created mirror m\n")
    assert (
        ran.err == f"{file}: without effect: connections.max.idle.ms, sasl.kerberos.service.name\n"
    )
    (asked,) = broker.asked_for(mirrors.CreateClusterMirrorRequest)
    assert asked.mirror_name == "m"
    assert set(asked.config) == {
        MirrorConfig(name="bootstrap.servers", value="s:1"),
        MirrorConfig(name="topics.include", value="a.*"),
        MirrorConfig(name="connections.max.idle.ms", value="7"),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bootstrap.servers=s:1\ntopic.include=a\n", "line 2: no mirror setting is called topic."),
        ("", "bootstrap.servers is missing"),
    ],
)
def test_a_wrong_mirror_config_is_refused_before_anything_is_asked(
    broker: AnsweringBroker, tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "m.properties"
    file.write_text(text)
    ran = mirrors_command(broker, "--create", "--mirror", "m", "--mirror-config", str(file))
    assert ran.code == 1
    assert message in ran.err
    assert broker.asked == []


def test_a_refusal_gives_the_brokers_words_and_the_next_step(
    broker: AnsweringBroker, tmp_path: Path
) -> None:
    refusal = mirrors.CreateClusterMirrorResponse(
        error_code=136, error_message="mirror m exists already"
    )
    broker.on(mirrors.CREATE_CLUSTER_MIRROR, refusal)
    file = tmp_path / "m.properties"
    file.write_text("bootstrap.servers=s:1\n")
    ran = mirrors_command(broker, "--create", "--mirror", "m", "--mirror-config", str(file))
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "twinlog mirrors: mirror m was not created: mirror m exists already "
        "(CLUSTER_MIRROR_ALREADY_EXISTS). Choose another name, or use the mirror as it is.\n"
    )


def test_start_sends_patterns_and_names_what_was_started(broker: AnsweringBroker) -> None:
    broker.on(mirrors.LIST_CLUSTER_MIRRORS, LISTED)
    broker.on(mirrors.START_MIRROR_TOPICS, results("b", "a"))
    ran = mirrors_command(
        broker, "--start", "--mirror", "m", "--topics", "a, b.*", "--exclude", "bad"
    )
    assert (ran.code, ran.out) == (0, "Started 2 topic(s) in mirror m:[a, b]\n")
    (asked,) = broker.asked_for(mirrors.StartMirrorTopicsRequest)
    assert asked.include_patterns == ("a", "b.*")
    assert asked.exclude_patterns == ("bad",)


def test_start_without_a_match_yet_says_that_the_patterns_are_kept(broker: AnsweringBroker) -> None:
    broker.on(mirrors.LIST_CLUSTER_MIRRORS, LISTED)
    broker.on(mirrors.START_MIRROR_TOPICS, results())
    ran = mirrors_command(broker, "--start", "--mirror", "m", "--topics", "later.*")
    assert ran.code == 0
    assert ran.out == (
        "No matching topics found yet. Patterns saved to mirror m for auto-discovery.\n"
    )


def test_start_names_the_stopped_topics_that_are_meant_and_stay_stopped(
    broker: AnsweringBroker,
) -> None:
    broker.on(mirrors.LIST_CLUSTER_MIRRORS, LISTED)
    broker.on(mirrors.START_MIRROR_TOPICS, results("orders"))
    exclude = DescribedConfig(name="topics.exclude", value="__.*,payments|pennies")
    described = DescribedResource(resource_type=64, resource_name="m", configs=(exclude,))
    broker.on(DESCRIBE_CONFIGS, DescribeConfigsResponse(results=(described,)))
    ran = mirrors_command(broker, "--start", "--mirror", "m", "--topics", "orders,pay.*")
    assert (ran.code, ran.out) == (0, "Started 1 topic(s) in mirror m:[orders]\n")
    left_out, unseen = ran.err.splitlines()
    assert left_out.startswith(
        "Not started, since topics.exclude of mirror m matches: [payments]. A stop puts there"
    )
    assert unseen == "Not started, since the source shows none: [paychecks]"
    asked = broker.asked_for(mirrors.ListClusterMirrorsRequest)[-1]
    assert asked.desired_state_filter == ("STOPPED",)


def test_one_topic_that_fails_is_told_and_is_code_1(broker: AnsweringBroker) -> None:
    broker.on(mirrors.LIST_CLUSTER_MIRRORS, LISTED)
    broker.on(mirrors.START_MIRROR_TOPICS, results("a", failed=("b",)))
    ran = mirrors_command(broker, "--start", "--mirror", "m", "--topics", "a,b")
    assert (ran.code, ran.out) == (1, "Started 1 topic(s) in mirror m:[a]\n")
    assert ran.err == (
        "topic b: it is in mirror x (TOPIC_ALREADY_IN_CLUSTER_MIRROR). "
        "Stop it in its other mirror first.\n"
    )


def test_stop_names_the_matching_topics_and_passes_the_patterns(broker: AnsweringBroker) -> None:
    broker.on(mirrors.LIST_CLUSTER_MIRRORS, LISTED)
    broker.on(mirrors.STOP_MIRROR_TOPICS, results("payments", "paychecks"))
    ran = mirrors_command(broker, "--stop", "--mirror", "m", "--topics", "pay.*")
    assert (ran.code, ran.out) == (0, "Stopped[paychecks, payments] topic(s) in mirror m\n")
    (asked,) = broker.asked_for(mirrors.StopMirrorTopicsRequest)
    assert asked.topics == (MirrorTopic(topic_name="paychecks"), MirrorTopic(topic_name="payments"))
    assert asked.patterns == ("pay.*",)


def test_a_stop_says_what_it_did_not_find_beside_what_it_stopped(broker: AnsweringBroker) -> None:
    broker.on(mirrors.LIST_CLUSTER_MIRRORS, LISTED)
    broker.on(mirrors.STOP_MIRROR_TOPICS, results("payments", "paychecks"))
    ran = mirrors_command(broker, "--stop", "--mirror", "m", "--topics", "pay.*,ordesr")
    assert (ran.code, ran.err) == (0, "No topic of mirror m matches ordesr\n")


def test_stop_of_topics_that_are_not_there_yet_takes_the_pattern_away(
    broker: AnsweringBroker,
) -> None:
    broker.on(mirrors.LIST_CLUSTER_MIRRORS, LISTED)
    broker.on(mirrors.STOP_MIRROR_TOPICS, results())
    ran = mirrors_command(broker, "--stop", "--mirror", "m", "--topics", "later.*")
    assert ran.code == 0
    assert ran.out.startswith("No matching topics in mirror m.")


def test_an_unknown_mirror_is_told_with_how_to_see_those_there_are(broker: AnsweringBroker) -> None:
    broker.on(mirrors.LIST_CLUSTER_MIRRORS, LISTED)
    for verb in ("--stop", "--pause", "--resume", "--recover"):
        ran = mirrors_command(broker, verb, "--mirror", "other", "--topics", "a")
        assert ran.code == 1
        assert "there is no mirror other (UNKNOWN_CLUSTER_MIRROR). See which" in ran.err


@pytest.mark.parametrize(
    ("verb", "api", "done"),
    [
        ("--pause", mirrors.PAUSE_MIRROR_TOPICS, "Paused"),
        ("--resume", mirrors.RESUME_MIRROR_TOPICS, "Resumed"),
        ("--recover", mirrors.RECOVER_MIRROR_TOPICS, "Recovered"),
    ],
)
def test_pause_resume_and_recover_need_a_match(
    broker: AnsweringBroker, verb: str, api: Api[Any, Any], done: str
) -> None:
    broker.on(mirrors.LIST_CLUSTER_MIRRORS, LISTED)
    broker.on(api, results("orders"))
    ran = mirrors_command(broker, verb, "--mirror", "m", "--topics", "orders")
    assert (ran.code, ran.out) == (0, f"{done} 1 topic(s) in mirror m:[orders]\n")
    ran = mirrors_command(broker, verb, "--mirror", "m", "--topics", "nothing")
    assert ran.code == 1
    assert "no topic of mirror m matches nothing: see them with" in ran.err


def test_pause_and_resume_say_by_which_look_they_were_decided_and_a_stop_holds_in_any_case(
    broker: AnsweringBroker,
) -> None:
    seen = ListedMirror(
        mirror_name="m", source_bootstrap="s:1", topic_names=("orders",), state_offset=7
    )
    broker.on(mirrors.LIST_CLUSTER_MIRRORS, ListClusterMirrorsResponse(mirrors=(seen,)))
    decided_at = {}
    for verb, api in (
        ("pause", mirrors.PAUSE_MIRROR_TOPICS),
        ("resume", mirrors.RESUME_MIRROR_TOPICS),
        ("stop", mirrors.STOP_MIRROR_TOPICS),
    ):
        broker.on(api, results("orders"))
        mirrors_command(broker, f"--{verb}", "--mirror", "m", "--topics", "orders")
        (asked,) = broker.asked_for(api.request)
        decided_at[verb] = asked.state_offset
    assert decided_at == {"pause": 7, "resume": 7, "stop": -1}


def test_delete(broker: AnsweringBroker) -> None:
    broker.on(mirrors.DELETE_CLUSTER_MIRROR, mirrors.DeleteClusterMirrorResponse())
    ran = mirrors_command(broker, "--delete", "--mirror", "m")
    assert (ran.code, ran.out) == (0, "Deleted mirror m\n")


def test_list(broker: AnsweringBroker) -> None:
    broker.on(mirrors.LIST_CLUSTER_MIRRORS, LISTED)
    ran = mirrors_command(broker, "--list")
    assert ran.code == 0
    assert ran.out.splitlines()[1] == f"{'m':30} {'3':10} {'-':26} s:1"


def test_a_list_is_narrowed_by_mirror_source_and_state(broker: AnsweringBroker) -> None:
    broker.on(mirrors.LIST_CLUSTER_MIRRORS, ListClusterMirrorsResponse(mirrors=()))
    narrowed = ("--mirror", "m,n", "--source-cluster-id", "c", "--desired-state", "PAUSED,STOPPED")
    ran = mirrors_command(broker, "--list", *narrowed)
    assert (ran.code, ran.out) == (0, "No mirrors found\n")
    (asked,) = broker.asked_for(mirrors.ListClusterMirrorsRequest)
    assert asked.mirror_name_filter == ("m", "n")
    assert asked.source_cluster_id_filter == ("c",)
    assert asked.desired_state_filter == ("PAUSED", "STOPPED")


def test_describe_tells_the_tasks_of_each_mirror(broker: AnsweringBroker) -> None:
    task = mirrors.DescribedMirrorTask(name="acls", note="the source has no authorizer")
    answer = mirrors.DescribeClusterMirrorsResponse(
        mirrors=(DescribedMirror(mirror_name="m", tasks=(task,)),)
    )
    broker.on(mirrors.DESCRIBE_CLUSTER_MIRRORS, answer)
    ran = mirrors_command(broker, "--describe", "--tasks")
    assert ran.code == 0
    assert ran.out.splitlines()[1].split()[:3] == ["m", "acls", "NOT_APPLICABLE"]


def described(*partitions: DescribedMirrorPartition) -> mirrors.DescribeClusterMirrorsResponse:
    topic = DescribedMirrorTopic(topic_name="orders", partitions=partitions)
    return mirrors.DescribeClusterMirrorsResponse(
        mirrors=(DescribedMirror(mirror_name="m", topics=(topic,)),)
    )


FAILED = DescribedMirrorPartition(
    partition_index=1, state_value="FAILED", retry_attempt=2, error_message="bad batch at 7"
)
FINE = DescribedMirrorPartition(
    partition_index=0, state_value="MIRRORING", source_offset=9, destination_offset=4
)


def test_describe_shows_every_partition_in_order(broker: AnsweringBroker) -> None:
    broker.on(mirrors.DESCRIBE_CLUSTER_MIRRORS, described(FAILED, FINE))
    ran = mirrors_command(broker, "--describe", "--mirror", "m")
    assert ran.code == 0
    states = [line.split()[-1] for line in ran.out.splitlines()]
    assert states == ["STATE", "MIRRORING", "FAILED"]
    (asked,) = broker.asked_for(mirrors.DescribeClusterMirrorsRequest)
    assert asked.mirror_names == ("m",)


def test_describe_of_all_mirrors_as_json(broker: AnsweringBroker) -> None:
    broker.on(mirrors.DESCRIBE_CLUSTER_MIRRORS, described(FINE))
    ran = mirrors_command(broker, "--describe", "--json")
    assert [row["lag"] for row in json.loads(ran.out)] == [5]
    (asked,) = broker.asked_for(mirrors.DescribeClusterMirrorsRequest)
    assert asked.mirror_names is None


@pytest.mark.parametrize(("value", "retry"), [("20", "2/20"), (None, "2/10")])
def test_failures_tell_how_often_the_broker_retries(
    broker: AnsweringBroker, value: str | None, retry: str
) -> None:
    config = DescribedConfig(name="mirror.failed.retry.max.attempts", value=value)
    resource = DescribedResource(resource_type=4, resource_name="5", configs=(config,))
    broker.on(DESCRIBE_CONFIGS, DescribeConfigsResponse(results=(resource,)))
    broker.on(mirrors.DESCRIBE_CLUSTER_MIRRORS, described(FAILED, FINE))
    ran = mirrors_command(broker, "--describe", "--failed")
    _, line = ran.out.splitlines()
    assert line == f"{'m':30} {'orders':40} {'1':10} {retry:7} bad batch at 7"


def test_describe_of_an_unknown_mirror_is_code_1(broker: AnsweringBroker) -> None:
    unknown = DescribedMirror(error_code=137, error_message="no mirror x", mirror_name="x")
    answer = mirrors.DescribeClusterMirrorsResponse(mirrors=(unknown,))
    broker.on(mirrors.DESCRIBE_CLUSTER_MIRRORS, answer)
    ran = mirrors_command(broker, "--describe", "--mirror", "x")
    assert (ran.code, ran.out) == (1, "")
    assert "mirror x cannot be described: no mirror x (UNKNOWN_CLUSTER_MIRROR)." in ran.err


def test_a_broker_without_mirrors_is_told_apart(broker: AnsweringBroker) -> None:
    ran = mirrors_command(broker, "--list")
    assert ran.code == 1
    assert "does not know it" in ran.err
    assert "Is --bootstrap-server a twinlog broker of this version?" in ran.err
