"""Drives every shard of one internal topic: load, run commands, fire deadlines, hand over.

One ``CoordinatorLoop`` for consumer groups, one for mirrors: the shard is all that differs.

Where the kind has a linger, commands wait a little for each other: what all of them write is one
append to each shard.

Differs from Kafka: a shard is changed as soon as a command has run, not when its records are
committed; what it says is held back until then. When an append fails the shard is loaded again.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from twinlog.broker.led_shards import FAILURES, AnyShard, Given, LedShard, StateLog
from twinlog.broker.steady_time import SteadyTime, TwoClocks
from twinlog.broker.waiting import Waiting
from twinlog.coordination.homes import home_of
from twinlog.coordination.outcome import Outcome
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import TopicName, TopicPartition

Reply = TypeVar("Reply")

LOOK_AT_CLOCK_MS: Final = 10_000
"""How long the loop sleeps at most: then it looks whether the clock was set."""

log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Kind(Generic[AnyShard]):
    """What a loop coordinates: its topic, a fresh shard, and how patient it is."""

    topic: TopicName
    partition_count: Callable[[], int | None]
    """None while the topic does not exist."""
    led_count: Callable[[], int]
    """How many of its partitions this broker is to lead; it has a shard for each before long."""
    make_shard: Callable[[], AnyShard]
    linger_ms: int = 0
    """How long a command waits for others, to be written together with them."""


@dataclass(frozen=True, slots=True)
class _Gathered(Generic[AnyShard]):
    """A command that waits for others, and what will have become of it."""

    command: Callable[[AnyShard, int], Outcome[Any]]
    begun: asyncio.Future[Given[Any] | asyncio.Future[Given[Any]]]

    def refuse(self, error: Exception) -> None:
        """Tell whoever still waits that it was not done."""
        if not self.begun.done():
            self.begun.set_exception(error)


class CoordinatorLoop(Generic[AnyShard]):
    """Commands come in through ``run``; ``drive`` is the task that loads and keeps the time."""

    def __init__(self, kind: Kind[AnyShard], waiting: Waiting, clock: TwoClocks) -> None:
        self._kind: Final = kind
        self._waiting: Final = waiting
        self._time: Final = SteadyTime(clock)
        self._led: Final[dict[int, LedShard[AnyShard]]] = {}
        self._wake: Final = asyncio.Event()
        self._sleeps_until_ms = 0
        self._gathered: Final[dict[LedShard[AnyShard], list[_Gathered[AnyShard]]]] = {}

    # What happens to partitions.

    def keep(self, led_now: Iterable[StateLog]) -> None:
        """Follow what this broker leads now: load what is new, let go of what is not there."""
        now = {one.of.partition: one for one in led_now}
        for partition, led in tuple(self._led.items()):
            if now.get(partition) != led.log:
                self.resign(led.log.of)
        for one in now.values():
            self.lead(one)

    def lead(self, partition_log: StateLog) -> None:
        """This broker leads the partition: load it. Nothing happens when it has done so before."""
        partition = partition_log.of.partition
        if partition not in self._led:
            led = self._led[partition] = LedShard(partition_log, self._kind.make_shard)
            if partition_log.start == partition_log.end:
                self._advance(led, self._time.now_ms())  # so that a new topic can be used at once
            self._wake.set()

    def resign(self, of: TopicPartition) -> None:
        """This broker no longer leads the partition."""
        led = self._led.pop(of.partition, None)
        if led is not None:
            led.close()
            why = f"{of} is no longer led by this broker"
            for one in self._gathered.pop(led, ()):
                one.refuse(ApiError(ErrorCode.NOT_COORDINATOR, why))
            self._waiting.notify(of)

    def send_away(self, why: str) -> None:
        """Answer everybody who is parked with NOT_COORDINATOR: the broker is stopping."""
        for led in self._led.values():
            led.send_away(why)

    @property
    def progress(self) -> Mapping[int, bool]:
        """The partitions led here, and whether each is loaded."""
        return {partition: not led.is_loading for partition, led in self._led.items()}

    # Commands.

    async def run(
        self, key: str, command: Callable[[AnyShard, int], Outcome[Reply]], *, timeout_s: float
    ) -> Reply:
        """Run ``command(shard, now_ms)`` on the shard that ``key`` lives in; reply once committed.

        ``timeout_s`` bounds the wait for the commit. A parked command waits as long as its shard
        lets it. Raises what the command raises, and ApiError: COORDINATOR_NOT_AVAILABLE while the
        topic does not exist or a commit takes too long, COORDINATOR_LOAD_IN_PROGRESS,
        NOT_COORDINATOR.
        """
        led = self._home(key)
        if not self._kind.linger_ms:
            return await self._finish(*self._begin(led, command), timeout_s)
        return await self._finish(led, await self._gather(led, command), timeout_s)

    async def run_everywhere(
        self, command: Callable[[AnyShard, int], Outcome[Reply]], *, timeout_s: float
    ) -> list[Reply]:
        """Run ``command`` on every shard of this broker; raises while one of them loads.

        A broker that has just started has no shard yet: that must not look like one with nothing.
        """
        self._begin_gathered()
        led_count = self._kind.led_count()
        if len(self._led) < led_count:
            why = f"{len(self._led)} of {led_count} partitions of {self._kind.topic} are here yet"
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, why)
        begun = [self._begin(led, command) for led in self._led.values()]
        return [await self._finish(led, given, timeout_s) for led, given in begun]

    def tell_all(self, command: Callable[[AnyShard, int], Outcome[None]]) -> None:
        """Run ``command`` on every loaded shard of this broker; nobody waits for a reply."""
        self._begin_gathered()
        for led in self._led.values():
            if not led.is_loading:
                try:
                    self._begin(led, command)
                except FAILURES:
                    log.exception("coordinator partition failed", extra=_naming(led))

    def _home(self, key: str) -> LedShard[AnyShard]:
        partition_count = self._kind.partition_count()
        if partition_count is None:
            why = f"{self._kind.topic} does not exist yet"
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, why)
        partition = home_of(key, partition_count)
        led = self._led.get(partition)
        if led is None:
            why = f"{key} lives in {self._kind.topic}-{partition}, which this broker does not lead"
            raise ApiError(ErrorCode.NOT_COORDINATOR, why)
        return led

    def _begin(
        self, led: LedShard[AnyShard], command: Callable[[AnyShard, int], Outcome[Reply]]
    ) -> tuple[LedShard[AnyShard], Given[Reply] | asyncio.Future[Given[Reply]]]:
        try:
            return led, led.begin(command, self._time.now_ms())
        finally:  # also after a failure: the shard has to be loaded again
            self._look_at_deadline(led)

    def _look_at_deadline(self, led: LedShard[AnyShard]) -> None:
        next_ms = led.next_ms
        if next_ms is not None and next_ms < self._sleeps_until_ms:
            self._wake.set()

    def _gather(
        self, led: LedShard[AnyShard], command: Callable[[AnyShard, int], Outcome[Any]]
    ) -> asyncio.Future[Given[Any] | asyncio.Future[Given[Any]]]:
        """Let a command wait for those that come soon after it."""
        loop = asyncio.get_running_loop()
        if not self._gathered:
            loop.call_later(self._kind.linger_ms / 1000, self._begin_gathered)
        one = _Gathered(command, loop.create_future())
        self._gathered.setdefault(led, []).append(one)
        return one.begun

    def _begin_gathered(self) -> None:
        """Run what was gathered, shard by shard."""
        gathered = dict(self._gathered)
        self._gathered.clear()
        try:
            for led, together in gathered.items():
                self._begin_together(led, together)
        finally:  # a fault that nobody foresaw leaves nobody waiting
            for together in gathered.values():
                for one in together:
                    one.refuse(ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "the coordinator failed"))

    def _begin_together(self, led: LedShard[AnyShard], waiting: list[_Gathered[AnyShard]]) -> None:
        # Whoever gave up meanwhile has changed nothing.
        wanted = [one for one in waiting if not one.begun.done()]
        begun = led.begin_all([one.command for one in wanted], self._time.now_ms())
        for one, what in zip(wanted, begun, strict=True):
            if isinstance(what, Exception):
                one.refuse(what)
            else:
                one.begun.set_result(what)
        self._look_at_deadline(led)

    async def _finish(
        self,
        led: LedShard[AnyShard],
        given: Given[Reply] | asyncio.Future[Given[Reply]],
        timeout_s: float,
    ) -> Reply:
        """Wait until a reply is there, and all it rests on is committed."""
        if isinstance(given, asyncio.Future):
            given = await given
        end, of = given.end, led.log.of
        await self._waiting.until(
            lambda: led.is_closed or led.log.high_watermark >= end, [of], timeout_s=timeout_s
        )
        if led.is_closed:
            raise ApiError(ErrorCode.NOT_COORDINATOR, f"{of} is no longer led by this broker")
        if led.log.high_watermark < end:
            why = f"{of} is committed up to {led.log.high_watermark}, not {end}, in {timeout_s} s"
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, why)
        return given.reply

    # The task.

    async def drive(self) -> None:
        """Load what is to be loaded and fire what is due, for ever."""
        while True:
            self._wake.clear()
            wait_ms = self.step()
            if wait_ms == 0:
                await asyncio.sleep(0)  # others have their turn between two chunks of a load
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_ms / 1000):
                    await self._wake.wait()

    def step(self) -> int:
        """Do what is due, of each load one chunk; give for how many ms nothing more is."""
        self._follow_clock()
        now_ms = self._time.now_ms()
        for led in tuple(self._led.values()):
            next_ms = led.next_ms
            if next_ms is not None and next_ms <= now_ms:
                self._advance(led, now_ms)
        self._sleeps_until_ms = min(
            (led.next_ms for led in self._led.values() if led.next_ms is not None),
            default=now_ms + LOOK_AT_CLOCK_MS,
        )
        self._sleeps_until_ms = min(self._sleeps_until_ms, now_ms + LOOK_AT_CLOCK_MS)
        return max(self._sleeps_until_ms - self._time.now_ms(), 0)

    def _advance(self, led: LedShard[AnyShard], now_ms: int) -> None:
        try:
            if not led.is_loading:
                led.fire_due(now_ms)
            elif led.load_some(now_ms):
                level = logging.INFO if led.log.end > led.log.start else logging.DEBUG
                log.log(level, "coordinator partition loaded", extra=_naming(led))
        except FAILURES:
            log.exception("coordinator partition failed", extra=_naming(led))
            led.start_over(now_ms)

    def _follow_clock(self) -> None:
        jump_ms = self._time.jump_ms()
        if jump_ms:
            log.warning("the clock was set", extra={"by_ms": jump_ms})
            for led in self._led.values():
                led.shift_timers(jump_ms)


def _naming(led: LedShard[Any]) -> dict[str, object]:
    return {"partition": str(led.log.of), "log_end": led.log.end}
