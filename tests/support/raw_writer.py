"""An idempotent producer on the bare protocol: five requests under way, sent again on trouble."""

import asyncio
import time
from dataclasses import dataclass, field

from support.batches import batch
from support.brokers import AskedBroker, connected_to
from twinlog.model.errors import ErrorCode, is_retriable
from twinlog.network.client import BrokerConnection
from twinlog.wire.messages.produce import (
    PRODUCE,
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
)
from twinlog.wire.messages.transactions import INIT_PRODUCER_ID, InitProducerIdRequest

UNDER_WAY_MAX = 5
RECORDS_PER_BATCH = 3
_TIMEOUT_S = 60.0
_RETRY_S = 0.02


@dataclass
class RawWriter:
    """Writes ``name-0``, ``name-1``, ... to one partition until it is told to stop."""

    bootstrap: str
    name: str
    topic: str
    partition: int
    acknowledged: dict[int, bytes] = field(default_factory=dict)
    """What each offset holds, as the broker told it."""
    resent_batches: int = 0
    is_stopping: bool = False
    _producer: tuple[int, int] | None = None
    _next: int = 0

    async def run(self) -> None:
        """Write until told to stop, and then until all is acknowledged."""
        pending: list[int] = []
        while pending or not self.is_stopping:
            try:
                async with connected_to(self.bootstrap) as broker:
                    await self._write(broker, pending)
            except (OSError, TimeoutError, ConnectionError):
                await asyncio.sleep(_RETRY_S)
            self.resent_batches += len(pending)

    async def _write(self, broker: AskedBroker, pending: list[int]) -> None:
        """Keep five batches under way; returns when one of them has to be sent again."""
        if self._producer is None:
            answer = await broker.ask(
                INIT_PRODUCER_ID,
                InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1_000),
            )
            assert answer.error_code == ErrorCode.NONE, answer.error_code
            self._producer = (answer.producer_id, answer.producer_epoch)
        while pending or not self.is_stopping:
            while len(pending) < UNDER_WAY_MAX and not self.is_stopping:
                pending.append(self._next)
                self._next += RECORDS_PER_BATCH
            sent = [self._send(broker.connection, first) for first in pending]
            answers = await asyncio.gather(*sent, return_exceptions=True)
            failures = [one for one in answers if isinstance(one, BaseException)]
            for first, offset in zip(tuple(pending), answers, strict=True):
                if isinstance(offset, int):
                    self._note(first, offset)
                    pending.remove(first)
            if failures:
                raise failures[0]

    async def _send(self, connection: BrokerConnection, first: int) -> int:
        assert self._producer is not None
        pairs = [(None, value) for value in self._values(first)]
        content = batch(pairs, producer=(*self._producer, first), timestamp=int(time.time() * 1000))
        part = ProducePartition(index=self.partition, records=content)
        request = ProduceRequest(
            acks=-1,
            timeout_ms=60_000,
            topic_data=(ProduceTopic(name=self.topic, partition_data=(part,)),),
        )
        response = await connection.call(PRODUCE, request, timeout_s=_TIMEOUT_S, version=12)
        (answer,) = response.responses[0].partition_responses
        if is_retriable(answer.error_code):
            raise ConnectionError(f"{self.name}: {ErrorCode(answer.error_code).name}")
        assert answer.error_code == ErrorCode.NONE, (
            f"{self.name} at {first}: {ErrorCode(answer.error_code).name} {answer.error_message}"
        )
        return answer.base_offset

    def _values(self, first: int) -> list[bytes]:
        return [b"%s-%d" % (self.name.encode(), first + n) for n in range(RECORDS_PER_BATCH)]

    def _note(self, first: int, offset: int) -> None:
        for value in self._values(first):
            assert self.acknowledged.setdefault(offset, value) == value, f"two told {offset}"
            offset += 1

    @property
    def written(self) -> list[bytes]:
        """Every value, in the order it was sent."""
        return [b"%s-%d" % (self.name.encode(), number) for number in range(self._next)]
