"""A mirror ends when it is told to, whatever becomes of it just then."""

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from twinlog.broker.loops import mirror_states as module
from twinlog.broker.loops.mirror_states import MirrorStates, _Running
from twinlog.cluster.facts import MirrorFact
from twinlog.model.errors import ApiError, ErrorCode


async def test_a_mirror_that_is_ended_while_it_fails_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BEGIN_AGAIN_S", 0.0)
    comes_down, may_go_on = asyncio.Event(), asyncio.Event()

    async def closes_slowly() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            comes_down.set()
            await may_go_on.wait()

    async def fails() -> None:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "planted")

    async def run_once(_: MirrorFact, __: _Running) -> None:
        if comes_down.is_set():
            await asyncio.Event().wait()  # begun again, which it must not be
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(closes_slowly())
            await asyncio.sleep(0)
            tasks.create_task(fails())

    fact = MirrorFact("m", {}, "")
    states = cast(MirrorStates, SimpleNamespace(_run_once=run_once))
    task = asyncio.create_task(MirrorStates._run_mirror(states, fact, _Running(fact)))
    await comes_down.wait()
    task.cancel()
    may_go_on.set()
    done, _ = await asyncio.wait({task}, timeout=60)
    task.cancel()
    assert done
