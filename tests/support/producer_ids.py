"""Brings a broker to give out a producer id of one's choice: every cluster counts from 0 on."""

from support.twinlog_process import TwinlogProcess
from twinlog.network.addresses import Address
from twinlog.network.client import BrokerConnection
from twinlog.wire.messages.transactions import INIT_PRODUCER_ID, InitProducerIdRequest


async def next_of(twinlog: TwinlogProcess, wanted: set[int]) -> int:
    """Use up producer ids until the next one given is one of ``wanted``; give that."""
    address = Address("127.0.0.1", twinlog.port)
    connection = await BrokerConnection.open(address, "ids", timeout_s=60)
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    given = -1
    while given + 1 not in wanted:
        answer = await connection.call(INIT_PRODUCER_ID, request, timeout_s=60)
        given = answer.producer_id
        assert given < max(wanted), f"id {given} was given, beyond all of {wanted}"
    await connection.close()
    return given + 1
