"""What a client may append, and by which error code it is told that it may not."""

from dataclasses import replace

import pytest

from support.batches import Pair, batch, marker
from twinlog.model.errors import ApiError, ErrorCode, InvalidRecordsError
from twinlog.model.ids import ProducerId
from twinlog.storage.admit_new import NewBatches, admit_new
from twinlog.storage.settings import LogSettings
from twinlog.wire.records.batch import check_crc, read_header, stamp_log_append_time
from twinlog.wire.records.build import build_batch, records_of_pairs
from twinlog.wire.records.compression import Compression
from twinlog.wire.records.records import records_of

SETTINGS = LogSettings()
COMPACTED = LogSettings(cleanup_policy=frozenset({"compact"}))
NOW_MS = 1_000


def admit(content: bytes, settings: LogSettings = SETTINGS) -> NewBatches:
    return admit_new(content, settings, now_ms=NOW_MS, is_internal=False)


def admit_internal(content: bytes) -> NewBatches:
    return admit_new(content, SETTINGS, now_ms=NOW_MS, is_internal=True)


def code_of(content: bytes, settings: LogSettings = SETTINGS) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        admit(content, settings)
    return caught.value.code


def with_byte(content: bytes, at: int, byte: int) -> bytes:
    return content[:at] + bytes([byte]) + content[at + 1 :]


def test_a_good_batch_passes_untouched() -> None:
    content = batch(3, producer=(1, 0, 0))
    new = admit(content)
    assert bytes(new.content) == content
    assert isinstance(new.content, bytearray), "bytes cannot be stamped"
    writable = bytearray(content)
    new = admit_new(writable, SETTINGS, now_ms=NOW_MS, is_internal=False)
    new.content[0] = 1
    assert writable[0] == 1, "no copy where none is needed"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", ErrorCode.INVALID_RECORD),
        (batch(1) + batch(1), ErrorCode.INVALID_RECORD),
        (marker(1), ErrorCode.INVALID_RECORD),
        (batch([], last_offset_delta=0), ErrorCode.INVALID_RECORD),
        (batch(2, offset_deltas=[0, 5]), ErrorCode.INVALID_RECORD),
        (batch(1, producer=(5, 0, -1)), ErrorCode.INVALID_RECORD),
        (batch(1, is_transactional=True), ErrorCode.INVALID_RECORD),
        (with_byte(batch(1), 16, 1), ErrorCode.INVALID_RECORD),
        (with_byte(batch(1), 16, 3), ErrorCode.CORRUPT_MESSAGE),
        (with_byte(batch(1), 66, 99), ErrorCode.CORRUPT_MESSAGE),
        (batch(1)[:-1], ErrorCode.CORRUPT_MESSAGE),
        (batch(1)[:30], ErrorCode.CORRUPT_MESSAGE),
        (batch(1, timestamp=NOW_MS + 3_600_001), ErrorCode.INVALID_TIMESTAMP),
    ],
)
def test_each_fault_has_its_code(content: bytes, code: ErrorCode) -> None:
    assert code_of(content) == code


def test_sizes_are_bounded_by_the_topics_settings() -> None:
    content = batch(1, value_bytes=200)
    assert code_of(content, LogSettings(max_message_bytes=200)) == ErrorCode.MESSAGE_TOO_LARGE
    assert code_of(content, LogSettings(segment_bytes=200)) == ErrorCode.RECORD_LIST_TOO_LARGE


def test_old_timestamps_are_refused_when_the_topic_says_so() -> None:
    strict = LogSettings(message_timestamp_before_max_ms=100)
    assert code_of(batch(1, timestamp=NOW_MS - 101), strict) == ErrorCode.INVALID_TIMESTAMP
    admit(batch(1, timestamp=NOW_MS - 100), strict)
    admit(batch(1, timestamp=-1), strict)
    admit(batch(1, timestamp=1), replace(strict, is_log_append_time=True))


def test_a_client_cannot_claim_log_append_time() -> None:
    content = bytearray(batch(1))
    stamp_log_append_time(content, 0, timestamp_ms=5)
    assert code_of(bytes(content)) == ErrorCode.INVALID_TIMESTAMP


def test_compacted_topics_need_keys() -> None:
    pairs: list[Pair] = [(b"k", b"v"), (None, b"v")]
    assert code_of(batch(pairs), COMPACTED) == ErrorCode.INVALID_RECORD
    admit(batch([(b"k", None)]), COMPACTED)
    admit(batch(pairs), SETTINGS)


def test_every_record_without_a_key_is_named_by_its_place_in_the_batch() -> None:
    pairs: list[Pair] = [(b"k", b"v"), (None, b"v"), (b"k", b"v"), (None, b"v")]
    with pytest.raises(InvalidRecordsError, match="2 of 4 records") as refused:
        admit(batch(pairs, base_offset=700), COMPACTED)
    assert refused.value.indexes == (1, 3)


def test_coordinators_write_markers_and_several_batches() -> None:
    new = admit_internal(batch(1, producer=(5, 0, -1)) + marker(0))
    assert len(new.found) == 2
    assert len(new.markers) == 1


def test_a_topics_own_compression_replaces_the_producers() -> None:
    records = records_of_pairs([(b"a", b"1"), (b"b", b"2" * 300)], timestamp_ms=NOW_MS)
    sent = build_batch(
        records,
        compression=Compression.GZIP,
        producer_id=ProducerId(7),
        producer_epoch=1,
        base_sequence=4,
    )
    new = admit(sent, LogSettings(compression_type="lz4"))
    header = read_header(new.content, 0)
    check_crc(new.content, 0, header)
    assert header.compression == Compression.LZ4
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 4)
    assert records_of(new.content, 0, header) == records
    plain = admit(sent, LogSettings(compression_type="uncompressed"))
    assert read_header(plain.content, 0).compression == Compression.NONE
    same = admit(sent, LogSettings(compression_type="gzip"))
    assert bytes(same.content) == sent


def test_stamping_gives_offsets_epoch_and_time() -> None:
    new = admit_internal(batch(2) + marker(1) + batch(1))
    admitted = new.stamped(10, leader_epoch=3, log_append_time_ms=99)
    headers = [header for _, header in admitted.batches]
    assert [header.base_offset for header in headers] == [10, 12, 13]
    assert {header.leader_epoch for header in headers} == {3}
    assert [header.max_timestamp for header in headers] == [99, 1_000, 99]
    assert admitted.epoch_starts == [(3, 10)]
    assert list(admitted.markers) == [12]
    for position, header in admitted.batches:
        check_crc(admitted.content, position, header)
