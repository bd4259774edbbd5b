"""Where a mirror goes on is told by its own log alone: nothing comes twice, nothing is missed."""

import shutil
from pathlib import Path

import pytest

from support.java_tools import check_partition_folders
from support.kafka import Source
from support.kafka_node import KafkaNode
from support.mirror import Mirror
from support.proxied_kafka import ProxiedKafka
from support.source_data import flush, producer_of
from support.twinlog_process import TwinlogProcess

pytestmark = [pytest.mark.kafka, pytest.mark.cluster, pytest.mark.slow]


def test_every_kind_of_data_is_still_equal_after_an_orderly_restart_and_a_kill(
    source: Source, twinlog: TwinlogProcess
) -> None:
    partitions = source.data.partitions
    mirror = Mirror(twinlog, source.node, "restarted")
    mirror.create()
    mirror.start(source.data.topics)
    mirror.await_caught_up(partitions)
    for end in (twinlog.stop, twinlog.kill):
        end()
        twinlog.start()
        mirror.await_states(partitions, "MIRRORING")
        mirror.await_caught_up(partitions)
        mirror.assert_equal(partitions)
    twinlog.stop()
    check_partition_folders([twinlog.partition_folder(*of) for of in partitions])


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_of_what_is_here_only_the_last_batch_is_fetched_again_after_a_restart(
    proxied: ProxiedKafka, twinlog: TwinlogProcess, fresh: str, way: str
) -> None:
    node, of = proxied.node, (fresh, 0)
    node.create_topic(fresh)
    producer = producer_of(node)
    for value in (*(f"early of {fresh} {number}" for number in range(100)), "to be met again"):
        producer.produce(fresh, value.encode(), partition=0)
        flush(producer)
    mirror = Mirror(twinlog, node, "resumed")
    mirror.create(bootstrap_servers=proxied.proxy.bootstrap)
    mirror.start([fresh])
    mirror.await_caught_up([of])
    (twinlog.stop if way == "stop" else twinlog.kill)()
    before = proxied.proxy.spoilt_count
    # All that was mirrored before the last batch would arrive spoilt if it were fetched again.
    proxied.proxy.spoil(f"early of {fresh}".encode())
    twinlog.start()
    producer.produce(fresh, b"late", partition=0)
    flush(producer)
    mirror.await_caught_up([of])
    mirror.assert_equal([of])
    assert proxied.proxy.spoilt_count == before


def test_a_destination_wiped_and_made_anew_copies_everything_again(
    kafka_4: KafkaNode, tmp_path: Path, fresh: str
) -> None:
    kafka_4.create_topic(fresh)
    producer = producer_of(kafka_4)
    for number in range(100):
        producer.produce(fresh, f"{number}".encode(), partition=0)
    flush(producer)
    twinlog = TwinlogProcess(tmp_path / "wiped")
    try:
        for _ in range(2):
            twinlog.start()
            mirror = Mirror(twinlog, kafka_4, "same-name")
            mirror.create()
            mirror.start([fresh])
            mirror.await_caught_up([(fresh, 0)])
            (compared,) = mirror.assert_equal([(fresh, 0)])
            assert compared.equal_batches > 0
            twinlog.stop()
            shutil.rmtree(twinlog.log_folder)
    finally:
        twinlog.stop()
