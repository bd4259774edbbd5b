"""Requests parked until something happens to a partition, or until their deadline."""

import asyncio
from collections.abc import Callable, Hashable, Iterable
from typing import Final

Wake = Callable[[], None]


class Waiting:
    """Who waits for which key; a key is whatever may change: a partition, a group, the image.

    A waiter is woken once and must look for itself whether what it waits for has come true:
    waking is a hint, never a promise.
    """

    __slots__ = ("_waiters",)

    def __init__(self) -> None:
        self._waiters: Final[dict[Hashable, set[asyncio.Future[None]]]] = {}

    def notify(self, key: Hashable) -> None:
        """Wake everybody who waits for ``key``."""
        waiters = self._waiters.pop(key, None)
        if waiters is None:
            return
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def until(
        self,
        is_ready: Callable[[], bool],
        keys: Iterable[Hashable],
        *,
        timeout_s: float,
    ) -> bool:
        """Wait until ``is_ready()``, looking again at each notice; False at the deadline."""
        if is_ready():
            return True
        keys = tuple(keys)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while (left_s := deadline - loop.time()) > 0:
            waiter: asyncio.Future[None] = loop.create_future()
            for key in keys:
                self._waiters.setdefault(key, set()).add(waiter)
            timer = loop.call_later(left_s, _expire, waiter)
            try:
                await waiter
            finally:
                timer.cancel()
                self._forget(waiter, keys)
            if is_ready():
                return True
        return is_ready()

    def _forget(self, waiter: asyncio.Future[None], keys: Iterable[Hashable]) -> None:
        for key in keys:
            waiters = self._waiters.get(key)
            if waiters is not None:
                waiters.discard(waiter)
                if not waiters:
                    del self._waiters[key]


def _expire(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
