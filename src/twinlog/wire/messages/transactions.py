"""InitProducerId: v0-5.

v2: flexible. v3: a producer may ask for a newer epoch of its own id (KIP-360). v4, v5: new error
codes only (KIP-588, KIP-890).
"""

from typing import Annotated, Final

from twinlog.wire.api_keys import ApiKey
from twinlog.wire.primitives import Int16, Int32, Int64
from twinlog.wire.schema import Api, message, since


@message
class InitProducerIdRequest:
    transactional_id: str | None = None
    transaction_timeout_ms: Int32
    producer_id: Annotated[Int64, since(3)] = -1
    producer_epoch: Annotated[Int16, since(3)] = -1


@message
class InitProducerIdResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = -1
    producer_epoch: Int16


INIT_PRODUCER_ID: Final = Api(
    ApiKey.INIT_PRODUCER_ID, InitProducerIdRequest, InitProducerIdResponse, 0, 5, flexible_since=2
)
