"""InitProducerId: v0-5, for idempotent producers.

Differs from Kafka: there are no transactions yet. A producer with a transactional id is answered
TRANSACTIONAL_ID_AUTHORIZATION_FAILED, and the broker's log says why: it is the one code that ends
init_transactions() at once in the Java client, librdkafka, kafka-python and aiokafka alike. The
coordinator's codes would have them ask again until they time out, and librdkafka asks again on
any code that it does not expect here, UNSUPPORTED_VERSION too.
"""

import logging

from twinlog.broker.context import Context
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import NO_PRODUCER_ID
from twinlog.wire.messages.transactions import InitProducerIdRequest, InitProducerIdResponse

log = logging.getLogger(__name__)

NO_PRODUCER_EPOCH = -1
FIRST_PRODUCER_EPOCH = 0


async def handle_init_producer_id(
    request: InitProducerIdRequest, context: Context
) -> InitProducerIdResponse:
    """Give a new producer id with epoch 0, also to a producer that had one (as Kafka does)."""
    try:
        _check(request, context)
        producer_id = await context.broker.producer_ids.give(context.broker.facts)
    except ApiError as error:
        return InitProducerIdResponse(
            error_code=error.code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
        )
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=FIRST_PRODUCER_EPOCH)


def _check(request: InitProducerIdRequest, context: Context) -> None:
    has_id = request.producer_id != NO_PRODUCER_ID
    has_epoch = request.producer_epoch != NO_PRODUCER_EPOCH
    if request.transactional_id == "" or has_id != has_epoch:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "an empty transactional id, or an id without an epoch"
        )
    if request.transactional_id is not None:
        log.warning(
            "transactions are not supported yet, a transactional producer was refused",
            extra={"client": context.client_id, "transactional_id": request.transactional_id},
        )
        raise ApiError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "transactions are not supported yet"
        )
