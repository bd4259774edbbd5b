from pathlib import Path
from uuid import UUID

import pytest

from support.batches import Pair, batch
from support.brokers import local_broker
from twinlog.model.errors import ErrorCode
from twinlog.wire.messages.produce import (
    PRODUCE,
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
)


def request_for(topic: ProduceTopic, *, acks: int = -1) -> ProduceRequest:
    return ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=(topic,))


async def test_batches_get_the_next_offsets(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        await broker.make_topic("t")
        assert (await broker.produce("t", batch(3))).base_offset == 0
        assert (await broker.produce("t", batch(2), acks=1)).base_offset == 3


async def test_a_topic_is_found_by_its_id_from_v13_on(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        made = await broker.make_topic("t")
        sent = (ProducePartition(index=0, records=batch(1)),)
        known = ProduceTopic(topic_id=made.topic_id, partition_data=sent)
        answer = await broker.ask(PRODUCE, request_for(known), 13)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        unknown = ProduceTopic(topic_id=UUID(int=7), partition_data=sent)
        answer = await broker.ask(PRODUCE, request_for(unknown), 13)
        code = answer.responses[0].partition_responses[0].error_code
        assert code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_what_is_wrong_with_one_partition_is_said_of_it_alone(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        await broker.make_topic("t")
        torn = bytearray(batch(1))
        torn[-1] ^= 1
        topic = ProduceTopic(
            name="t",
            partition_data=(
                ProducePartition(index=0, records=bytes(torn)),
                ProducePartition(index=0, records=batch(1)),
                ProducePartition(index=9, records=batch(1)),
                ProducePartition(index=0, records=b""),
            ),
        )
        answer = await broker.ask(PRODUCE, request_for(topic), 12)
        codes = [p.error_code for p in answer.responses[0].partition_responses]
        assert codes == [
            ErrorCode.CORRUPT_MESSAGE,
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.INVALID_RECORD,
        ]


async def test_the_records_that_spoil_a_batch_are_told_by_their_index(tmp_path: Path) -> None:
    async with local_broker(tmp_path, {"log.cleanup.policy": "compact"}) as broker:
        await broker.make_topic("t")
        pairs: list[Pair] = [(None, b"v"), (b"k", b"v"), (None, b"v")]
        sent = (ProducePartition(index=0, records=batch(pairs)),)
        for version, told in ((7, []), (8, [0, 2]), (12, [0, 2])):
            request = request_for(ProduceTopic(name="t", partition_data=sent))
            answer = await broker.ask(PRODUCE, request, version)
            (refused,) = answer.responses[0].partition_responses
            assert refused.error_code == ErrorCode.INVALID_RECORD
            assert [one.batch_index for one in refused.record_errors] == told


async def test_acks_of_two_mean_nothing(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        await broker.make_topic("t")
        answer = await broker.produce("t", batch(1), acks=2)
        assert answer.error_code == ErrorCode.INVALID_REQUIRED_ACKS


async def test_too_few_copies_refuse_acks_all_and_take_acks_1(tmp_path: Path) -> None:
    async with local_broker(tmp_path, {"min.insync.replicas": "2"}) as broker:
        await broker.make_topic("t")
        refused = await broker.produce("t", batch(1), acks=-1)
        assert refused.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert (await broker.produce("t", batch(1), acks=1)).error_code == ErrorCode.NONE


async def test_a_repeated_batch_of_an_idempotent_producer_gets_its_first_offset(
    tmp_path: Path,
) -> None:
    async with local_broker(tmp_path) as broker:
        await broker.make_topic("t")
        first = await broker.produce("t", batch(2, producer=(5, 0, 0)))
        again = await broker.produce("t", batch(2, producer=(5, 0, 0)))
        assert (again.error_code, again.base_offset) == (ErrorCode.NONE, first.base_offset)
        hole = await broker.produce("t", batch(2, producer=(5, 0, 9)))
        assert hole.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize("version", range(PRODUCE.min_version, 13))
async def test_every_version_by_name_is_answered(tmp_path: Path, version: int) -> None:
    async with local_broker(tmp_path) as broker:
        await broker.make_topic("t")
        sent = ProduceTopic(name="t", partition_data=(ProducePartition(index=0, records=batch(1)),))
        answer = await broker.ask(PRODUCE, request_for(sent), version)
        assert answer.responses[0].partition_responses[0].base_offset == 0


async def test_clients_cannot_write_where_the_broker_keeps_its_state(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        answer = await broker.produce("__consumer_offsets", batch(1))
        assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
