"""Finding the cluster: several bootstrap servers, properties of the connection, bounded retries."""

from pathlib import Path

import pytest

from support.answering_broker import AnsweringBroker
from support.commands import run_command
from twinlog.cli import cluster
from twinlog.wire.messages import groups, metadata


def test_the_first_bootstrap_server_that_answers_serves(broker: AnsweringBroker) -> None:
    broker.logs["a", 0] = b""
    ran = run_command(["topics", "--bootstrap-server", f"127.0.0.1:1,{broker.bootstrap}", "--list"])
    assert (ran.code, ran.out) == (0, "a\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("security.protocol=SASL_SSL", "security.protocol=SASL_SSL needs sasl.jaas.config"),
        ("security.protocol=SSL\nssl.truststore.location=/no/t", "ssl.truststore.location=/no/t"),
        (
            "security.protocol=SASL_PLAINTEXT\n"
            "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
            "username=me password=secret;",
            "it knows no SASL",
        ),
        ("request.timeout.ms=soon", "request.timeout.ms=soon cannot be"),
        ("request.timeout.ms=0", "request.timeout.ms=0 cannot be"),
    ],
)
def test_connection_properties_are_checked(
    broker: AnsweringBroker, tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(text)
    arguments = ["--bootstrap-server", broker.bootstrap, "--command-config", str(file), "--list"]
    ran = run_command(["topics", *arguments])
    assert ran.code == 1
    assert message in ran.err


def test_a_leader_that_cannot_be_reached_names_what_is_advertised(broker: AnsweringBroker) -> None:
    broker.logs["a", 0] = b""
    told = broker._metadata(metadata.MetadataRequest(topics=None))
    told.brokers[0].port = 1  # type: ignore[misc]
    broker.on(metadata.METADATA, told)
    ran = run_command(
        ["consume", "--bootstrap-server", broker.bootstrap, "--topic", "a", "--timeout-ms", "1"]
    )
    assert ran.code == 1
    assert "broker 5 cannot be reached at 127.0.0.1:1" in ran.err
    assert "check advertised.listeners" in ran.err


def test_a_coordinator_that_is_being_elected_is_waited_for_within_bounds(
    broker: AnsweringBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "RETRY_DELAY_S", 0)
    electing = groups.FindCoordinatorResponse(
        error_code=15,
        coordinators=(groups.Coordinator(key="g", node_id=-1, host="", port=-1, error_code=15),),
    )
    broker.on(groups.FIND_COORDINATOR, electing)
    arguments = ["groups", "--bootstrap-server", broker.bootstrap, "--describe", "--group", "g"]
    ran = run_command(arguments)
    assert ran.code == 1
    assert "the coordinator of group g cannot be found: COORDINATOR_NOT_AVAILABLE" in ran.err
    asked = broker.asked_for(groups.FindCoordinatorRequest)
    assert len(asked) == cluster.RETRIES_MAX


def test_a_partition_without_a_leader_is_waited_for_within_bounds(
    broker: AnsweringBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "RETRY_DELAY_S", 0)
    broker.logs["a", 0] = b""
    told = broker._metadata(metadata.MetadataRequest(topics=None))
    told.topics[0].partitions[0].error_code = 5  # type: ignore[misc]
    broker.on(metadata.METADATA, told)
    ran = run_command(["consume", "--bootstrap-server", broker.bootstrap, "--topic", "a"])
    assert ran.code == 1
    assert "topic a has a partition without a leader; is a broker down?" in ran.err
