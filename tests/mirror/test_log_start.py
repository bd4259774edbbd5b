"""The start of a mirrored log is the source's, however and whenever that moved."""

import re

import pytest

from support.cluster_admin import delete_records, offsets_of
from support.kafka_node import KafkaNode
from support.mirror import Mirror, Partition
from support.proxied_kafka import ProxiedKafka
from support.source_data import flush, producer_of
from support.twinlog_process import TwinlogProcess
from support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.cluster, pytest.mark.slow]


def _produce(node: KafkaNode, topic: str, count: int) -> None:
    """Write batches of 20 records, so that a start can lie inside one."""
    producer = producer_of(node, compression_type="zstd")
    for number in range(count):
        producer.produce(topic, f"record {number}".encode() * 10, partition=0)
        if number % 20 == 19:
            flush(producer)
    flush(producer)


def _mirrored(node: KafkaNode, twinlog: TwinlogProcess, topic: str, **settings: str) -> Mirror:
    node.create_topic(topic)
    _produce(node, topic, 200)
    mirror = Mirror(twinlog, node, "start-of")
    mirror.create(**settings)
    mirror.start([topic])
    mirror.await_caught_up([(topic, 0)])
    return mirror


def _await_range(twinlog: TwinlogProcess, of: Partition, start: int, end: int) -> None:
    wait_until(
        lambda: offsets_of(twinlog, *of) == (start, end),
        lambda: f"{of} is {start} to {end}, not {offsets_of(twinlog, *of)}",
    )


def test_a_trim_at_the_source_is_followed_with_no_new_data(
    any_kafka: KafkaNode, twinlog: TwinlogProcess, fresh: str
) -> None:
    mirror = _mirrored(any_kafka, twinlog, fresh)
    of = (fresh, 0)
    for before in (30, 111, 200):
        delete_records(any_kafka, *of, before=before)
        _await_range(twinlog, of, before, 200)
        mirror.assert_equal([of])
    mirror.await_row(of, "MIRRORING", lag=0)


def test_a_trim_while_twinlog_is_down_is_followed_exactly_after_its_start(
    any_kafka: KafkaNode, twinlog: TwinlogProcess, fresh: str
) -> None:
    mirror = _mirrored(any_kafka, twinlog, fresh)
    of = (fresh, 0)
    twinlog.kill()
    delete_records(any_kafka, *of, before=110)
    twinlog.start()
    _await_range(twinlog, of, 110, 200)
    twinlog.stop()
    twinlog.start()
    _await_range(twinlog, of, 110, 200)
    _produce(any_kafka, fresh, 20)
    _await_range(twinlog, of, 110, 220)
    mirror.assert_equal([of])


def test_a_trim_while_the_mirror_is_behind_is_applied_when_it_has_caught_up(
    proxied: ProxiedKafka, twinlog: TwinlogProcess, fresh: str
) -> None:
    node = proxied.node
    node.create_topic(fresh)
    _produce(node, fresh, 200)
    mirror = Mirror(twinlog, node, "behind")
    of = (fresh, 0)
    proxied.proxy.spoil(b"record 100record")
    producer = producer_of(node)
    producer.produce(fresh, b"record 100record", partition=0)
    flush(producer)
    _produce(node, fresh, 40)
    mirror.create(bootstrap_servers=proxied.proxy.bootstrap)
    mirror.start([fresh])
    _await_range(twinlog, of, 0, 200)
    delete_records(node, *of, before=150)
    proxied.proxy.spoil(b"")
    _await_range(twinlog, of, 150, 241)
    mirror.assert_equal([of])


def test_records_deleted_before_they_came_are_a_gap_that_is_told_with_its_range(
    any_kafka: KafkaNode, twinlog: TwinlogProcess, fresh: str
) -> None:
    mirror = _mirrored(any_kafka, twinlog, fresh)
    of = (fresh, 0)
    twinlog.stop()
    _produce(any_kafka, fresh, 100)
    delete_records(any_kafka, *of, before=250)
    twinlog.start()
    # Not at once: the start lies inside a batch, which comes whole.
    _await_range(twinlog, of, 250, 300)
    mirror.assert_equal([of])
    mirror.await_states([of], "MIRRORING")

    def lost() -> list[str]:
        return [line for line in twinlog.server.log_text().splitlines() if "records lost" in line]

    wait_until(
        lambda: any(re.search(r"\b200\b.*\b250\b|\b250\b.*\b200\b", line) for line in lost()),
        lambda: f"200 to 250 are told as lost: {lost()}",
    )


def test_a_gap_fails_the_partition_where_that_is_the_policy(
    any_kafka: KafkaNode, twinlog: TwinlogProcess, fresh: str
) -> None:
    mirror = _mirrored(any_kafka, twinlog, fresh, mirror_gap_policy="fail")
    of = (fresh, 0)
    twinlog.stop()
    _produce(any_kafka, fresh, 100)
    delete_records(any_kafka, *of, before=250)
    twinlog.start()
    mirror.await_row(of, "FAILED", "200", "250")
    assert offsets_of(twinlog, *of) == (0, 200), "nothing here is thrown away"
