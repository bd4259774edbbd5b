"""What broke elsewhere for producers that number their batches, and for readers of transactions."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from support.asking import READ_COMMITTED, fetch, list_offset, records_in
from support.batches import batch, marker
from support.brokers import AskedBroker, connected_to, local_broker
from support.positions import visible_records
from support.twinlog_process import TwinlogProcess
from twinlog.model.errors import ErrorCode
from twinlog.model.ids import TopicName, TopicPartition
from twinlog.wire.messages.transactions import INIT_PRODUCER_ID, InitProducerIdRequest

PID = 7
ABORT, COMMIT = 0, 1


async def send(broker: AskedBroker, sequence: int, *, epoch: int = 0) -> tuple[ErrorCode, int]:
    """Send two records from a sequence on; give the code and the offset told."""
    answer = await broker.produce("t", batch(2, producer=(PID, epoch, sequence), value_bytes=100))
    return ErrorCode(answer.error_code), answer.base_offset


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize(
    "end", [TwinlogProcess.stop, TwinlogProcess.kill], ids=["stopped", "killed"]
)
@pytest.mark.parametrize("segment_bytes", [1 << 20, 1_000], ids=["one segment", "many segments"])
async def test_a_restart_forgets_no_sequence(
    tmp_path: Path, end: Callable[[TwinlogProcess], object], segment_bytes: int
) -> None:
    """After a restart the broker and the producer disagreed about the sequence, for good."""
    process = TwinlogProcess(tmp_path, settings={"log.segment.bytes": str(segment_bytes)})
    process.start()
    try:
        async with connected_to(process.bootstrap) as broker:
            await broker.make_topic("t")
            for number in range(10):
                assert await send(broker, 2 * number) == (ErrorCode.NONE, 2 * number)
        end(process)
        process.start()
        async with connected_to(process.bootstrap) as broker:
            # The answer to the last one was lost, so it comes again; then a gap; then the next.
            assert await send(broker, 18) == (ErrorCode.NONE, 18)
            assert (await send(broker, 22))[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            assert await send(broker, 20) == (ErrorCode.NONE, 20)
            assert await send(broker, 18) == (ErrorCode.NONE, 18)
            assert (await send(broker, 22, epoch=-0x8000))[0] == ErrorCode.INVALID_PRODUCER_EPOCH
    finally:
        process.stop()


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize("segment_bytes", [1 << 20, 1_000], ids=["one segment", "many segments"])
async def test_after_a_kill_all_that_may_be_sent_again_is_known(
    tmp_path: Path, segment_bytes: int
) -> None:
    """Five requests were under way at the crash; of those that came again some were errors."""
    process = TwinlogProcess(tmp_path, settings={"log.segment.bytes": str(segment_bytes)})
    process.start()
    try:
        async with connected_to(process.bootstrap) as broker:
            await broker.make_topic("t")
            for number in range(10):
                await send(broker, 2 * number)
        process.kill()
        process.start()
        async with connected_to(process.bootstrap) as broker:
            for number in range(5, 10):
                assert await send(broker, 2 * number) == (ErrorCode.NONE, 2 * number)
            assert (await list_offset(broker, "t", -1)).offset == 20
    finally:
        process.stop()


async def test_a_producer_whose_records_are_all_gone_goes_on(tmp_path: Path) -> None:
    """Its state went with its records, and it was an unknown producer until it was restarted."""
    async with local_broker(tmp_path) as broker:
        await broker.make_topic("t")
        assert await send(broker, 0) == (ErrorCode.NONE, 0)
        partition = broker.server._partitions.led(TopicPartition(TopicName("t"), 0))
        assert [partition.log.expire_producers(1 << 60) for _ in range(2)] == [0, 1]
        assert await send(broker, 2) == (ErrorCode.NONE, 2)
        answer = await broker.ask(
            INIT_PRODUCER_ID,
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1_000),
        )
        assert answer.error_code == ErrorCode.NONE
        fresh = batch(1, producer=(answer.producer_id, answer.producer_epoch, 0))
        assert (await broker.produce("t", fresh)).base_offset == 4


def copied_transactions(*, up_to: int) -> bytes:
    """Give what a mirror copies: two aborted transactions around a committed one, and plain data.

    0-1 of producer 1, aborted at 4; 2 of producer 2, committed at 3; 5 plain; 6 of producer 1,
    aborted at 7; 8 of producer 2, open.
    """
    batches = (
        batch(2, base_offset=0, producer=(1, 0, 0), is_transactional=True),
        batch(1, base_offset=2, producer=(2, 0, 0), is_transactional=True),
        marker(COMMIT, base_offset=3, producer_id=2),
        marker(ABORT, base_offset=4, producer_id=1),
        batch(1, base_offset=5),
        batch(1, base_offset=6, producer=(1, 0, 2), is_transactional=True),
        marker(ABORT, base_offset=7, producer_id=1),
        batch(1, base_offset=8, producer=(2, 0, 1), is_transactional=True),
    )
    return b"".join(batches[:up_to])


async def test_of_copied_transactions_the_aborted_ones_are_told_with_the_records(
    tmp_path: Path,
) -> None:
    """The list of aborted ones came from elsewhere than the records, and aborted ones were seen."""
    async with local_broker(tmp_path) as broker:
        await broker.make_topic("t")
        partition = broker.server._partitions.led(TopicPartition(TopicName("t"), 0))
        partition.append_mirrored(copied_transactions(up_to=8))
        for offset, aborted in ((0, [(1, 0), (1, 6)]), (3, [(1, 0), (1, 6)]), (5, [(1, 6)])):
            answer = await fetch(broker, "t", offset, isolation=READ_COMMITTED)
            told = [(t.producer_id, t.first_offset) for t in answer.aborted_transactions or ()]
            assert told == aborted, offset
            assert (answer.last_stable_offset, answer.high_watermark) == (8, 9)
            assert max(record.offset for record in records_in(answer)) == 6
        bootstrap = str(broker.address)
        seen = await asyncio.to_thread(visible_records, Bootstrap(bootstrap), "t")
        assert [offset for offset, _ in seen] == [2, 5]
        # Its stop ends what is open with a marker of its own; then readers go on.
        partition.append_mirrored(marker(ABORT, base_offset=9, producer_id=2))
        await broker.produce("t", batch(1))
        seen = await asyncio.to_thread(visible_records, Bootstrap(bootstrap), "t")
        assert [offset for offset, _ in seen] == [2, 5, 10]


class Bootstrap:
    """A broker as the clients' helpers need it."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
