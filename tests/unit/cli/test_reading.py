"""Reading partitions: in order, only what is committed if wanted, past what went away."""

import pytest

from support.answering_broker import AnsweringBroker
from support.commands import Ran, run_command
from twinlog.cli import reading
from twinlog.cli.reading import READ_COMMITTED, READ_UNCOMMITTED, committed_records
from twinlog.model.errors import CorruptBatchError
from twinlog.model.ids import ProducerId
from twinlog.wire.messages.fetch import FETCH, AbortedTransaction, FetchedPartition, FetchResponse
from twinlog.wire.messages.fetch import FetchedTopic as FetchedTopicRow
from twinlog.wire.messages.offsets import ListOffsetsRequest
from twinlog.wire.records.build import build_batch, records_of_pairs
from twinlog.wire.records.control import ControlType, end_marker


def batch(value: bytes, offset: int, producer_id: int = -1) -> bytes:
    return build_batch(
        records_of_pairs([(None, value)], timestamp_ms=1, base_offset=offset),
        base_offset=offset,
        producer_id=ProducerId(producer_id),
        producer_epoch=0,
        is_transactional=producer_id >= 0,
    )


def marker(kind: ControlType, offset: int, producer_id: int) -> bytes:
    return end_marker(
        kind,
        producer_id=ProducerId(producer_id),
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp_ms=1,
        base_offset=offset,
    )


# Producer 1 aborts, then commits; producer 2 commits; the last record is in no transaction.
LOG = b"".join(
    (
        batch(b"1-aborted", 0, 1),
        batch(b"2-committed", 1, 2),
        batch(b"1-aborted-too", 2, 1),
        marker(ControlType.ABORT, 3, 1),
        batch(b"1-committed", 4, 1),
        marker(ControlType.COMMIT, 5, 2),
        marker(ControlType.COMMIT, 6, 1),
        batch(b"plain", 7),
    )
)
FETCHED = FetchedPartition(
    partition_index=0,
    high_watermark=8,
    records=memoryview(LOG),
    aborted_transactions=(AbortedTransaction(producer_id=1, first_offset=0),),
)


def values(isolation: int) -> list[bytes | None]:
    found = committed_records(FETCHED, isolation)
    return [record.value for record, _ in found if record is not None]


def test_aborted_records_are_left_out_when_only_committed_ones_are_wanted() -> None:
    assert values(READ_COMMITTED) == [b"2-committed", b"1-committed", b"plain"]


def test_control_records_are_always_left_out() -> None:
    assert values(READ_UNCOMMITTED) == [
        b"1-aborted",
        b"2-committed",
        b"1-aborted-too",
        b"1-committed",
        b"plain",
    ]


def test_the_offset_that_follows_passes_what_was_left_out() -> None:
    assert [after for _, after in committed_records(FETCHED, READ_COMMITTED)][-1] == 8


def test_no_records_are_no_error() -> None:
    empty = FetchedPartition(partition_index=0, high_watermark=0)
    assert list(committed_records(empty, READ_COMMITTED)) == []


def test_a_damaged_batch_is_refused() -> None:
    damaged = FetchedPartition(
        partition_index=0, high_watermark=1, records=memoryview(batch(b"x", 0)[:-1] + b"!")
    )
    with pytest.raises(CorruptBatchError, match="CRC"):
        list(committed_records(damaged, READ_UNCOMMITTED))


def consume(broker: AnsweringBroker, *arguments: str) -> Ran:
    return run_command(
        ["consume", "--bootstrap-server", broker.bootstrap, "--topic", "a", *arguments]
    )


def test_what_went_away_is_skipped_to_the_earliest_there_is(broker: AnsweringBroker) -> None:
    broker.logs["a", 0] = batch(b"late", 10)
    ran = consume(broker, "--partition", "0", "--offset", "3", "--max-messages", "1")
    assert (ran.code, ran.out) == (0, "late\n")
    assert [r.topics[0].partitions[0].timestamp for r in broker.asked_for(ListOffsetsRequest)] == [
        reading.EARLIEST
    ]


@pytest.mark.parametrize(("code", "name"), [(6, "NOT_LEADER_OR_FOLLOWER"), (29, "TOPIC_AUTHOR")])
def test_failures_end_in_a_sentence(
    broker: AnsweringBroker, monkeypatch: pytest.MonkeyPatch, code: int, name: str
) -> None:
    monkeypatch.setattr(reading, "WAIT_MS", 0)
    broker.logs["a", 0] = b""
    row = FetchedPartition(partition_index=0, error_code=code, high_watermark=-1)
    topic = FetchedTopicRow(topic="a", partitions=(row,))
    broker.on(FETCH, FetchResponse(topics=(topic,)))
    ran = consume(broker, "--from-beginning")
    assert ran.code == 1
    assert f"a-0 at offset 0 cannot be read: {name}" in ran.err
