"""What clients may not do to a topic while it is mirrored, and may once it is stopped."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)

from support.cluster_admin import admin_of, delete_records, offsets_of
from support.kafka_node import KafkaNode
from support.mirror import Mirror, twinlog_command
from support.positions import why_produce_fails
from support.source_data import flush, producer_of
from support.twinlog_process import TwinlogProcess
from support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.cluster, pytest.mark.slow]

MIRROR: Final = "guardian"


@dataclass(frozen=True, slots=True)
class Guarded:
    """A topic of 50 records that is mirrored."""

    source: KafkaNode
    twinlog: TwinlogProcess
    mirror: Mirror
    topic: str


@pytest.fixture
def guarded(kafka_4: KafkaNode, twinlog: TwinlogProcess, fresh: str) -> Guarded:
    """Mirror a topic."""
    kafka_4.create_topic(fresh)
    producer = producer_of(kafka_4)
    for number in range(50):
        producer.produce(fresh, f"{number}".encode(), partition=0)
    flush(producer)
    mirror = Mirror(twinlog, kafka_4, MIRROR)
    mirror.create()
    mirror.start([fresh])
    mirror.await_caught_up([(fresh, 0)])
    return Guarded(kafka_4, twinlog, mirror, fresh)


def _delete_records(admin: AdminClient, topic: str) -> Any:
    (future,) = admin.delete_records([TopicPartition(topic, 0, 10)]).values()
    return future.result(timeout=60)


def _grow(admin: AdminClient, topic: str) -> Any:
    return admin.create_partitions([NewPartitions(topic, 3)])[topic].result(timeout=60)


def _configure(admin: AdminClient, topic: str) -> Any:
    entry = ConfigEntry("retention.ms", "60000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    return admin.incremental_alter_configs([resource])[resource].result(timeout=60)


def _delete(admin: AdminClient, topic: str) -> Any:
    return admin.delete_topics([topic])[topic].result(timeout=60)


GUARDED: Final[tuple[Callable[[AdminClient, str], Any], ...]] = (
    _delete_records,
    _grow,
    _configure,
    _delete,
)


def test_a_mirrored_topic_is_changed_by_its_source_alone_until_it_is_stopped(
    guarded: Guarded,
) -> None:
    admin, of = admin_of(guarded.twinlog), (guarded.topic, 0)
    for change in GUARDED:
        with pytest.raises(KafkaException) as refused:
            change(admin, guarded.topic)
        error = refused.value.args[0]
        assert error.name() in ("POLICY_VIOLATION", "INVALID_REQUEST"), (change, error)
        # The others' answers, in the versions that librdkafka speaks, have no room for words.
        if change in (_grow, _configure):
            assert MIRROR in error.str(), (change, error)
    refusal = why_produce_fails(guarded.twinlog, guarded.topic) or "accepted"
    assert MIRROR in refusal
    assert offsets_of(guarded.twinlog, *of) == (0, 50)
    guarded.mirror.stop([guarded.topic])
    guarded.mirror.await_states([of], "STOPPED")
    assert why_produce_fails(guarded.twinlog, guarded.topic) is None
    for change in GUARDED:
        change(admin, guarded.topic)


def test_the_source_grows_trims_and_configures_the_mirrored_topic(
    kafka_4: KafkaNode, watchful: TwinlogProcess, fresh: str
) -> None:
    kafka_4.create_topic(fresh, config={"retention.ms": "500000000"})
    mirror = Mirror(watchful, kafka_4, MIRROR)
    mirror.create()
    mirror.start([fresh])
    mirror.await_states([(fresh, 0)], "MIRRORING")
    admin = admin_of(kafka_4)
    _grow(admin, fresh)
    # Producers that do not know of it yet would drop records for a partition that there is not.
    assert offsets_of(kafka_4, fresh, 2) == (0, 0)
    producer = producer_of(kafka_4)
    for partition in range(3):
        for number in range(20):
            producer.produce(fresh, f"{number}".encode(), partition=partition)
    flush(producer)
    delete_records(kafka_4, fresh, 2, before=7)
    partitions = [(fresh, partition) for partition in range(3)]
    mirror.await_caught_up(partitions)
    mirror.assert_equal(partitions)
    _assert_setting(watchful, fresh, "500000000")
    _configure(admin, fresh)
    _assert_setting(watchful, fresh, "60000")


def _assert_setting(twinlog: TwinlogProcess, topic: str, value: str) -> None:
    admin = admin_of(twinlog)
    resource = ConfigResource(ResourceType.TOPIC, topic)

    def now() -> str:
        found = admin.describe_configs([resource])[resource].result(timeout=60)
        return str(found["retention.ms"].value)

    wait_until(lambda: now() == value, lambda: f"retention.ms is {value}, not {now()}")


def test_times_out_of_bounds_are_kept_as_the_source_has_them(
    kafka_4: KafkaNode, twinlog: TwinlogProcess, fresh: str
) -> None:
    kafka_4.create_topic(
        fresh,
        config={
            "message.timestamp.before.max.ms": "9223372036854775807",
            "message.timestamp.after.max.ms": "9223372036854775807",
            "retention.ms": "-1",
        },
    )
    producer = producer_of(kafka_4)
    for timestamp_ms in (1, 4_000_000_000_000, 86_400_000):
        producer.produce(fresh, b"when?", partition=0, timestamp=timestamp_ms)
        flush(producer)
    mirror = Mirror(twinlog, kafka_4, MIRROR)
    mirror.create()
    mirror.start([fresh])
    mirror.await_caught_up([(fresh, 0)])
    (compared,) = mirror.assert_equal([(fresh, 0)])
    assert compared.equal_batches == 3


def test_start_and_stop_without_topics_or_mirror_are_refused_with_what_is_missing(
    broker: TwinlogProcess,
) -> None:
    at = ("mirrors", "--bootstrap-server", broker.bootstrap)
    for arguments, missing in (
        (("--start", "--mirror", "m"), "--topics"),
        (("--start", "--mirror", "m", "--topics", ","), "--topics"),
        (("--stop", "--mirror", "m"), "--topics"),
        (("--start", "--topics", "a"), "--mirror"),
        (("--create", "--mirror", "m"), "--mirror-config"),
        (("--start", "--mirror", "nobody", "--topics", "a"), "nobody"),
        (("--stop", "--mirror", "nobody", "--topics", "a"), "nobody"),
        (("--start", "--mirror", "m", "--topics", "a("), "a("),
    ):
        done = twinlog_command(*at, *arguments)
        assert done.exit_code != 0, arguments
        assert missing in done.stderr, (arguments, done.stderr)
        assert "Traceback" not in done.stderr
