"""What a mirror's user may not do at a real source stops that alone, and goes on once it may."""

import json
import shlex
from pathlib import Path
from typing import Any, Final

import pytest

from support.java_tools import main_class
from support.jvm import run_tool
from support.kafka_install import KAFKA_4
from support.mirror import Mirror, Partition, twinlog_command
from support.positions import committed_offset
from support.secured_kafka import (
    ALL_NAMES,
    CLUSTER,
    CLUSTER_NAME,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    READ,
    TOPIC,
    SecuredKafka,
    as_keywords,
    reaching,
)
from support.source_data import commit, flush, producer_of
from support.twinlog_process import TwinlogProcess
from support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.cluster, pytest.mark.slow]

SCRAM: Final = "SCRAM-SHA-256"
PASSWORD: Final = "of-a-user-with-few-rights"
PAGE: Final = Path(__file__).parents[2] / "docs" / "mirroring.md"
ACLS_COMMAND: Final = "kafka-acls.sh --bootstrap-server SOURCE --add "
ON_CLUSTER: Final = (CLUSTER, CLUSTER_NAME, DESCRIBE)


class Limited:
    """A mirror whose user may do at its source what a test allows."""

    def __init__(self, kafka: SecuredKafka, twinlog: TwinlogProcess, user: str) -> None:
        self.kafka = kafka
        self.user = user
        self.mirror = Mirror(twinlog, kafka, "limited")
        kafka.set_password(PASSWORD, user=user)
        settings = reaching(kafka, "SASL", mechanism=SCRAM, user=user, password=PASSWORD)
        self.mirror.create(**as_keywords(settings), groups_sync_interval_ms="300")

    def make(self, topic: str) -> list[Partition]:
        """Make a topic of two partitions with some records."""
        self.kafka.create_topic(topic, partitions=2)
        self.produce(topic)
        return [(topic, 0), (topic, 1)]

    def produce(self, topic: str) -> None:
        """Write some records to both partitions."""
        producer = producer_of(self.kafka, compression_type="lz4")
        for number in range(100):
            producer.produce(topic, f"record {number}".encode(), partition=number % 2)
        flush(producer)

    def errors_of(self, topic: str) -> str:
        """Give what is wrong with a topic's partitions."""
        rows = [row for row in self.mirror.describe() if row["topic"] == topic]
        return " | ".join(str(row["errorMessage"]) for row in rows if row["errorMessage"])

    def task(self, name: str) -> dict[str, Any]:
        """Give what is told of one of the mirror's tasks."""
        told = self.mirror.run(
            "--describe", "--mirror", self.mirror.name, "--tasks", "--json"
        ).stdout
        rows: list[dict[str, Any]] = json.loads(told)
        return next((row for row in rows if row["task"] == name), {"state": "none", "detail": ""})

    def await_task(self, name: str, state: str, detail: str = "") -> None:
        """Return when a task is in that state, and says that."""

        def is_so() -> bool:
            task = self.task(name)
            return task["state"] == state and detail in (task["detail"] or "")

        wait_until(is_so, lambda: f"{name}: {state} {detail}: {self.task(name)}")


@pytest.fixture
def limited(secured_kafka: SecuredKafka, watchful: TwinlogProcess, fresh: str) -> Limited:
    """Give a mirror whose user may not do anything yet."""
    return Limited(secured_kafka, watchful, f"user-{fresh}")


def grant_line(user: str, operation: str, flag: str) -> str:
    """Give the command that an error offers."""
    return f"kafka-acls.sh --add --allow-principal User:{user} --operation {operation} {flag}"


@pytest.mark.parametrize("still_described", [True, False], ids=["seen", "hidden"])
def test_a_topic_that_may_not_be_read_any_more_waits_until_it_may_again(
    limited: Limited, fresh: str, *, still_described: bool
) -> None:
    kafka, user, mirror = limited.kafka, limited.user, limited.mirror
    lost, kept = f"{fresh}-lost", f"{fresh}-kept"
    partitions = [*limited.make(lost), *limited.make(kept)]
    # Read brings Describe along, and takes it away: without it a topic is not in a list of all.
    own = [(TOPIC, name, what) for name in (lost, kept) for what in (READ, DESCRIBE_CONFIGS)]
    kafka.allow([*own, (GROUP, ALL_NAMES, DESCRIBE), ON_CLUSTER], user=user)
    if still_described:
        kafka.allow([(TOPIC, lost, DESCRIBE)], user=user)
    commit(kafka, fresh, {(lost, 0): 7, (kept, 0): 9})
    mirror.start([lost, kept])
    mirror.await_caught_up(partitions)
    wait_until(
        lambda: committed_offset(mirror.twinlog, fresh, lost) == 7, "group offsets are there"
    )
    revoked = [(TOPIC, lost, READ), (TOPIC, lost, DESCRIBE_CONFIGS)]
    kafka.forbid(revoked, user=user)
    mirror.await_states([(lost, 0), (lost, 1)], "FAILED")
    missing = "Read" if still_described else "Describe"
    told = grant_line(user, missing, f"--topic {lost}")
    wait_until(lambda: told in limited.errors_of(lost), lambda: limited.errors_of(lost))
    limited.produce(lost)
    limited.produce(kept)
    mirror.await_caught_up([(kept, 0), (kept, 1)])
    mirror.await_states([(kept, 0), (kept, 1)], "MIRRORING")
    if not still_described:
        limited.await_task("topics", "FAILED", told)
    # It is not taken for deleted, however often the source's topics are looked at.
    rows = [row for row in mirror.describe() if row["topic"] == lost]
    assert all(int(str(row["retryAttempt"])) >= 0 for row in rows), rows
    assert committed_offset(mirror.twinlog, fresh, lost) == 7
    kafka.allow(revoked, user=user)
    mirror.await_caught_up(partitions)
    mirror.await_states(partitions, "MIRRORING")
    wait_until(lambda: not limited.errors_of(lost), lambda: limited.errors_of(lost))
    limited.await_task("topics", "OK")
    mirror.assert_equal(partitions)


def test_a_partition_that_was_given_up_goes_on_when_it_is_recovered(
    secured_kafka: SecuredKafka, fresh: str, tmp_path: Path
) -> None:
    impatient = TwinlogProcess(
        tmp_path / "impatient",
        settings={
            "mirror.failed.retry.max.attempts": "2",
            "mirror.metadata.refresh.interval.ms": "300",
        },
    )
    impatient.start()
    try:
        limited = Limited(secured_kafka, impatient, f"user-{fresh}")
        mirror, user = limited.mirror, limited.user
        partitions = limited.make(fresh)
        rights = [(TOPIC, fresh, READ), (TOPIC, fresh, DESCRIBE_CONFIGS)]
        secured_kafka.allow([*rights, (TOPIC, fresh, DESCRIBE)], user=user)
        mirror.start([fresh])
        mirror.await_caught_up(partitions)
        secured_kafka.forbid([(TOPIC, fresh, READ)], user=user)
        mirror.await_states(partitions, "FAILED")
        wait_until(
            lambda: all(int(str(row["retryAttempt"])) > 2 for row in mirror.describe()),
            lambda: f"the attempts are used up: {mirror.describe()}",
        )
        limited.produce(fresh)
        secured_kafka.allow([(TOPIC, fresh, READ)], user=user)
        assert set(mirror.states().values()) == {"FAILED"}
        mirror.run("--recover", "--mirror", mirror.name, "--topics", fresh)
        mirror.await_caught_up(partitions)
        mirror.assert_equal(partitions)
    finally:
        impatient.stop()


def test_settings_that_may_not_be_seen_are_told_and_the_rest_goes_on(
    limited: Limited, fresh: str
) -> None:
    kafka, user, mirror = limited.kafka, limited.user, limited.mirror
    first, second = f"{fresh}-first", f"{fresh}-second"
    partitions = [*limited.make(first), *limited.make(second)]
    kafka.allow([(TOPIC, first, READ), (TOPIC, second, READ), ON_CLUSTER], user=user)
    kafka.allow([(TOPIC, first, DESCRIBE_CONFIGS)], user=user)
    mirror.start([first])
    mirror.await_caught_up(partitions[:2])
    kafka.forbid([(TOPIC, first, DESCRIBE_CONFIGS)], user=user)
    told = grant_line(user, "DescribeConfigs", f"--topic {first}")
    limited.await_task("topic configs", "FAILED", told)
    limited.produce(first)
    mirror.await_caught_up(partitions[:2])
    assert set(mirror.states().values()) == {"MIRRORING"}
    # A topic is not begun with settings that are not the source's: it could lose records by them.
    begun = twinlog_command(
        "mirrors", "--bootstrap-server", mirror.twinlog.bootstrap, "--mirror", mirror.name,
        "--start", "--topics", second,
    )  # fmt: skip
    assert begun.exit_code == 1
    assert grant_line(user, "DescribeConfigs", f"--topic {second}") in begun.stderr
    kafka.allow([(TOPIC, ALL_NAMES, DESCRIBE_CONFIGS)], user=user)
    limited.await_task("topic configs", "OK")
    mirror.start([second])
    mirror.await_caught_up(partitions)
    mirror.assert_equal(partitions)


def test_a_group_that_may_not_be_seen_is_told_and_the_others_come_over(
    limited: Limited, fresh: str
) -> None:
    kafka, user, mirror = limited.kafka, limited.user, limited.mirror
    limited.make(fresh)
    open_group, closed_group = f"{fresh}-open", f"{fresh}-closed"
    for group in (open_group, closed_group):
        commit(kafka, group, {(fresh, 0): 5})
    kafka.allow(
        [(TOPIC, fresh, READ), (TOPIC, fresh, DESCRIBE_CONFIGS), (GROUP, open_group, DESCRIBE)],
        user=user,
    )
    kafka.allow([ON_CLUSTER], user=user)
    mirror.start([fresh])
    mirror.await_caught_up([(fresh, 0), (fresh, 1)])
    wait_until(
        lambda: committed_offset(mirror.twinlog, open_group, fresh) == 5,
        "the offsets of the open group are there",
    )
    limited.await_task(
        "group offsets", "FAILED", grant_line(user, "Describe", f"--group {closed_group}")
    )
    assert committed_offset(mirror.twinlog, closed_group, fresh) is None
    assert mirror.states()[fresh, 0] == "MIRRORING"
    kafka.allow([(GROUP, ALL_NAMES, DESCRIBE)], user=user)
    wait_until(
        lambda: committed_offset(mirror.twinlog, closed_group, fresh) == 5,
        "the offsets of the closed group are there",
    )


def test_acls_that_may_not_be_seen_are_told_and_the_rest_goes_on(
    limited: Limited, fresh: str
) -> None:
    kafka, user, mirror = limited.kafka, limited.user, limited.mirror
    partitions = limited.make(fresh)
    kafka.allow([(TOPIC, fresh, READ), (TOPIC, fresh, DESCRIBE_CONFIGS)], user=user)
    mirror.start([fresh])
    mirror.await_caught_up(partitions)
    limited.await_task("acls", "FAILED", grant_line(user, "Describe", "--cluster"))
    limited.await_task("topics", "OK")
    assert set(mirror.states().values()) == {"MIRRORING"}
    kafka.allow([ON_CLUSTER], user=user)
    wait_until(
        lambda: limited.task("acls")["state"] != "FAILED",
        lambda: str(limited.task("acls")),
    )


def test_the_permissions_of_the_page_are_what_a_mirror_needs(limited: Limited, fresh: str) -> None:
    kafka, mirror = limited.kafka, limited.mirror
    partitions = limited.make(fresh)
    commit(kafka, fresh, {(fresh, 0): 5})
    commands = [line for line in PAGE.read_text().splitlines() if line.startswith(ACLS_COMMAND)]
    assert len(commands) == 3
    for command in commands:
        given = command.replace("SOURCE", kafka.bootstrap).replace(
            "User:mirror", f"User:{limited.user}"
        )
        run_tool(KAFKA_4, main_class(KAFKA_4, "AclCommand"), *shlex.split(given)[1:])
    mirror.start([fresh])
    mirror.await_caught_up(partitions)
    wait_until(
        lambda: committed_offset(mirror.twinlog, fresh, fresh) == 5,
        "the group's offsets are there",
    )
    for task in ("topics", "topic configs", "group offsets"):
        limited.await_task(task, "OK")
    wait_until(lambda: limited.task("acls")["state"] != "FAILED", lambda: str(limited.task("acls")))
    mirror.assert_equal(partitions)
