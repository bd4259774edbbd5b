"""Fetches for one mirror from one source broker: raw batches in, events to the partitions out.

A consumer to the source (replica id -1, READ_UNCOMMITTED): it serves what is committed and keeps
no account of us, but for the session (KIP-227) in which it remembers what is asked for, so that a
request and its answer cost what has changed. Batches are handed on as they came, never decoded and
never copied.
"""

import asyncio
import logging
from contextlib import suppress
from typing import Final

from twinlog.broker.mirrors.permissions import READ, with_lacking
from twinlog.broker.mirrors.work import Fetcher, MirrorWork
from twinlog.config import mirror as keys
from twinlog.mirroring import events as on
from twinlog.mirroring.effects import FetchFrom
from twinlog.mirroring.planning import PlannedFetch
from twinlog.mirroring.policy import RetryPolicy
from twinlog.mirroring.topic_sync import is_same_topic
from twinlog.model.errors import ApiError, ErrorCode, error_name
from twinlog.model.ids import (
    NO_OFFSET,
    NO_TOPIC_ID,
    BrokerId,
    Offset,
    TopicId,
    TopicName,
    TopicPartition,
)
from twinlog.network.client import BrokerConnection
from twinlog.network.exchange import PeerUnavailable
from twinlog.wire.messages.fetch import (
    FETCH,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)

log = logging.getLogger(__name__)

RESPONSE_BYTES_TARGET: Final = 4 << 20
"""Bigger answers cost memory and bring nothing."""
IDLE_CLOSE_S: Final = 60.0
IDS_SINCE: Final = 13
NAMES_UNTIL: Final = 12
THROTTLE_S_MAX: Final = 60.0
BACKLOG_BYTES: Final = RESPONSE_BYTES_TARGET // 2
"""An answer of that size is part of a backlog, which is copied fastest without a pause."""
ANSWER_TURNS: Final = 2
"""Turns of the event loop until a client that waited is answered: one to read, one to send."""

_SESSION_ERRORS: Final = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)
_GONE_OR_ANOTHER: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
)
"""After which the topics are looked at at once: it may have been deleted, or made again."""


class MirrorFetch:
    """One task, one connection."""

    def __init__(self, work: MirrorWork, node: BrokerId, number: int, fetcher: Fetcher) -> None:
        settings = work.settings
        self._work: Final = work
        self._node: Final = node
        self._number: Final = number
        self._fetcher: Final = fetcher
        self._wait_ms: Final[int] = settings[keys.FETCH_WAIT_MAX_MS]
        self._min_bytes: Final[int] = settings[keys.FETCH_MIN_BYTES]
        self._partition_bytes: Final[int] = settings[keys.FETCH_MAX_BYTES]
        self._response_bytes: Final = min(
            settings[keys.FETCH_RESPONSE_MAX_BYTES], RESPONSE_BYTES_TARGET
        )
        self._timeout_s: Final = (self._wait_ms + settings[keys.SOCKET_TIMEOUT_MS]) / 1000
        self._backoff: Final = RetryPolicy(
            backoff_ms_min=100, backoff_ms_max=max(100, settings[keys.FETCH_BACKOFF_MS])
        )
        self._connection: BrokerConnection | None = None
        self._failure_count = 0

    async def run(self) -> None:
        """Fetch for ever; wait while nothing is to be fetched, and after failures."""
        try:
            while True:
                if not self._fetcher.plan:
                    await self._rest()
                    continue
                await self.step()
                if self._fetcher.plan.asks_nothing:
                    await self._await_throttle()
        finally:
            await self._close()

    async def step(self) -> None:
        """Make one request and hand on its answer."""
        plan = self._fetcher.plan
        held_ms = self._hold_throttled()
        if plan.asks_nothing:
            return
        try:
            connection = await self._connected()
            if not plan:
                return  # nothing of it was left
            version = connection.version_of(FETCH)
            planned = plan.next(self._id_of if version >= IDS_SINCE else _no_id)
            if not planned.uses_ids:
                version = min(version, NAMES_UNTIL)
            response = await connection.call(
                FETCH, self._request(planned, held_ms), timeout_s=self._timeout_s, version=version
            )
            if response.error_code in _SESSION_ERRORS and not planned.is_full:
                plan.lose_session(is_known=response.error_code != _SESSION_ERRORS[0])
                return
            if response.error_code:
                what = error_name(response.error_code)
                raise PeerUnavailable(connection.address, f"Fetch was answered with {what}")
        except (PeerUnavailable, ApiError) as error:
            await self._failed(error)
            return
        self._failure_count = 0
        self._work.status.task_errors[self._name] = None
        counts = self._work.status.counts
        counts.fetches += 1
        bytes_before = counts.fetched_bytes
        self.take(response)
        if counts.fetched_bytes - bytes_before < BACKLOG_BYTES:
            # The next request wakes the source, which then takes the processor from us: whoever
            # waits for these records would have them twice as late.
            for _ in range(ANSWER_TURNS):
                await asyncio.sleep(0)
        if response.throttle_time_ms > 0:
            # The source's quotas govern what it gives us.
            await asyncio.sleep(min(response.throttle_time_ms / 1000, THROTTLE_S_MAX))

    def take(self, response: FetchResponse) -> None:
        """Hand each partition its part of the answer, also where that was left out."""
        plan = self._fetcher.plan
        if response.throttle_time_ms > 0 and not response.topics:
            # A source whose quota is used up leaves everything out, records that wait there, too.
            plan.put_off(response.session_id)
            self._work.status.put_off_at_ms = self._work.clock.now_ms()
            return
        for topic in response.topics:
            topic_id = TopicId(topic.topic_id)
            name = TopicName(topic.topic) or plan.name_of(topic_id)
            if name is None:
                continue
            for partition in topic.partitions:
                of = TopicPartition(name, partition.partition_index)
                end = NO_OFFSET if partition.error_code else Offset(partition.high_watermark)
                order = plan.heard(of, topic_id, end, Offset(partition.log_start_offset))
                if order is not None:
                    self._hand_on(of, order, partition)
        left_out = plan.answered(response.session_id, self._work.clock.now_ms())
        for of, order, high_watermark, log_start in left_out:
            receiver = self._work.receivers.get(of)
            if receiver is not None:
                receiver.deliver(
                    on.Fetched(order.offset, high_watermark, log_start, b"", order.turn)
                )

    def _hand_on(self, of: TopicPartition, order: FetchFrom, fetched: FetchedPartition) -> None:
        receiver = self._work.receivers.get(of)
        if receiver is None:
            self._fetcher.plan.drop(of)
        elif fetched.error_code:
            code, why = fetched.error_code, f"the source's answer to a fetch of {of} from "
            if code in _GONE_OR_ANOTHER:
                self._work.status.refresh_wanted.set()
            why = with_lacking(
                f"{why}{order.offset}", self._work.source.security, code, READ, of.topic
            )
            receiver.deliver(on.SourceRefused(code, why, order.turn))
        elif fetched.diverging_epoch.end_offset >= 0:
            receiver.deliver(on.Diverged(order.turn))
        else:
            records = fetched.records
            assert records is None or isinstance(records, memoryview)
            if records:
                self._fetcher.plan.move_back(of)
                self._work.status.counts.fetched_bytes += len(records)
            receiver.deliver(
                on.Fetched(
                    order.offset,
                    Offset(fetched.high_watermark),
                    Offset(fetched.log_start_offset),
                    b"" if records is None else records,
                    order.turn,
                )
            )
            if records and of in self._work.throttled:
                self._work.board.throttle.record(len(records), self._work.clock.now_ms())

    def _request(self, planned: PlannedFetch, held_ms: int) -> FetchRequest:
        topics: dict[TopicName, list[FetchPartition]] = {}
        for of, order in planned.asked:
            topics.setdefault(of.topic, []).append(
                FetchPartition(
                    partition=of.partition,
                    current_leader_epoch=order.leader_epoch,
                    fetch_offset=order.offset,
                    last_fetched_epoch=order.last_fetched_epoch,
                    partition_max_bytes=self._partition_bytes,
                )
            )
        forgotten: dict[tuple[TopicName, TopicId], list[int]] = {}
        for of, topic_id in planned.forgotten:
            forgotten.setdefault((of.topic, topic_id), []).append(of.partition)
        return FetchRequest(
            max_wait_ms=min(self._wait_ms, held_ms) if held_ms else self._wait_ms,
            min_bytes=self._min_bytes,
            max_bytes=self._response_bytes,
            session_id=planned.session_id,
            session_epoch=planned.session_epoch,
            topics=tuple(
                FetchTopic(topic_id=self._id_of(name), partitions=tuple(partitions))
                if planned.uses_ids
                else FetchTopic(topic=name, partitions=tuple(partitions))
                for name, partitions in topics.items()
            ),
            forgotten_topics=tuple(
                ForgottenTopic(topic_id=topic_id, partitions=tuple(partitions))
                if planned.uses_ids
                else ForgottenTopic(topic=name, partitions=tuple(partitions))
                for (name, topic_id), partitions in forgotten.items()
            ),
        )

    # Throttle

    def _hold_throttled(self) -> int:
        """Leave throttled partitions out while the rate is exceeded; give for how long it is.

        Being level with the source exempts none (KIP-1279), and the others are not held up.
        """
        throttled, throttle = self._work.throttled, self._work.board.throttle
        held_ms = throttle.wait_ms(self._work.clock.now_ms()) if throttled else 0
        self._fetcher.plan.hold(throttled if held_ms else frozenset())
        return held_ms

    async def _await_throttle(self) -> None:
        """Wait until throttled partitions may go on, or there is something else to fetch."""
        wait_ms = self._hold_throttled()  # anew: which they are may have changed since
        if not self._fetcher.plan.asks_nothing:
            return
        self._fetcher.wake.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_ms / 1000):
                await self._fetcher.wake.wait()

    def _id_of(self, topic: TopicName) -> TopicId:
        """Give a topic's id here, which it has from the source; under another it is another topic.

        None is given where the source has told that it keeps none.
        """
        known = self._work.source.peers.metadata.topics.get(topic)
        here = self._work.facts.image.topics.get(topic)
        if here is None or (known is not None and known.topic_id == NO_TOPIC_ID):
            return NO_TOPIC_ID
        return here.id

    # Connection

    @property
    def _name(self) -> str:
        return f"fetch from source broker {self._node}"

    async def _connected(self) -> BrokerConnection:
        connection = self._connection
        if connection is None or not connection.is_open:
            await self._close()
            connection = await self._work.source.open_fetcher(self._node, self._number)
            self._connection = connection
            await self._refuse_others()
        return connection

    async def _refuse_others(self) -> None:
        """Leave out topics that were made again while there was no connection.

        By the name, in the same leader epoch and at the same offset, nothing would tell them apart.
        Raises PeerUnavailable and ApiError, also when another cluster answers by now.
        """
        source, orders = self._work.source, tuple(self._fetcher.plan.orders)
        try:
            await source.peers.refresh({of.topic for of, _ in orders})
        except ApiError as error:
            if error.code == ErrorCode.INCONSISTENT_CLUSTER_ID:
                self._work.status.refresh_wanted.set()
            raise
        for of, order in orders:
            receiver = self._work.receivers.get(of)
            here, there = self._id_of(of.topic), source.topic_id(of.topic)
            if receiver is not None and not is_same_topic(here, there):
                why = f"topic {of.topic} of the source has another id now, {there}"
                code = ErrorCode.INCONSISTENT_TOPIC_ID
                self._work.status.refresh_wanted.set()
                receiver.deliver(on.SourceRefused(code, why, order.turn))

    async def _failed(self, error: PeerUnavailable | ApiError) -> None:
        """Tell, look whether other brokers lead now, and try again later.

        The partitions keep their state: a source that blinks must not churn states by thousands.
        """
        if self._failure_count == 0:
            fields = {"mirror": self._work.name, "source_broker": self._node, "why": str(error)}
            log.warning("fetching from the source failed", extra=fields)
        self._failure_count += 1
        self._work.status.counts.fetch_failures += 1
        self._work.status.task_errors[self._name] = str(error)
        self._work.status.leaders_wanted.set()
        self._fetcher.plan.lose_session(is_known=True)
        await self._close()
        if isinstance(error, ApiError) and error.code == ErrorCode.UNSUPPORTED_VERSION:
            self._refuse_all(error)
        delay_ms = self._backoff.delay_ms(self._failure_count, self._work.clock.fraction())
        await asyncio.sleep(delay_ms / 1000)

    def _refuse_all(self, error: ApiError) -> None:
        for of, order in self._fetcher.plan.orders:
            receiver = self._work.receivers.get(of)
            if receiver is not None:
                receiver.deliver(on.SourceRefused(error.code, error.why, order.turn))

    async def _rest(self) -> None:
        """Wait until there is something to fetch; after a while without, hang up.

        What went wrong with this broker is nobody's trouble then: others lead, or it is stopped.
        """
        self._work.status.task_errors.pop(self._name, None)
        self._failure_count = 0
        self._fetcher.wake.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(IDLE_CLOSE_S):
                await self._fetcher.wake.wait()
                return
        await self._close()
        await self._fetcher.wake.wait()

    async def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


def _no_id(_: TopicName) -> TopicId:
    return NO_TOPIC_ID
