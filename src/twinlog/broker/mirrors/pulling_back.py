"""Pulls the groups' offsets back to where a log is about to be cut.

A group that was read here before a failover may have committed beyond the cut. Other records come
to stand there, and a group that went on from its old offset would never see them.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final

from twinlog.model.ids import Offset, TopicPartition

TIMEOUT_S: Final = 5.0


@dataclass(slots=True)
class PullingBack:
    """The offsets of all groups here; what is asked at about once is done together."""

    run_everywhere: Callable[..., Coroutine[Any, Any, list[Any]]]
    """``context.Coordinators.run_everywhere`` of the groups."""
    _wanted: dict[object, tuple[TopicPartition, Offset]] = field(default_factory=dict)
    """By whoever waits for it: what nobody waits for any more must not be done later."""
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def pull_back(self, of: TopicPartition, end: Offset) -> None:
        """Return when no group stands beyond ``end``. Raises ApiError, also while a shard loads."""
        me = object()
        self._wanted[me] = of, end
        try:
            async with self._lock:
                if me in self._wanted:  # else somebody took it along
                    await self._pull_all_back()
        finally:
            self._wanted.pop(me, None)

    async def _pull_all_back(self) -> None:
        wanted = dict(self._wanted)
        ends = dict(wanted.values())
        await self.run_everywhere(lambda shard, _: shard.pull_back(ends), timeout_s=TIMEOUT_S)
        for who in wanted:
            self._wanted.pop(who, None)
