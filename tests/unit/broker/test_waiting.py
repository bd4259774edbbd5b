import asyncio

from twinlog.broker.waiting import Waiting


async def test_what_is_already_true_is_not_waited_for() -> None:
    assert await Waiting().until(lambda: True, ["a"], timeout_s=0)


async def test_a_notice_wakes_the_waiter_and_it_looks_for_itself() -> None:
    waiting = Waiting()
    arrived: list[int] = []
    task = asyncio.ensure_future(waiting.until(lambda: len(arrived) >= 2, ["a", "b"], timeout_s=60))
    await asyncio.sleep(0)
    arrived.append(1)
    waiting.notify("a")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not task.done()
    arrived.append(2)
    waiting.notify("b")
    assert await task


async def test_the_deadline_ends_the_wait_and_nothing_is_left_behind() -> None:
    waiting = Waiting()
    assert not await waiting.until(lambda: False, ["a"], timeout_s=0.001)
    assert waiting._waiters == {}


async def test_a_cancelled_waiter_leaves_nothing_behind() -> None:
    waiting = Waiting()
    task = asyncio.ensure_future(waiting.until(lambda: False, ["a"], timeout_s=60))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert waiting._waiters == {}
