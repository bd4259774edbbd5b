"""A source that wants TLS or a login is mirrored as any other, and what it refuses is told."""

import json
import time
from pathlib import Path
from typing import Final

import pytest

from support.cluster_admin import offsets_of
from support.kafka_install import KAFKA_2_1, require
from support.kafka_node import KafkaNode
from support.mirror import CommandRun, Mirror, Partition, twinlog_command
from support.secured_kafka import (
    NEEDED,
    REAUTHENTICATION_MS,
    SCRAM_MODULE,
    OldSecuredKafka,
    SecuredKafka,
    as_keywords,
    in_properties,
    jaas,
    reaching,
)
from support.source_data import fill, flush, producer_of
from support.twinlog_process import TwinlogProcess
from support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.cluster, pytest.mark.slow]

SCRAM: Final = "SCRAM-SHA-512"
REFUSAL: Final = "SASL_AUTHENTICATION_FAILED: Authentication failed during authentication"
WAYS: Final = [
    ("SASL", "PLAIN"),
    ("SASL", "SCRAM-SHA-256"),
    ("SASL", "SCRAM-SHA-512"),
    ("SASLSSL", "PLAIN"),
    ("SASLSSL", "SCRAM-SHA-256"),
    ("SSL", ""),
]


def produce(kafka: KafkaNode, topic: str, count: int = 200) -> None:
    """Write records of a kilobyte to both partitions, in several codecs."""
    for codec in ("none", "lz4", "zstd"):
        producer = producer_of(kafka, compression_type=codec)
        for number in range(count):
            producer.produce(topic, f"{number} ".encode() * 200, partition=number % 2)
        flush(producer)


def filled(kafka: KafkaNode, topic: str) -> list[Partition]:
    """Make a topic of two partitions and fill it."""
    kafka.create_topic(topic, partitions=2)
    produce(kafka, topic)
    return [(topic, 0), (topic, 1)]


def alter(twinlog: TwinlogProcess, mirror: str, change: str) -> CommandRun:
    """Change a mirror's config as an operator does."""
    return twinlog_command(
        "configs", "--bootstrap-server", twinlog.bootstrap, "--entity-type", "cluster-mirrors",
        "--entity-name", mirror, "--alter", "--add-config", change,
    )  # fmt: skip


def errors_of(mirror: Mirror) -> str:
    """Give what is wrong with the partitions, together."""
    return " | ".join(str(row["errorMessage"]) for row in mirror.describe() if row["errorMessage"])


def await_error(mirror: Mirror, wanted: str) -> None:
    """Return when the partitions tell that error, or none at all."""
    wait_until(
        lambda: wanted in errors_of(mirror) if wanted else not errors_of(mirror),
        lambda: f"the error is {wanted or 'none'}, not {errors_of(mirror)}",
    )


@pytest.mark.parametrize(("listener", "mechanism"), WAYS)
def test_a_secured_source_is_mirrored_byte_for_byte(
    secured_kafka: SecuredKafka, twinlog: TwinlogProcess, fresh: str, listener: str, mechanism: str
) -> None:
    partitions = filled(secured_kafka, fresh)
    mirror = Mirror(twinlog, secured_kafka, "secured")
    mirror.create(**as_keywords(reaching(secured_kafka, listener, mechanism=mechanism)))
    mirror.start([fresh])
    mirror.await_caught_up(partitions)
    produce(secured_kafka, fresh)
    mirror.await_caught_up(partitions)
    compared = mirror.assert_equal(partitions)
    assert sum(each.equal_batches for each in compared) > 10


def test_kafka_2_1_is_reached_by_a_login_too(
    twinlog: TwinlogProcess, fresh: str, tmp_path: Path
) -> None:
    require(KAFKA_2_1)
    kafka = OldSecuredKafka(tmp_path / "kafka-2.1")
    try:
        kafka.start()
        partitions = filled(kafka, fresh)
        mirror = Mirror(twinlog, kafka, "old")
        given = {
            "bootstrap_servers": f"127.0.0.1:{kafka.sasl_port}",
            "security_protocol": "SASL_PLAINTEXT",
        }
        with pytest.raises(AssertionError, match="SASL_AUTHENTICATION_FAILED"):
            mirror.create(**given, sasl_jaas_config=in_properties(jaas("wrong")))
        mirror.create(**given, sasl_jaas_config=in_properties(jaas()))
        mirror.start([fresh])
        mirror.await_caught_up(partitions)
        mirror.assert_equal(partitions)
    finally:
        kafka.stop()


def test_every_kind_of_batch_arrives_unchanged_over_tls_and_a_login(
    secured_kafka: SecuredKafka, twinlog: TwinlogProcess
) -> None:
    data = fill(secured_kafka)
    mirror = Mirror(twinlog, secured_kafka, "secured")
    mirror.create(**as_keywords(reaching(secured_kafka, "SASLSSL", mechanism=SCRAM)))
    mirror.start(data.topics)
    mirror.await_caught_up(data.partitions)
    compared = mirror.assert_equal(data.partitions)
    assert sum(each.equal_batches for each in compared) > 100


def test_certificates_may_stand_in_the_config_and_are_never_told(
    secured_kafka: SecuredKafka, twinlog: TwinlogProcess, fresh: str
) -> None:
    partitions = filled(secured_kafka, fresh)
    own = secured_kafka.certificates
    mirror = Mirror(twinlog, secured_kafka, "inline")
    mirror.create(
        bootstrap_servers=secured_kafka.address_of("SSL"),
        security_protocol="SSL",
        ssl_truststore_type="PEM",
        ssl_truststore_certificates=in_properties(own.trusted.read_text()),
        ssl_keystore_type="PEM",
        ssl_keystore_key=own.client_key.replace("\n", " "),
        ssl_keystore_certificate_chain=in_properties(own.client_chain),
    )
    mirror.start([fresh])
    mirror.await_caught_up(partitions)
    mirror.assert_equal(partitions)
    told = twinlog_command(
        "configs", "--bootstrap-server", twinlog.bootstrap, "--entity-type", "cluster-mirrors",
        "--entity-name", "inline", "--describe", "--all",
    )  # fmt: skip
    assert "ssl.keystore.type=PEM" in told.stdout
    secret = own.client_key.splitlines()[1]
    assert secret not in told.stdout
    assert secret not in twinlog.server.log_tail()


def test_a_login_that_ends_every_few_seconds_disturbs_nothing(
    secured_kafka: SecuredKafka, twinlog: TwinlogProcess, fresh: str
) -> None:
    partitions = filled(secured_kafka, fresh)
    mirror = Mirror(twinlog, secured_kafka, "renewing")
    mirror.create(**as_keywords(reaching(secured_kafka, "SASLSSL", mechanism=SCRAM)))
    mirror.start([fresh])
    # A broker that stands still ends a login that has expired meanwhile: then it is tried anew.
    assert any(is_undisturbed(secured_kafka, mirror, partitions) for _ in range(5))
    mirror.assert_equal(partitions)


def is_undisturbed(kafka: SecuredKafka, mirror: Mirror, partitions: list[Partition]) -> bool:
    """Mirror for as long as four logins hold; tell whether nothing went wrong meanwhile."""

    def failure_count() -> int:
        return mirror.twinlog.server.log_text().count("fetching from the source failed")

    before, errors = failure_count(), ""
    end = time.monotonic() + 4 * REAUTHENTICATION_MS / 1_000
    while time.monotonic() < end:
        produce(kafka, partitions[0][0], 20)
        mirror.await_caught_up(partitions)
        errors += errors_of(mirror)
    return failure_count() == before and not errors


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"sasl_jaas_config": in_properties(jaas("wrong", mechanism=SCRAM))}, REFUSAL),
        ({"sasl_mechanism": "PLAIN"}, "sasl.mechanism=PLAIN needs"),
        ({"security_protocol": "PLAINTEXT"}, "these are TLS bytes"),
        ({"ssl_truststore_location": "/nowhere.pem"}, "ssl.truststore.location=/nowhere.pem"),
        ({"ssl_truststore_type": "JKS"}, "keytool -list -rfc"),
    ],
    ids=["password", "mechanism", "protocol", "truststore", "jks"],
)
def test_a_mirror_that_cannot_get_in_is_not_created_and_the_reason_told(
    secured_kafka: SecuredKafka, twinlog: TwinlogProcess, settings: dict[str, str], why: str
) -> None:
    mirror = Mirror(twinlog, secured_kafka, "refused")
    given = as_keywords(reaching(secured_kafka, "SASLSSL", mechanism=SCRAM)) | settings
    with pytest.raises(AssertionError) as caught:
        mirror.create(**given)
    assert why in str(caught.value)
    assert '"wrong"' not in str(caught.value)
    assert "No mirrors found" in mirror.run("--list").stdout


def test_a_certificate_that_is_not_the_hosts_or_not_trusted_is_refused(
    secured_kafka: SecuredKafka, twinlog: TwinlogProcess
) -> None:
    given = as_keywords(reaching(secured_kafka, "SSL"))
    mirror = Mirror(twinlog, secured_kafka, "strict")
    elsewhere = {**given, "bootstrap_servers": secured_kafka.address_of("ELSEWHERE")}
    strangers = {**given, "ssl_truststore_location": str(secured_kafka.certificates.strangers)}
    nobody = {**given, "ssl_keystore_location": str(secured_kafka.certificates.unknown_client)}
    for wrong, why in (
        (elsewhere, "not valid for '127.0.0.1'"),
        (strangers, "its certificate is not trusted"),
        (nobody, "does it want another certificate of ours?"),
    ):
        with pytest.raises(AssertionError, match=why):
            mirror.create(**wrong)
    mirror.create(**elsewhere, ssl_endpoint_identification_algorithm="")


def test_a_password_changed_at_the_source_stops_the_mirror_until_it_is_right_again(
    secured_kafka: SecuredKafka, twinlog: TwinlogProcess, fresh: str
) -> None:
    user = "changing"
    secured_kafka.set_password("the-first", user=user)
    secured_kafka.allow(NEEDED, user=user)
    partitions = filled(secured_kafka, fresh)
    given = reaching(secured_kafka, "SASLSSL", mechanism=SCRAM, user=user, password="the-first")
    mirror = Mirror(twinlog, secured_kafka, "locked-out")
    mirror.create(**as_keywords(given))
    mirror.start([fresh])
    mirror.await_caught_up(partitions)
    # The broker asks for the login anew within seconds.
    secured_kafka.set_password("the-second", user=user)
    await_error(mirror, REFUSAL)
    produce(secured_kafka, fresh)
    assert set(mirror.states().values()) == {"MIRRORING"}
    assert offsets_of(twinlog, fresh, 0) != offsets_of(secured_kafka, fresh, 0)
    # Right again by the mirror's config ...
    login = f"sasl.jaas.config=[{jaas('the-second', user=user, mechanism=SCRAM)}]"
    assert alter(twinlog, mirror.name, login).exit_code == 0
    mirror.await_caught_up(partitions)
    await_error(mirror, "")
    # ... and by the source.
    login = f"sasl.jaas.config=[{jaas('the-third', user=user, mechanism=SCRAM)}]"
    assert alter(twinlog, mirror.name, login).exit_code == 0
    await_error(mirror, REFUSAL)
    produce(secured_kafka, fresh)
    secured_kafka.set_password("the-third", user=user)
    mirror.await_caught_up(partitions)
    await_error(mirror, "")
    mirror.assert_equal(partitions)
    said = twinlog.server.log.read_text()
    assert not [word for word in ("the-first", "the-second", "the-third") if word in said]


def test_a_config_that_makes_no_sense_is_not_taken(
    secured_kafka: SecuredKafka, twinlog: TwinlogProcess
) -> None:
    mirror = Mirror(twinlog, secured_kafka, "altered")
    mirror.create(**as_keywords(reaching(secured_kafka, "SASL", mechanism=SCRAM)))
    ran = alter(twinlog, mirror.name, f"sasl.jaas.config=[{SCRAM_MODULE} required username=x]")
    assert ran.exit_code == 1
    assert "sasl.jaas.config cannot be read: it must end with a semicolon" in ran.stderr


def test_the_operators_commands_come_in_with_a_config_of_their_own(
    secured_kafka: SecuredKafka, twinlog: TwinlogProcess, fresh: str, tmp_path: Path
) -> None:
    partitions = filled(secured_kafka, fresh)
    mirror = Mirror(twinlog, secured_kafka, "operated")
    settings = reaching(secured_kafka, "SASLSSL", mechanism=SCRAM)
    mirror.create(**as_keywords(settings))
    mirror.start([fresh])
    mirror.await_caught_up(partitions)
    file = tmp_path / "source.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    by = ("--source-command-config", str(file))
    told = json.loads(run(mirror, "--verify", "--json", *by).stdout)
    assert {row["result"] for row in told["partitions"]} == {"EQUAL"}
    assert run(mirror, "--stop", "--plan", "--topics", fresh, *by).exit_code == 0
    promoted = run(mirror, "--stop", "--promote", "--topics", fresh, *by)
    assert promoted.exit_code == 0, promoted.stderr
    assert set(mirror.states().values()) == {"STOPPED"}
    wrong = tmp_path / "wrong.properties"
    wrong.write_text(
        file.read_text().replace(settings["sasl.jaas.config"], jaas("wrong", mechanism=SCRAM))
    )
    refused = run(mirror, "--verify", "--source-command-config", str(wrong))
    assert refused.exit_code == 1
    assert REFUSAL in refused.stderr


def run(mirror: Mirror, *arguments: str) -> CommandRun:
    """Run the mirrors command, whatever comes of it."""
    where = ("mirrors", "--bootstrap-server", mirror.twinlog.bootstrap, "--mirror", mirror.name)
    return twinlog_command(*where, *arguments)
