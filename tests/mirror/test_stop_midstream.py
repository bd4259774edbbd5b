"""A stop in the middle of a stream leaves a prefix of the source, and takes writes behind it."""

import pytest

from support.kafka_node import KafkaNode
from support.log_bytes import assert_equal_logs, batches_of
from support.mirror import Mirror, producing
from support.positions import visible_records
from support.source_data import flush, producer_of
from support.stopped_logs import Marker, marker_of
from support.transacting import transacting
from support.twinlog_process import TwinlogProcess

pytestmark = [pytest.mark.kafka, pytest.mark.cluster, pytest.mark.slow]

_CONTROL = 0x20
_TRANSACTIONAL = 0x10


def test_a_stop_midstream_leaves_a_prefix_of_the_source_with_no_transaction_half_seen(
    kafka_4: KafkaNode, twinlog: TwinlogProcess, fresh: str
) -> None:
    partitions = [(fresh, partition) for partition in range(3)]
    kafka_4.create_topic(fresh, partitions=3)
    mirror = Mirror(twinlog, kafka_4, "midstream")
    mirror.create()
    mirror.start([fresh])
    with producing(kafka_4, [fresh]), transacting(kafka_4, fresh, partitions=3):
        mirror.await_more(partitions)
        mirror.stop([fresh])
        mirror.await_states(partitions, "STOPPED")
        producer = producer_of(twinlog)
        for of in partitions:
            producer.produce(fresh, b"written here", partition=of[1])
        flush(producer)
    for of in partitions:
        ours = twinlog.partition_folder(*of)
        reset = next(
            batch
            for batch in batches_of(ours)
            if batch.attributes & _CONTROL and not batch.attributes & _TRANSACTIONAL
        )
        aborts = [
            batch
            for batch in batches_of(ours, end=reset.base_offset)
            if batch.leader_epoch == reset.leader_epoch
        ]
        end = aborts[0].base_offset if aborts else reset.base_offset
        theirs = kafka_4.partition_folder(*of)
        assert assert_equal_logs(theirs, ours, start=0, end=end).equal_batches > 0
        assert marker_of(reset) == Marker.PID_RESET
        assert {marker_of(batch) for batch in aborts} <= {Marker.ABORT}
        seen = dict(visible_records(twinlog, *of))
        committed = dict(visible_records(kafka_4, *of))
        # What is seen of the source's records is what its own readers see, up to the stop.
        written = [offset for offset, value in seen.items() if value == b"written here"]
        assert written == [max(seen)]
        mirrored = {offset: value for offset, value in seen.items() if offset < end}
        assert mirrored.items() <= committed.items()
        assert mirrored
