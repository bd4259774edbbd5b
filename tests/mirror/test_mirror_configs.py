"""A mirror's settings change while it runs, and what was asked of it can be told afterwards."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.kafka_node import KafkaNode
from support.mirror import CommandRun, Mirror, twinlog_command
from support.twinlog_process import TwinlogProcess
from support.waiting import wait_until
from twinlog.model.errors import ErrorCode
from twinlog.network.addresses import Address
from twinlog.network.client import BrokerConnection
from twinlog.wire.messages.mirrors import (
    LIST_CLUSTER_MIRRORS,
    STOP_MIRROR_TOPICS,
    ListClusterMirrorsRequest,
    MirrorTopic,
    StopMirrorTopicsRequest,
)

pytestmark = [pytest.mark.kafka, pytest.mark.cluster, pytest.mark.slow]

JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="u" password="hunter2";'
)


@pytest.fixture
def audited(tmp_path: Path) -> Iterator[TwinlogProcess]:
    """Run a twinlog broker that looks often, and writes its audit to a file."""
    process = TwinlogProcess(
        tmp_path / "audited",
        settings={
            "mirror.metadata.refresh.interval.ms": "300",
            "mirror.audit.log": str(tmp_path / "audit" / "mirrors.log"),
        },
    )
    try:
        process.start()
        yield process
    finally:
        process.stop()


def audit(tmp_path: Path, message: str) -> list[dict[str, Any]]:
    """Give the lines of the audit that say so."""
    lines = (tmp_path / "audit" / "mirrors.log").read_text().splitlines()
    return [told for told in map(json.loads, lines) if told["message"] == message]


def configs(mirror: Mirror, *arguments: str) -> CommandRun:
    """Run the configs command for that mirror, however it ends."""
    of = ("--entity-type", "cluster-mirrors", "--entity-name", mirror.name)
    return twinlog_command(
        "configs", "--bootstrap-server", mirror.twinlog.bootstrap, *of, *arguments
    )


def test_filters_take_effect_at_once_and_without_new_connections(
    kafka_4: KafkaNode, audited: TwinlogProcess, tmp_path: Path, fresh: str
) -> None:
    first, second, third = (f"{fresh}-{name}" for name in ("first", "second", "third"))
    for topic in (first, second, third):
        kafka_4.create_topic(topic)
    mirror = Mirror(audited, kafka_4, "tuned")
    mirror.create(topics_include=first)
    mirror.await_states([(first, 0)], "MIRRORING")
    done = configs(mirror, "--alter", "--add-config", f"topics.include=[{first},{second}]")
    assert done.stdout == "Completed updating config for cluster mirror tuned.\n", done.stderr
    mirror.await_states([(first, 0), (second, 0)], "MIRRORING")
    assert (third, 0) not in mirror.states()
    configs(mirror, "--alter", "--add-config", f"topics.exclude=[__.*,{second}]")
    mirror.await_states([(second, 0)], "STOPPED")
    shown = configs(mirror, "--describe").stdout
    assert f"topics.exclude=__.*,{second} sensitive=false" in shown
    # Nobody had to take the first one up again: its fetches went on over the same connection.
    steps = [t["to"] for t in audit(tmp_path, "mirror partition changed state")
             if t["topic"] == first]  # fmt: skip
    assert steps == ["LOG_ALIGNMENT", "MIRRORING"]
    assert audit(tmp_path, "mirror partition taken up") == []
    configs(mirror, "--alter", "--delete-config", "topics.exclude")
    assert "topics.exclude" not in configs(mirror, "--describe").stdout
    assert mirror.states()[second, 0] == "STOPPED", "what was stopped is not started by itself"


def test_a_wrong_value_is_refused_with_what_is_wrong_and_changes_nothing(
    kafka_4: KafkaNode, twinlog: TwinlogProcess
) -> None:
    mirror = Mirror(twinlog, kafka_4, "firm")
    mirror.create(topics_include="a")
    before = configs(mirror, "--describe").stdout
    refused = {
        "topics.include=(": "topics.include=( cannot be",
        "acls.include=TOPIK": "the rule 'TOPIK' cannot be read",
        "topcs.include=a": "did you mean topics.include?",
        "bootstrap.servers=": "needs bootstrap.servers",
        "source.cluster.id=another": "a mirror of another cluster is another mirror",
        "groups.sync.interval.ms=0": "groups.sync.interval.ms=0 cannot be",
    }
    for wrong, why in refused.items():
        ran = configs(mirror, "--alter", "--add-config", wrong)
        assert ran.exit_code == 1
        assert why in ran.stderr
    assert configs(mirror, "--describe").stdout == before


def test_a_secret_is_never_shown_and_the_audit_tells_who_changed_what(
    kafka_4: KafkaNode, audited: TwinlogProcess, tmp_path: Path, fresh: str
) -> None:
    kafka_4.create_topic(fresh)
    mirror = Mirror(audited, kafka_4, "discreet")
    mirror.create(topics_include=fresh)
    mirror.await_states([(fresh, 0)], "MIRRORING")
    done = configs(mirror, "--alter", "--add-config", f"sasl.jaas.config=[{JAAS}]")
    assert done.exit_code == 0, done.stderr
    shown = configs(mirror, "--describe", "--all").stdout
    assert "sasl.jaas.config=null sensitive=true" in shown
    mirror.await_states([(fresh, 0)], "MIRRORING")
    mirror.run("--pause", "--mirror", mirror.name, "--topics", fresh)
    mirror.await_states([(fresh, 0)], "PAUSED")
    mirror.stop([fresh])
    mirror.await_states([(fresh, 0)], "STOPPED")
    asked = audit(tmp_path, "mirror was asked")
    assert [(each["verb"], each["mirror"]) for each in asked] == [
        (verb, "discreet") for verb in ("create", "alter", "pause", "stop")
    ]
    assert asked[1]["settings"] == "sasl.jaas.config"
    assert all(each["client_id"] and each["address"].startswith("127.0.0.1") for each in asked)
    wait_until(
        lambda: audit(tmp_path, "mirror partition changed state")[-1]["to"] == "STOPPED",
        "the stop is in the audit",
    )
    last = audit(tmp_path, "mirror partition changed state")[-1]
    assert (last["topic"], last["partition"]) == (fresh, 0)
    assert {"state_epoch", "leader_epoch", "log_start", "log_end", "source_offset", "cause"} <= set(
        last
    )
    for file in (audited.server.log, *(tmp_path / "audit").iterdir()):
        assert "hunter2" not in file.read_text() + shown


def test_mirrors_are_listed_by_source_and_by_the_state_that_was_asked(
    kafka_4: KafkaNode, twinlog: TwinlogProcess, fresh: str
) -> None:
    kept, stopped = f"{fresh}-kept", f"{fresh}-stopped"
    for topic in (kept, stopped):
        kafka_4.create_topic(topic)
    mirror = Mirror(twinlog, kafka_4, "listed")
    mirror.create()
    mirror.start([kept, stopped])
    mirror.await_states([(kept, 0), (stopped, 0)], "MIRRORING")
    mirror.stop([stopped])

    def topics(*arguments: str) -> list[str]:
        lines = mirror.run("--list", *arguments).stdout.splitlines()
        return [line.split()[1] for line in lines[1:]]

    assert topics() == ["1"]
    assert topics("--desired-state", "STOPPED") == ["1"]
    assert topics("--desired-state", "MIRRORING,PAUSED,STOPPED") == ["2"]
    assert topics("--desired-state", "PAUSED") == ["0"], "a mirror without such topics is listed"
    assert topics("--source-cluster-id", kafka_4.cluster_id, "--mirror", "listed") == ["1"]
    assert topics("--source-cluster-id", "another") == []


async def test_who_decided_by_a_look_before_another_operator_s_word_is_not_obeyed(
    kafka_4: KafkaNode, twinlog: TwinlogProcess, fresh: str
) -> None:
    kafka_4.create_topic(fresh)
    mirror = Mirror(twinlog, kafka_4, "contested")
    mirror.create()
    mirror.start([fresh])
    mirror.await_states([(fresh, 0)], "MIRRORING")
    address = Address("127.0.0.1", twinlog.port)
    operator = await BrokerConnection.open(address, "operator", timeout_s=120)
    topics = (MirrorTopic(topic_name=fresh),)

    async def look() -> int:
        answer = await operator.call(
            LIST_CLUSTER_MIRRORS, ListClusterMirrorsRequest(), timeout_s=120
        )
        return answer.mirrors[0].state_offset

    async def stop(decided_at: int) -> int:
        request = StopMirrorTopicsRequest(
            mirror_name=mirror.name, topics=topics, state_offset=decided_at
        )
        answer = await operator.call(STOP_MIRROR_TOPICS, request, timeout_s=120)
        return answer.topics[0].error_code

    try:
        seen_at = await look()
        mirror.run("--pause", "--mirror", mirror.name, "--topics", fresh)
        assert await stop(seen_at) == ErrorCode.INVALID_CLUSTER_MIRROR_STATE
        mirror.await_states([(fresh, 0)], "PAUSED")
        assert await stop(await look()) == 0
        mirror.await_states([(fresh, 0)], "STOPPED")
    finally:
        await operator.close()
