"""A source that has cleaned its log since is followed: its batches are other bytes, not others."""

import pytest

from support.kafka_node import KafkaNode
from support.log_bytes import batches_of
from support.mirror import Mirror
from support.source_data import flush, producer_of
from support.twinlog_process import TwinlogProcess
from support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.cluster, pytest.mark.slow]

COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "100",
}


def test_a_last_batch_that_the_source_has_cleaned_meanwhile_is_known_all_the_same(
    any_kafka: KafkaNode, twinlog: TwinlogProcess, fresh: str
) -> None:
    of = (fresh, 0)
    any_kafka.create_topic(fresh, config=COMPACTED)
    producer = producer_of(any_kafka, enable_idempotence=True)
    for number in range(5):
        producer.produce(fresh, b"first %d" % number, key=b"key %d" % number, partition=0)
    flush(producer)
    mirror = Mirror(twinlog, any_kafka, "cleaned")
    mirror.create()
    mirror.start([fresh])
    mirror.await_caught_up([of])
    mirror.run("--pause", "--mirror", mirror.name, "--topics", fresh)
    mirror.await_states([of], "PAUSED")
    (last,) = batches_of(twinlog.partition_folder(*of))

    def is_cleaned() -> bool:
        # It is done to closed segments only: each record here may close one.
        producer.produce(fresh, b"later", key=b"key 0", partition=0)
        flush(producer)
        theirs = batches_of(any_kafka.partition_folder(*of))
        return not any(batch.content == last.content for batch in theirs)

    wait_until(is_cleaned, "the source has cleaned what was the last batch here")
    twinlog.kill()
    twinlog.start()
    mirror.run("--resume", "--mirror", mirror.name, "--topics", fresh)
    mirror.await_caught_up([of])
    mirror.await_states([of], "MIRRORING")
    assert next(batches_of(twinlog.partition_folder(*of))).content == last.content
