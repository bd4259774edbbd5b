"""Kafka's own log dumper reads every kind of batch that we build, and ours says the same of it."""

from pathlib import Path

import pytest

from support.commands import run_command
from support.java_tools import dump_files
from support.kafka_install import KAFKA_4, require
from twinlog.model.ids import LeaderEpoch, Offset, ProducerId
from twinlog.wire.records.build import build_batch
from twinlog.wire.records.compression import Compression
from twinlog.wire.records.control import ControlType, end_marker, pid_reset_batch
from twinlog.wire.records.records import Record

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

PRODUCER = ProducerId(9)


def every_kind_of_batch() -> bytes:
    """Give batches in every compression, in a transaction and out of it, with gaps, and markers."""
    batches = []
    offset = 3
    for compression in Compression:
        for is_transactional in (False, True):
            records = [
                Record(Offset(offset), 1_000, b"key", b"value" * 3_000, (("h", b"1"), ("n", None))),
                Record(Offset(offset + 1), 1_100, None, b""),
                Record(Offset(offset + 4), 900, b"", None),
            ]
            batches.append(
                build_batch(
                    records,
                    base_offset=offset,
                    compression=compression,
                    leader_epoch=LeaderEpoch(2),
                    producer_id=PRODUCER if is_transactional else ProducerId(-1),
                    producer_epoch=1 if is_transactional else -1,
                    base_sequence=offset if is_transactional else -1,
                    is_transactional=is_transactional,
                )
            )
            offset += 5
    for kind in (ControlType.ABORT, ControlType.COMMIT):
        marker = end_marker(
            kind,
            producer_id=PRODUCER,
            producer_epoch=1,
            coordinator_epoch=4,
            timestamp_ms=2_000,
            base_offset=offset,
            leader_epoch=LeaderEpoch(2),
        )
        batches.append(marker)
        offset += 1
    return b"".join(batches)


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """Give a segment file of every kind of batch."""
    require(KAFKA_4)
    file = tmp_path / "00000000000000000003.log"
    file.write_bytes(every_kind_of_batch())
    return file


def test_kafka_reads_every_batch_and_we_tell_the_same_of_it(segment: Path) -> None:
    theirs = dump_files([segment], "--print-data-log")
    ours = run_command(["dump-log", "--files", str(segment), "--print-data-log"])
    assert ours.code == 0
    assert [line.rstrip() for line in ours.out.splitlines()] == [
        line.rstrip() for line in theirs.splitlines()
    ]


def test_kafka_reads_a_log_that_ends_in_the_reset_of_a_stopped_mirror(segment: Path) -> None:
    end = 3 + 10 * 5 + 2
    reset = pid_reset_batch(timestamp_ms=3_000, base_offset=end, leader_epoch=LeaderEpoch(3))
    segment.write_bytes(segment.read_bytes() + reset)
    assert f"baseOffset: {end} " in dump_files([segment], "--deep-iteration")
