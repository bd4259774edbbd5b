"""Control batches say what brokers and other clients understand by them."""

import struct

import pytest
from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch

from support.batches import marker, pid_reset
from twinlog.model.errors import WireError
from twinlog.model.ids import LeaderEpoch, ProducerId
from twinlog.wire.records.batch import check_crc, read_header
from twinlog.wire.records.control import (
    ControlType,
    control_type_of,
    coordinator_epoch_of,
    end_marker,
    pid_reset_batch,
)
from twinlog.wire.records.records import records_of


@pytest.mark.parametrize("kind", [ControlType.ABORT, ControlType.COMMIT], ids=lambda k: k.name)
def test_an_end_marker_is_byte_for_byte_what_it_should_be(kind: ControlType) -> None:
    built = end_marker(
        kind,
        producer_id=ProducerId(12),
        producer_epoch=3,
        coordinator_epoch=8,
        timestamp_ms=99,
        base_offset=500,
        leader_epoch=LeaderEpoch(4),
    )
    assert built == marker(
        kind,
        base_offset=500,
        leader_epoch=4,
        producer_id=12,
        producer_epoch=3,
        coordinator_epoch=8,
        timestamp=99,
    )
    header = read_header(built, 0)
    check_crc(built, 0, header)
    (record,) = records_of(built, 0, header)
    assert control_type_of(record.key) is kind
    assert coordinator_epoch_of(record.value) == 8


def test_kafka_python_knows_an_abort_marker() -> None:
    built = end_marker(
        ControlType.ABORT,
        producer_id=ProducerId(1),
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp_ms=1,
    )
    theirs = KafkaPythonBatch(bytearray(built))
    assert theirs.is_control_batch
    assert next(iter(theirs)).abort


def test_only_abort_and_commit_end_a_transaction() -> None:
    with pytest.raises(AssertionError, match="LEADER_CHANGE"):
        end_marker(
            ControlType.LEADER_CHANGE,
            producer_id=ProducerId(1),
            producer_epoch=0,
            coordinator_epoch=0,
            timestamp_ms=1,
        )


def test_the_producer_reset_is_in_no_transaction_and_of_no_producer() -> None:
    built = pid_reset_batch(timestamp_ms=1_000, base_offset=7, leader_epoch=LeaderEpoch(2))
    header = read_header(built, 0)
    assert header.is_control
    assert not header.is_transactional
    assert header.producer_id == -1
    (record,) = records_of(built, 0, header)
    assert control_type_of(record.key) is ControlType.MIRROR_PID_RESET
    assert built == pid_reset(base_offset=7, leader_epoch=2)


def test_a_type_from_the_future_is_skipped_and_a_longer_key_is_read() -> None:
    assert control_type_of(struct.pack(">hh", 0, 99)) is None
    assert control_type_of(struct.pack(">hhi", 1, 1, 5)) is ControlType.COMMIT


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0", struct.pack(">hh", -1, 0)])
def test_a_key_that_is_none_is_refused(key: bytes | None) -> None:
    with pytest.raises(WireError, match="control record"):
        control_type_of(key)


@pytest.mark.parametrize("value", [None, b"\0\0"])
def test_an_end_marker_without_an_epoch_is_refused(value: bytes | None) -> None:
    with pytest.raises(WireError, match="end marker"):
        coordinator_epoch_of(value)
