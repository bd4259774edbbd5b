"""A source that goes away in any manner is followed again when it is back, without loss."""

from typing import Final

import pytest

from support.cluster_admin import admin_of
from support.kafka_node import KafkaNode
from support.log_bytes import batches_of
from support.mirror import Mirror, Partition, producing, twinlog_command
from support.positions import leader_epochs
from support.proxied_kafka import ProxiedKafka
from support.source_data import flush, producer_of
from support.twinlog_process import TwinlogProcess
from support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.cluster, pytest.mark.slow]

# A peer that says nothing is given up after these, and not before.
PATIENT: Final = {
    "request_timeout_ms": "600000",
    "socket_timeout_ms": "600000",
    "socket_connection_setup_timeout_ms": "600000",
}
IMPATIENT: Final = dict.fromkeys(PATIENT, "2000")


def _produce(node: KafkaNode, topic: str, count: int) -> None:
    producer = producer_of(node, compression_type="lz4")
    for number in range(count):
        producer.produce(topic, f"record {number}".encode(), partition=number % 2)
    flush(producer)


def _begun(
    proxied: ProxiedKafka, twinlog: TwinlogProcess, topic: str, **settings: str
) -> tuple[Mirror, list[Partition]]:
    proxied.node.create_topic(topic, partitions=2)
    _produce(proxied.node, topic, 100)
    partitions = [(topic, 0), (topic, 1)]
    mirror = Mirror(twinlog, proxied.node, "persistent")
    mirror.create(bootstrap_servers=proxied.proxy.bootstrap, **settings)
    mirror.start([topic])
    mirror.await_caught_up(partitions)
    return mirror, partitions


@pytest.mark.parametrize("way", ["killed", "shut down"])
def test_a_source_that_is_restarted_is_followed_in_its_new_leader_epoch(
    proxied: ProxiedKafka, twinlog: TwinlogProcess, fresh: str, way: str
) -> None:
    mirror, partitions = _begun(proxied, twinlog, fresh)
    epochs = _epochs_in(twinlog, partitions[0])
    if way == "killed":
        proxied.node.kill()
    else:
        proxied.node.stop()
    # What a reader of the destination has is not touched by it.
    assert mirror.describe()
    proxied.node.start()
    _produce(proxied.node, fresh, 100)
    mirror.await_caught_up(partitions)
    mirror.assert_equal(partitions)
    mirror.await_states(partitions, "MIRRORING")
    newer = _epochs_in(twinlog, partitions[0])
    assert max(newer) > max(epochs), "the restart made a new leader epoch, and records of it came"
    assert leader_epochs(twinlog, [fresh])[partitions[0]] >= max(newer)


def _epochs_in(twinlog: TwinlogProcess, of: Partition) -> set[int]:
    return {batch.leader_epoch for batch in batches_of(twinlog.partition_folder(*of))}


def test_connections_cut_again_and_again_lose_and_repeat_nothing(
    proxied: ProxiedKafka, twinlog: TwinlogProcess, fresh: str
) -> None:
    mirror, partitions = _begun(proxied, twinlog, fresh)
    with producing(proxied.node, [fresh]):
        for _ in range(4):
            mirror.await_more(partitions)
            proxied.proxy.cut()
            proxied.proxy.heal()
    mirror.await_caught_up(partitions)
    mirror.assert_equal(partitions)
    mirror.await_states(partitions, "MIRRORING")


def test_a_half_open_connection_is_given_up_and_mirroring_goes_on(
    proxied: ProxiedKafka, twinlog: TwinlogProcess, fresh: str
) -> None:
    mirror, partitions = _begun(proxied, twinlog, fresh, **PATIENT)
    settings = ",".join(f"{key.replace('_', '.')}={value}" for key, value in IMPATIENT.items())
    at = ("configs", "--bootstrap-server", twinlog.bootstrap, "--entity-type", "cluster-mirrors")
    done = twinlog_command(*at, "--entity-name", mirror.name, "--alter", "--add-config", settings)
    assert done.exit_code == 0, done.stderr
    proxied.proxy.fall_silent()
    _produce(proxied.node, fresh, 60)
    wait_until(lambda: mirror.lag_of(partitions[0]) is not None, "the silence holds records back")
    proxied.proxy.heal()
    mirror.await_caught_up(partitions)
    mirror.assert_equal(partitions)
    mirror.await_states(partitions, "MIRRORING")


def test_a_topic_made_again_while_its_source_was_out_of_reach_is_not_mixed_with_its_copy(
    proxied: ProxiedKafka, twinlog: TwinlogProcess, fresh: str
) -> None:
    mirror, partitions = _begun(proxied, twinlog, fresh)
    before = {of: _contents(twinlog, of) for of in partitions}
    proxied.proxy.cut()
    admin = admin_of(proxied.node)
    admin.delete_topics([fresh])[fresh].result(timeout=60)
    wait_until(
        lambda: not proxied.node.partition_folder(fresh, 0).exists(), "it is deleted over there"
    )
    proxied.node.create_topic(fresh, partitions=2)
    _produce(proxied.node, fresh, 300)  # nothing is odd about its end, start or leader epoch
    proxied.proxy.heal()
    mirror.await_states(partitions, "FAILED")
    assert {of: _contents(twinlog, of) for of in partitions} == before


def _contents(twinlog: TwinlogProcess, of: Partition) -> list[bytes]:
    return [batch.content for batch in batches_of(twinlog.partition_folder(*of))]


def test_the_lag_is_told_while_records_wait_and_is_none_when_they_are_here(
    proxied: ProxiedKafka, twinlog: TwinlogProcess, fresh: str
) -> None:
    proxied.node.create_topic(fresh)
    producer = producer_of(proxied.node)
    marker = f"marker of {fresh}:".encode()
    # What is spoilt on the way is not written: the records from there on wait.
    producer.produce(fresh, marker + b"payload", partition=0)
    flush(producer)
    for number in range(40):
        producer.produce(fresh, f"{number}".encode(), partition=0)
    flush(producer)
    proxied.proxy.spoil(marker)
    mirror = Mirror(twinlog, proxied.node, "late")
    mirror.create(bootstrap_servers=proxied.proxy.bootstrap)
    mirror.start([fresh])
    seen: list[tuple[object, ...]] = []

    def is_told() -> bool:
        # While it is tried again, until the source has answered, the lag is not known.
        (row,) = mirror.describe()
        seen.append((row["state"], row["sourceOffset"], row["destinationOffset"], row["lag"]))
        return seen[-1] == ("FAILED", 41, 0, 41)

    wait_until(is_told, lambda: f"41 records wait: {seen}")
    proxied.proxy.spoil(b"")
    mirror.await_caught_up([(fresh, 0)])

    def lag() -> object:
        return mirror.describe()[0]["lag"]

    wait_until(lambda: lag() == 0, lambda: f"the lag is 0, not {lag()}")
