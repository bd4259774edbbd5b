"""Repeats and gaps of idempotent producers are found; transactions are followed to their end."""

import pytest

from support.batches import batch, marker, pid_reset
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.storage.markers import marker_of
from twinlog.storage.producers import Producers
from twinlog.storage.snapshots import decode_snapshot, encode_snapshot
from twinlog.storage.txn_index import AbortedTxn
from twinlog.wire.records.batch import read_header


def apply(producers: Producers, content: bytes) -> AbortedTxn | None:
    header = read_header(content, 0)
    return producers.apply(header, marker_of(content, 0, header) if header.is_control else None)


def data(offset: int, sequence: int, *, count: int = 1, epoch: int = 0, pid: int = 1) -> bytes:
    return batch(count, base_offset=offset, producer=(pid, epoch, sequence))


def in_txn(offset: int, sequence: int, *, pid: int = 1) -> bytes:
    return batch(1, base_offset=offset, producer=(pid, 0, sequence), is_transactional=True)


def code_of(producers: Producers, content: bytes) -> ErrorCode | None:
    header = read_header(content, 0)
    try:
        producers.check(
            header,
            marker_of(content, 0, header) if header.is_control else None,
            is_sequenced=True,
        )
    except ApiError as error:
        return error.code
    return None


def test_a_repeat_of_any_of_the_last_five_batches_is_found() -> None:
    producers = Producers()
    for at in range(7):
        apply(producers, data(at * 2, at * 2, count=2))
    for at in range(7):
        found = producers.repeat_of(read_header(data(99, at * 2, count=2), 0))
        assert (found is not None) == (at >= 2)
        if found is not None:
            assert (found.first_offset, found.last_offset) == (at * 2, at * 2 + 1)
    assert producers.repeat_of(read_header(data(99, 12, count=1), 0)) is None
    assert producers.repeat_of(read_header(data(99, 12, count=2, epoch=1), 0)) is None


def test_sequences_must_follow_each_other() -> None:
    producers = Producers()
    assert code_of(producers, data(0, 7)) is None, "an unknown producer may begin anywhere"
    apply(producers, data(0, 7, count=3))
    assert code_of(producers, data(3, 10)) is None
    assert code_of(producers, data(3, 11)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert code_of(producers, data(3, 9)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_new_epoch_begins_at_zero_and_an_old_one_is_fenced() -> None:
    producers = Producers()
    apply(producers, data(0, 0, epoch=3))
    assert code_of(producers, data(1, 1, epoch=2)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert code_of(producers, data(1, 1, epoch=4)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert code_of(producers, data(1, 0, epoch=4)) is None
    apply(producers, data(1, 0, epoch=4))
    assert producers.repeat_of(read_header(data(9, 0, epoch=3), 0)) is None


def test_sequences_go_on_at_zero_after_the_largest() -> None:
    producers = Producers()
    apply(producers, data(0, 0x7FFF_FFFE, count=2))
    assert code_of(producers, data(2, 0)) is None
    apply(producers, data(2, 0))
    assert producers.repeat_of(read_header(data(9, 0x7FFF_FFFE, count=2), 0)) is not None


def test_an_open_transaction_holds_back_the_stable_offset_until_its_marker_is_committed() -> None:
    producers = Producers()
    apply(producers, data(0, 0, pid=9))
    apply(producers, in_txn(1, 0, pid=1))
    apply(producers, in_txn(2, 0, pid=2))
    assert producers.open_transactions() == [(1, 0, 1, -1), (2, 0, 2, -1)]
    assert producers.first_unstable(3) == 1
    assert apply(producers, marker(1, base_offset=3, producer_id=1)) is None
    assert producers.first_unstable(3) == 1, "the marker lies above the high watermark"
    assert producers.first_unstable(4) == 2
    aborted = apply(producers, marker(0, base_offset=4, producer_id=2))
    assert aborted == AbortedTxn(2, first_offset=2, last_offset=4, last_stable_offset=5)
    assert producers.first_unstable(5) is None


def test_an_abort_knows_of_the_transaction_that_is_still_open() -> None:
    producers = Producers()
    apply(producers, in_txn(0, 0, pid=1))
    apply(producers, in_txn(1, 0, pid=2))
    aborted = apply(producers, marker(0, base_offset=2, producer_id=2))
    assert aborted == AbortedTxn(2, first_offset=1, last_offset=2, last_stable_offset=0)


def test_a_marker_without_a_transaction_only_raises_the_epoch() -> None:
    producers = Producers()
    assert apply(producers, marker(0, producer_id=4, producer_epoch=7)) is None
    assert producers.first_unstable(0) is None
    assert code_of(producers, data(1, 0, pid=4, epoch=6)) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_plain_batch_cannot_join_a_transaction() -> None:
    producers = Producers()
    apply(producers, in_txn(0, 0))
    assert code_of(producers, data(1, 1)) == ErrorCode.INVALID_TXN_STATE


def test_an_old_coordinator_is_fenced() -> None:
    producers = Producers()
    apply(producers, marker(1, coordinator_epoch=5))
    fenced = marker(1, coordinator_epoch=4)
    assert code_of(producers, fenced) == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert code_of(producers, marker(1, coordinator_epoch=5)) is None


def test_the_reset_of_a_stopped_mirror_forgets_every_producer() -> None:
    producers = Producers()
    apply(producers, data(0, 5, pid=1))
    apply(producers, in_txn(1, 0, pid=2))
    apply(producers, pid_reset(base_offset=2))
    assert len(producers) == 0
    assert producers.open_transactions() == []
    assert producers.end == 3


def test_idle_producers_expire_unless_they_have_a_transaction() -> None:
    producers = Producers()
    apply(producers, data(0, 0, pid=1))
    apply(producers, in_txn(1, 0, pid=2))
    assert producers.expire(1_000 + 499, 500) == 0
    assert producers.expire(1_000 + 500, 500) == 1
    assert producers.get(1) is None
    assert producers.get(2) is not None


def test_what_a_snapshot_leaves_out_is_recalled_from_the_batches_before_it() -> None:
    batches = [data(number, number, pid=1) for number in range(8)]
    batches += [data(8, 0, pid=2), data(9, 0, epoch=1, pid=3), data(10, 1, pid=2)]
    headers = [read_header(one, 0) for one in batches]
    producers = Producers()
    for one in batches:
        apply(producers, one)
    loaded = Producers()
    loaded.load(11, decode_snapshot(encode_snapshot(producers.all())) or [])
    assert loaded.repeat_of(headers[4]) is None
    loaded.recall(headers)
    for header in headers[3:8] + headers[8:]:
        repeat = loaded.repeat_of(header)
        assert repeat is not None, header.base_offset
        assert repeat.first_offset == header.base_offset
    assert loaded.repeat_of(headers[2]) is None
    loaded.recall([read_header(data(99, 7, pid=1), 0)])
    assert loaded.repeat_of(headers[7]) is not None, "what does not fit is not believed"


def test_a_producer_of_old_records_is_not_idle_while_it_writes_them() -> None:
    producers = Producers()
    for number in range(3):
        apply(producers, data(number, number, pid=1))
        assert producers.expire(9_000, 500) == 0
    assert producers.expire(9_000, 500) == 1


def test_an_unknown_control_batch_changes_nothing() -> None:
    producers = Producers()
    apply(producers, batch([(b"\0\0\0\x63", b"")], is_control=True))
    apply(producers, batch([], is_control=True, last_offset_delta=0, base_offset=1))
    assert len(producers) == 0
    assert producers.end == 2
    with pytest.raises(Exception, match="control record"):
        apply(producers, batch([(b"", b"")], is_control=True))
