"""What a mirror does again and again: each job on its own clock, whatever becomes of the others.

A job that fails shows its error, is tried again soon, and mends itself.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from twinlog.broker.mirrors.work import MirrorWork
from twinlog.model.errors import ApiError
from twinlog.network.exchange import PeerUnavailable

log = logging.getLogger(__name__)

FAILED_AGAIN_S: Final = 5.0


@dataclass(slots=True)
class Job:
    """Something done again and again, ``interval_s()`` after it has gone well."""

    name: str
    do: Callable[[], Awaitable[None]]
    interval_s: Callable[[], float]
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it should be done now, or once more if it is being done."""


async def repeat(job: Job, work: MirrorWork) -> None:
    """Do a job for ever: at once, and then in its time or when it is woken."""
    while True:
        job.wake.clear()
        is_done = await _attempt(job, work)
        wait_s = job.interval_s() if is_done else min(FAILED_AGAIN_S, job.interval_s())
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await job.wake.wait()


async def _attempt(job: Job, work: MirrorWork) -> bool:
    errors = work.status.task_errors
    try:
        await job.do()
    except (PeerUnavailable, ApiError) as error:
        if errors.get(job.name) is None:
            fields = {"mirror": work.name, "task": job.name, "why": str(error)}
            log.warning("mirror sync failed", extra=fields)
        work.board.task_failed(work.status, job.name, str(error))
        return False
    errors[job.name] = None
    return True
