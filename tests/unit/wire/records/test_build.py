"""Built batches: our reader, kafka-python's and aiokafka's agree on them, and ours on theirs."""

from dataclasses import replace
from typing import Any

import pytest
from aiokafka.record._crecords.default_records import (
    DefaultRecordBatch as AiokafkaBatch,
)
from aiokafka.record._crecords.default_records import (
    DefaultRecordBatchBuilder as AiokafkaBuilder,
)
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

from twinlog.model.ids import LeaderEpoch, Offset, ProducerId
from twinlog.wire.records.batch import check_crc, read_header
from twinlog.wire.records.build import build_batch, records_of_pairs
from twinlog.wire.records.compression import Compression
from twinlog.wire.records.records import Record, records_of

each_compression = pytest.mark.parametrize("compression", list(Compression), ids=lambda c: c.name)

some_bytes = st.none() | st.binary(max_size=200)
some_headers = st.lists(st.tuples(st.text(max_size=20), some_bytes), max_size=4).map(tuple)


@st.composite
def some_records(draw: st.DrawFn) -> list[Record]:
    """Records with rising offsets from some base, with gaps, at times in any order."""
    offset = draw(st.integers(0, 1 << 60))
    found = []
    for _ in range(draw(st.integers(1, 12))):
        found.append(
            Record(
                offset=Offset(offset),
                timestamp=draw(st.integers(0, 1 << 45)),
                key=draw(some_bytes),
                value=draw(some_bytes),
                headers=draw(some_headers),
            )
        )
        offset += draw(st.integers(1, 1_000))
    return found


def read(batch: bytes) -> list[Record]:
    header = read_header(batch, 0)
    check_crc(batch, 0, header)
    assert header.length == len(batch)
    return records_of(batch, 0, header)


@each_compression
@given(records=some_records())
def test_records_come_back_as_they_went_in(compression: Compression, records: list[Record]) -> None:
    batch = build_batch(records, base_offset=records[0].offset, compression=compression)
    assert read(batch) == records


@each_compression
@given(records=some_records())
def test_kafka_python_and_aiokafka_read_what_we_build(
    compression: Compression, records: list[Record]
) -> None:
    batch = build_batch(records, base_offset=records[0].offset, compression=compression)
    for reader in (KafkaPythonBatch, AiokafkaBatch):
        theirs = reader(bytearray(batch))
        assert theirs.validate_crc()
        assert [our_form(record) for record in theirs] == records


@each_compression
def test_we_read_what_kafka_python_and_aiokafka_build(compression: Compression) -> None:
    written = [
        Record(Offset(0), 1_000, b"key", b"value" * 50, (("h", b"1"), ("null", None))),
        Record(Offset(1), 1_200, None, b"", ()),
        Record(Offset(2), 900, b"", None, (("ü", b""),)),
    ]
    for builder_class in (KafkaPythonBuilder, AiokafkaBuilder):
        builder = builder_class(
            magic=2,
            compression_type=int(compression),
            is_transactional=0,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            batch_size=100_000,
        )
        for record in written:
            builder.append(
                record.offset, record.timestamp, record.key, record.value, list(record.headers)
            )
        assert read(bytes(builder.build())) == written


def our_form(theirs: Any) -> Record:
    return Record(
        offset=Offset(theirs.offset),
        timestamp=theirs.timestamp,
        key=None if theirs.key is None else bytes(theirs.key),
        value=None if theirs.value is None else bytes(theirs.value),
        headers=tuple((k, None if v is None else bytes(v)) for k, v in theirs.headers),
    )


def test_the_header_says_what_was_asked_for() -> None:
    batch = build_batch(
        records_of_pairs([(b"k", b"v"), (b"l", None)], timestamp_ms=5, base_offset=40),
        base_offset=40,
        compression=Compression.ZSTD,
        leader_epoch=LeaderEpoch(3),
        producer_id=ProducerId(9),
        producer_epoch=2,
        base_sequence=11,
        is_transactional=True,
    )
    header = read_header(batch, 0)
    assert (header.base_offset, header.last_offset, header.leader_epoch) == (40, 41, 3)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 2, 11)
    assert (header.compression, header.record_count) == (Compression.ZSTD, 2)
    assert header.is_transactional
    assert not header.is_control
    assert (header.base_timestamp, header.max_timestamp) == (5, 5)


def test_the_highest_time_of_the_records_is_in_the_header() -> None:
    first, second = records_of_pairs([(None, b"1"), (None, b"2")], timestamp_ms=70)
    header = read_header(build_batch([first, replace(second, timestamp=60)]), 0)
    assert (header.base_timestamp, header.max_timestamp) == (70, 70)


@pytest.mark.parametrize(
    ("offsets", "base"), [((), 0), ((3, 3), 3), ((5, 4), 4), ((2,), 3)], ids=str
)
def test_a_batch_whose_offsets_do_not_rise_is_our_mistake(
    offsets: tuple[int, ...], base: int
) -> None:
    with pytest.raises(AssertionError):
        build_batch([Record(offset=Offset(o)) for o in offsets], base_offset=base)
