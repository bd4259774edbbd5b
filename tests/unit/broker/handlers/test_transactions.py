from pathlib import Path

import pytest

from support.brokers import local_broker
from twinlog.model.errors import ErrorCode
from twinlog.wire.messages.transactions import INIT_PRODUCER_ID, InitProducerIdRequest


def asks(**fields: object) -> InitProducerIdRequest:
    return InitProducerIdRequest(transaction_timeout_ms=1_000, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("version", range(6))
async def test_every_version_gives_a_producer_an_id_and_epoch_0(
    tmp_path: Path, version: int
) -> None:
    async with local_broker(tmp_path) as broker:
        answer = await broker.ask(INIT_PRODUCER_ID, asks(), version)
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, 0, 0)


async def test_no_id_is_given_twice_also_not_after_a_restart(tmp_path: Path) -> None:
    ids: list[int] = []
    for _ in range(2):
        async with local_broker(tmp_path) as broker:
            ids += [(await broker.ask(INIT_PRODUCER_ID, asks())).producer_id for _ in range(3)]
    assert len(set(ids)) == 6
    assert min(ids) >= 0


async def test_a_producer_that_had_an_id_gets_a_new_one(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        first = await broker.ask(INIT_PRODUCER_ID, asks())
        again = asks(producer_id=first.producer_id, producer_epoch=0)
        assert (await broker.ask(INIT_PRODUCER_ID, again)).producer_id != first.producer_id


async def test_a_transactional_producer_is_refused_for_good_and_the_log_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with local_broker(tmp_path) as broker:
        answer = await broker.ask(INIT_PRODUCER_ID, asks(transactional_id="tx"))
    assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert answer.producer_id == -1
    assert "transactions are not supported yet" in caplog.text


async def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        for asked in (asks(transactional_id=""), asks(producer_id=4)):
            answer = await broker.ask(INIT_PRODUCER_ID, asked)
            assert answer.error_code == ErrorCode.INVALID_REQUEST
