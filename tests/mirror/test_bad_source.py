"""Sources that lie, change or cannot be reached: told with place and cause, and never copied."""

from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import KafkaError, KafkaException

from support.cluster_admin import admin_of, offsets_of
from support.kafka_node import KafkaNode
from support.log_bytes import batches_of
from support.mirror import Mirror, Partition, twinlog_command
from support.proxied_kafka import ProxiedKafka
from support.server_process import free_port
from support.source_data import flush, producer_of
from support.tampering_proxy import TamperingProxy
from support.twinlog_process import TwinlogProcess
from support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.cluster, pytest.mark.slow]

GOOD: Final = 50


def _produce(node: KafkaNode, topic: str, *values: bytes) -> None:
    producer = producer_of(node)
    for value in values:
        producer.produce(topic, value, partition=0)
    flush(producer)


def _fifty(text: str) -> list[bytes]:
    return [f"{text} {number}".encode() for number in range(GOOD)]


def test_a_corrupt_batch_fails_its_partition_and_no_other_and_is_never_written(
    proxied: ProxiedKafka, twinlog: TwinlogProcess
) -> None:
    bad, good = ("spoilt", 0), ("unspoilt", 0)
    for topic, _ in (bad, good):
        proxied.node.create_topic(topic)
        _produce(proxied.node, topic, *_fifty("good"))
    _produce(proxied.node, "spoilt", b"marker-of-the-spoilt: payload")
    _produce(proxied.node, "spoilt", b"after")
    proxied.proxy.spoil(b"marker-of-the-spoilt:")
    mirror = Mirror(twinlog, proxied.node, "lied-to")
    mirror.create(bootstrap_servers=proxied.proxy.bootstrap)
    mirror.start([bad[0], good[0]])
    mirror.await_row(bad, "FAILED", str(GOOD), "CRC", destinationOffset=GOOD, lag=2)
    assert proxied.proxy.spoilt_count > 0
    kept = list(batches_of(twinlog.partition_folder(*bad)))
    assert kept[-1].last_offset == GOOD - 1
    assert not any(b"marker-of-the-spoilt" in batch.content for batch in kept)

    _produce(proxied.node, good[0], *_fifty("more"))
    mirror.await_caught_up([good])
    mirror.assert_equal([good])
    mirror.await_states([good], "MIRRORING")

    proxied.proxy.spoil(b"")
    mirror.await_caught_up([bad])
    mirror.assert_equal([bad])
    mirror.await_states([bad], "MIRRORING")


def test_a_failed_partition_can_be_stopped_and_written_to(
    proxied: ProxiedKafka, twinlog: TwinlogProcess
) -> None:
    of = ("spoilt-for-good", 0)
    proxied.node.create_topic(of[0])
    _produce(proxied.node, of[0], *_fifty("good"))
    _produce(proxied.node, of[0], b"marker-for-good: payload")
    proxied.proxy.spoil(b"marker-for-good:")
    mirror = Mirror(twinlog, proxied.node, "given-up")
    mirror.create(bootstrap_servers=proxied.proxy.bootstrap)
    mirror.start([of[0]])
    mirror.await_states([of], "FAILED")
    proxied.proxy.cut()
    mirror.stop([of[0]])
    mirror.await_states([of], "STOPPED")
    producer = producer_of(twinlog)
    producer.produce(of[0], b"written here", partition=0)
    flush(producer)
    # The mirrored records, the producer reset, and what was written.
    assert offsets_of(twinlog, *of) == (0, GOOD + 2)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("bootstrap.servers={kafka}\nfetch.wait.max.mss=100\n", ["fetch.wait.max.mss", "line 2"]),
        (
            "bootstrap.servers={kafka}\nfetch.max.bytes=lots\n",
            ["fetch.max.bytes", "lots", "line 2"],
        ),
        ("topics.include=a\n", ["bootstrap.servers"]),
        ("bootstrap.servers={kafka}\ntopics.include=a(\n", ["topics.include", "a("]),
        ("bootstrap.servers=127.0.0.1:{nobody}\n", ["127.0.0.1:{nobody}", "cannot be reached"]),
        ("bootstrap.servers={kafka}\nsource.cluster.id=another\n", ["source.cluster.id=another"]),
    ],
    ids=["unknown key", "wrong value", "no source", "no pattern", "unreachable", "another cluster"],
)
def test_a_wrong_mirror_config_is_refused_at_create_with_what_is_wrong(
    kafka_4: KafkaNode, broker: TwinlogProcess, tmp_path: Path, lines: str, said: list[str]
) -> None:
    names = {"kafka": kafka_4.bootstrap, "nobody": str(free_port())}
    _assert_refused(broker, tmp_path, lines.format_map(names), [s.format_map(names) for s in said])


def test_a_source_that_accepts_but_never_answers_is_refused_at_create(
    broker: TwinlogProcess, tmp_path: Path
) -> None:
    proxy = TamperingProxy(free_port())
    proxy.start()
    proxy.fall_silent()
    try:
        lines = f"bootstrap.servers={proxy.bootstrap}\nrequest.timeout.ms=1000\n"
        timeout = "socket.connection.setup.timeout.ms=1000\n"
        _assert_refused(broker, tmp_path, lines + timeout, [proxy.bootstrap, "cannot be reached"])
    finally:
        proxy.stop()


def _assert_refused(broker: TwinlogProcess, folder: Path, lines: str, expected: list[str]) -> None:
    file = folder / "mirror.properties"
    file.write_text(lines)
    at = ("mirrors", "--bootstrap-server", broker.bootstrap)
    done = twinlog_command(*at, "--create", "--mirror", "wrong", "--mirror-config", str(file))
    assert done.exit_code != 0, done.stdout
    for words in expected:
        assert words in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert "wrong" not in twinlog_command(*at, "--list").stdout


def test_a_topic_of_an_old_message_format_fails_and_says_so(
    kafka_2_1: KafkaNode, twinlog: TwinlogProcess
) -> None:
    of, other = ("format-v1", 0), ("format-v2", 0)
    kafka_2_1.create_topic(of[0], config={"message.format.version": "0.10.2"})
    kafka_2_1.create_topic(other[0])
    for topic, _ in (of, other):
        _produce(kafka_2_1, topic, b"old")
    mirror = Mirror(twinlog, kafka_2_1, "antiquary")
    mirror.create()
    mirror.start([of[0], other[0]])
    mirror.await_row(of, "FAILED", "message format")
    assert offsets_of(twinlog, *of) == (0, 0)
    mirror.await_caught_up([other])


def test_a_deleted_source_topic_fails_its_copy_which_stays(
    any_kafka: KafkaNode, watchful: TwinlogProcess, fresh: str
) -> None:
    of = (fresh, 0)
    mirror = _mirrored(any_kafka, watchful, of)
    _delete(any_kafka, of[0])
    mirror.await_row(of, "FAILED", "deleted")
    assert offsets_of(watchful, *of) == (0, GOOD)
    mirror.stop([of[0]])
    mirror.await_states([of], "STOPPED")
    producer = producer_of(watchful)
    producer.produce(of[0], b"goes on here", partition=0)
    flush(producer)


@pytest.mark.parametrize("meanwhile", ["up", "down"])
def test_a_recreated_source_topic_is_told_from_the_old_one_and_never_mixed_with_it(
    any_kafka: KafkaNode, watchful: TwinlogProcess, fresh: str, meanwhile: str
) -> None:
    of = (fresh, 0)
    mirror = _mirrored(any_kafka, watchful, of)
    before = [batch.content for batch in batches_of(watchful.partition_folder(*of))]
    if meanwhile == "down":
        watchful.stop()
    _delete(any_kafka, fresh)
    wait_until(lambda: _is_created(any_kafka, fresh), f"{fresh} can be created again")
    # Kafka 2.1 has no topic ids: there, another topic is known by what is where the old one ended.
    _produce(any_kafka, fresh, *_fifty("another"), *_fifty("and more"))
    if meanwhile == "down":
        watchful.start()
    mirror.await_states([of], "FAILED")
    assert [batch.content for batch in batches_of(watchful.partition_folder(*of))] == before


def _mirrored(node: KafkaNode, twinlog: TwinlogProcess, of: Partition) -> Mirror:
    node.create_topic(of[0])
    _produce(node, of[0], *_fifty("first"))
    mirror = Mirror(twinlog, node, "watching")
    mirror.create()
    mirror.start([of[0]])
    mirror.await_caught_up([of])
    return mirror


def _delete(node: KafkaNode, topic: str) -> None:
    admin = admin_of(node)
    admin.delete_topics([topic])[topic].result(timeout=60)
    wait_until(
        lambda: not node.partition_folder(topic, 0).exists(), f"{topic} is deleted at the source"
    )


def _is_created(node: KafkaNode, topic: str) -> bool:
    """Create a topic unless ZooKeeper still knows the deleted one."""
    try:
        node.create_topic(topic)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
        return False
    return True
