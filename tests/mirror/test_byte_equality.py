"""Every kind of data of Kafka 4.4 and 2.1 arrives byte for byte, and Kafka's dumper agrees."""

import pytest

from support.java_tools import check_partition_folders
from support.kafka import Source
from support.mirror import Mirror, producing
from support.twinlog_process import TwinlogProcess
from support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.cluster, pytest.mark.slow]


def test_every_kind_of_batch_arrives_unchanged(source: Source, twinlog: TwinlogProcess) -> None:
    mirror = Mirror(twinlog, source.node)
    mirror.create()
    mirror.start(source.data.topics)
    mirror.await_caught_up(source.data.partitions)
    compared = mirror.assert_equal(source.data.partitions)
    assert sum(each.equal_batches for each in compared) > 100
    twinlog.stop()
    folders = [twinlog.partition_folder(*of) for of in source.data.partitions]
    check_partition_folders(folders)


def test_logs_stay_equal_while_producers_go_on(source: Source, twinlog: TwinlogProcess) -> None:
    topics = ["busy-1", "busy-2"]
    for topic in topics:
        source.node.create_topic(topic, partitions=2, config={"segment.ms": "500"})
    mirror = Mirror(twinlog, source.node)
    mirror.create()
    partitions = [(topic, partition) for topic in topics for partition in range(2)]
    with producing(source.node, topics) as produced:
        mirror.start(topics)
        for _ in range(3):
            before = produced[0]
            mirror.await_more(partitions)
            wait_until(lambda: produced[0] > before, "the producers go on")  # noqa: B023
    mirror.await_caught_up(partitions)
    mirror.assert_equal(partitions)
