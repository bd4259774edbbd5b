"""Requests parked until something happens to a partition, or until their deadline."""

import asyncio
from collections.abc import Callable, Hashable, Iterable
from typing import Final


class Waiting:
    """Who waits for which key; a key is whatever may change: a partition, a group, the image.

    A waiter is woken once and must look for itself whether what it waits for has come true:
    waking is a hint, never a promise.
    """

    __slots__ = ("_waiters",)

    def __init__(self) -> None:
        self._waiters: Final[dict[Hashable, set[asyncio.Future[bool]]]] = {}

    def notify(self, key: Hashable) -> None:
        """Wake everybody who waits for ``key``."""
        waiters = self._waiters.pop(key, None)
        if waiters is None:
            return
        for waiter in waiters:
            _settle(waiter, True)

    async def until(
        self,
        is_ready: Callable[[], bool],
        keys: Iterable[Hashable],
        *,
        timeout_s: float,
    ) -> bool:
        """Wait until ``is_ready()``, looking again at each notice; False at the deadline."""
        keys = tuple(keys)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while not is_ready():
            left_s = deadline - loop.time()
            if left_s <= 0 or not await self.notice(keys, timeout_s=left_s):
                return is_ready()
        return True

    async def notice(self, keys: tuple[Hashable, ...], *, timeout_s: float) -> bool:
        """Wait for the next notice of one of ``keys``; False when none came in time."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        for key in keys:
            self._waiters.setdefault(key, set()).add(waiter)
        timer = loop.call_later(timeout_s, _settle, waiter, False)
        try:
            return await waiter
        finally:
            timer.cancel()
            self._forget(waiter, keys)

    def _forget(self, waiter: asyncio.Future[bool], keys: Iterable[Hashable]) -> None:
        for key in keys:
            waiters = self._waiters.get(key)
            if waiters is not None:
                waiters.discard(waiter)
                if not waiters:
                    del self._waiters[key]


def _settle(waiter: asyncio.Future[bool], result: bool) -> None:  # noqa: FBT001 - as above
    if not waiter.done():
        waiter.set_result(result)
