import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from support.memory_state import DictShard, ManualClock, MemoryStateLog
from twinlog.broker import led_shards
from twinlog.broker.loops.coordinators import CoordinatorLoop, Kind
from twinlog.broker.waiting import Waiting
from twinlog.coordination.homes import home_of
from twinlog.coordination.outcome import Outcome, StateRecord
from twinlog.model.errors import ApiError, DiskError, ErrorCode
from twinlog.model.ids import TopicName, TopicPartition
from twinlog.wire.records.build import build_batch, records_of_pairs

TOPIC = TopicName("__state")
COUNT = 4


class World:
    """A loop over four partitions, each with a log in memory."""

    def __init__(self, linger_ms: int = 0) -> None:
        self.clock = ManualClock()
        self.waiting = Waiting()
        self.count: int | None = COUNT
        self.led_count = 0
        kind = Kind(TOPIC, lambda: self.count, lambda: self.led_count, DictShard, linger_ms)
        self.loop = CoordinatorLoop(kind, self.waiting, self.clock)
        self.logs = [MemoryStateLog(TopicPartition(TOPIC, n)) for n in range(COUNT)]

    def home(self, key: str) -> MemoryStateLog:
        return self.logs[home_of(key, COUNT)]

    def fill(self) -> None:
        """Write something before anybody loads it."""
        for log in self.logs:
            log.append(build_batch(records_of_pairs([(b"old", b"v")], timestamp_ms=0)), now_ms=0)

    def load(self) -> None:
        for log in self.logs:
            self.loop.lead(log)
        while not all(self.loop.progress.values()):
            self.loop.step()

    async def put(self, key: str, value: bytes, timeout_s: float = 5) -> str:
        return await self.loop.run(
            key, lambda shard, _: shard.put(key.encode(), value), timeout_s=timeout_s
        )

    async def get(self, key: str) -> bytes | None:
        return await self.loop.run(key, lambda shard, _: shard.get(key.encode()), timeout_s=60)

    async def wait(self, key: str) -> bytes | None:
        return await self.loop.run(key, lambda shard, _: shard.wait(), timeout_s=60)


@pytest.fixture
def world() -> World:
    return World()


@asynccontextmanager
async def driven(world: World) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as tasks:
        driver = tasks.create_task(world.loop.drive())
        yield
        driver.cancel()


async def code_of(waiting: asyncio.Task[object]) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        await waiting
    return caught.value.code


async def refused(world: World, key: str) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        await world.get(key)
    return caught.value.code


async def test_what_is_put_is_got(world: World) -> None:
    world.load()
    assert await world.put("k", b"v") == "put"
    assert await world.get("k") == b"v"


async def test_each_key_lives_in_its_own_partition(world: World) -> None:
    world.load()
    for n in range(20):
        await world.put(f"key {n}", b"v")
    assert sum(log.end for log in world.logs) == 20
    assert world.home("key 3").end > 0


async def test_before_the_topic_exists_there_is_no_coordinator(world: World) -> None:
    world.count = None
    assert await refused(world, "k") is ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_a_key_of_a_partition_led_elsewhere_has_its_coordinator_elsewhere(
    world: World,
) -> None:
    assert await refused(world, "k") is ErrorCode.NOT_COORDINATOR


async def test_a_new_topic_can_be_used_at_once(world: World) -> None:
    for log in world.logs:
        world.loop.lead(log)
    assert await world.get("k") is None


async def test_while_a_partition_loads_nothing_is_said_of_its_keys(world: World) -> None:
    world.fill()
    for log in world.logs:
        world.loop.lead(log)
    assert await refused(world, "k") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


async def test_the_task_loads_what_it_is_given(world: World) -> None:
    world.fill()
    async with driven(world):
        for log in world.logs:
            world.loop.lead(log)
        for _ in range(10):
            await asyncio.sleep(0)
        assert await world.get("k") is None


async def test_to_lead_a_partition_again_keeps_its_shard(world: World) -> None:
    world.load()
    world.loop.lead(world.logs[0])
    assert world.loop.progress[0]


async def test_a_reply_waits_for_the_commit(world: World) -> None:
    world.load()
    log = world.home("k")
    log.lags = True
    async with asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(world.put("k", b"v"))
        reading = tasks.create_task(world.get("k"))
        for _ in range(3):
            await asyncio.sleep(0)
        assert not writing.done()
        assert not reading.done(), "a read rests on what it saw, too"
        log.high_watermark = log.end
        world.waiting.notify(log.of)
    assert reading.result() == b"v"


async def test_a_commit_that_takes_too_long_is_given_up(world: World) -> None:
    world.load()
    world.home("k").lags = True
    with pytest.raises(ApiError) as caught:
        await world.put("k", b"v", timeout_s=0.001)
    assert caught.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_a_parked_command_is_answered_later(world: World) -> None:
    world.load()
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(world.wait("k"))
        await asyncio.sleep(0)
        await world.put("k", b"v")
    assert waiting.result() == b"v"


async def test_who_waits_is_sent_away_when_leadership_is_lost(world: World) -> None:
    world.load()
    log = world.home("k")
    parked = asyncio.get_running_loop().create_task(world.wait("k"))
    await asyncio.sleep(0)
    log.lags = True
    uncommitted = asyncio.get_running_loop().create_task(world.put("k", b"v"))
    await asyncio.sleep(0)
    world.loop.resign(log.of)
    assert await code_of(uncommitted) is ErrorCode.NOT_COORDINATOR
    assert await code_of(parked) is ErrorCode.NOT_COORDINATOR
    assert await refused(world, "k") is ErrorCode.NOT_COORDINATOR
    world.loop.resign(log.of)


async def test_what_is_led_now_is_kept_and_the_rest_let_go(world: World) -> None:
    world.load()
    await world.loop.run_everywhere(lambda shard, _: shard.put(b"k", b"v"), timeout_s=60)
    made_again = MemoryStateLog(TopicPartition(TOPIC, 1))
    world.loop.keep([world.logs[0], made_again])
    found = await world.loop.run_everywhere(lambda shard, _: shard.get(b"k"), timeout_s=60)
    assert found == [b"v", None]


async def test_who_is_parked_is_sent_away_when_the_broker_stops(world: World) -> None:
    world.load()
    parked = asyncio.get_running_loop().create_task(world.wait("k"))
    await asyncio.sleep(0)
    world.loop.send_away("the broker is stopping")
    assert await code_of(parked) is ErrorCode.NOT_COORDINATOR
    assert await world.put("k", b"v") == "put", "whoever commits now is still served"


async def test_all_loaded_shards_are_told_something(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    def forget(shard: DictShard, now_ms: int) -> Outcome[None]:
        return Outcome(None, (StateRecord(b"forgotten", b""),))

    world.fill()
    world.load()
    world.loop.resign(world.logs[3].of)
    world.loop.lead(world.logs[3])
    world.logs[2].fails_with = DiskError("broken")
    world.loop.tell_all(forget)
    assert [log.end for log in world.logs] == [2, 2, 1, 1]
    assert "broken" in caplog.text


async def test_a_command_can_be_run_on_every_shard(world: World) -> None:
    world.load()
    replies = await world.loop.run_everywhere(lambda shard, _: shard.put(b"k", b"v"), timeout_s=60)
    assert replies == ["put"] * COUNT


async def test_a_command_for_every_shard_is_refused_while_one_loads(world: World) -> None:
    world.fill()
    world.loop.lead(world.logs[0])
    with pytest.raises(ApiError):
        await world.loop.run_everywhere(lambda shard, _: shard.get(b"k"), timeout_s=60)


async def test_a_shard_that_is_not_here_yet_is_not_taken_for_an_empty_one(world: World) -> None:
    world.led_count = COUNT
    with pytest.raises(ApiError, match="0 of 4 partitions of __state are here yet"):
        await world.loop.run_everywhere(lambda shard, _: shard.get(b"k"), timeout_s=60)
    world.load()
    told = await world.loop.run_everywhere(lambda shard, _: shard.get(b"k"), timeout_s=60)
    assert told == [None] * COUNT


async def set_timer(world: World, name: str, at_ms: int) -> None:
    def command(shard: DictShard, now_ms: int) -> object:
        shard.timers.set(name, at_ms)
        return shard.get(b"")

    await world.loop.run("k", command, timeout_s=60)  # type: ignore[arg-type]


async def test_deadlines_fire_when_they_pass(world: World) -> None:
    world.load()
    await set_timer(world, "t", 1_000_500)
    assert world.loop.step() == 500
    world.clock.advance(500)
    world.loop.step()
    assert world.home("k").end == 1


async def test_the_task_wakes_up_for_a_deadline_that_is_nearer_than_its_sleep(
    world: World,
) -> None:
    world.load()
    async with driven(world):
        await asyncio.sleep(0)
        world.clock.advance(1)
        await set_timer(world, "t", 1_000_001)
        for _ in range(5):
            await asyncio.sleep(0)
        assert world.home("k").end == 1


async def test_what_could_not_be_written_is_loaded_again_without_delay(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(led_shards, "RELOAD_MS_MIN", 0)
    world.load()
    await world.put("k", b"1")
    async with driven(world):
        await asyncio.sleep(0)  # it sleeps now, until the clock is to be looked at
        world.clock.advance(1)
        world.home("k").fails_with = DiskError("cannot write: No space left on device")
        with pytest.raises(ApiError):
            await world.put("k", b"2")
        world.home("k").fails_with = None
        for _ in range(5):
            await asyncio.sleep(0)
        assert await world.get("k") == b"1"


async def test_no_deadline_passes_because_the_clock_was_set(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.load()
    await set_timer(world, "t", 1_000_500)
    world.clock.wall += 3_600_000
    assert world.loop.step() == 500
    assert world.home("k").end == 0
    assert "the clock was set" in caplog.text


async def test_a_partition_that_cannot_be_loaded_is_tried_again_and_harms_no_other(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    def step() -> None:
        for _ in range(5):
            world.loop.step()

    foreign = world.logs[0]
    poison = build_batch(records_of_pairs([(b"poison", b"")], timestamp_ms=0))
    foreign.append(poison, now_ms=0)
    for log in world.logs:
        world.loop.lead(log)
    step()
    assert world.loop.progress == {0: False, 1: True, 2: True, 3: True}
    assert "coordinator partition failed" in caplog.text
    foreign.batches.clear()
    foreign.end = foreign.start
    world.clock.advance(60_000)
    step()
    assert world.loop.progress[0]


async def test_a_deadline_that_cannot_write_its_records_loads_the_shard_again(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.load()
    await set_timer(world, "t", 1_000_500)
    log = world.home("k")
    log.fails_with = DiskError("broken")
    world.clock.advance(500)
    world.loop.step()
    assert not world.loop.progress[log.of.partition]
    assert "broken" in caplog.text


@pytest.fixture
def patient() -> World:
    """Give a loop that lets commands wait for each other."""
    made = World(linger_ms=1)
    made.load()
    return made


async def test_commands_that_come_together_are_written_together(patient: World) -> None:
    async with asyncio.TaskGroup() as tasks:
        done = [tasks.create_task(patient.put(f"key {n}", b"v")) for n in range(20)]
        await asyncio.sleep(0)
        assert all(log.end == 0 for log in patient.logs)
    assert {task.result() for task in done} == {"put"}
    assert [len(log.batches) for log in patient.logs] == [1] * COUNT
    assert sum(log.end for log in patient.logs) == 20


async def test_each_of_them_has_its_own_reply_and_its_own_refusal(patient: World) -> None:
    async with asyncio.TaskGroup() as tasks:
        written = tasks.create_task(patient.put("k", b"v"))
        read = tasks.create_task(patient.get("k"))
        refused = asyncio.get_running_loop().create_task(
            patient.loop.run("k", lambda shard, _: shard.refuse(), timeout_s=60)
        )
    assert (written.result(), read.result()) == ("put", b"v")
    assert await code_of(refused) is ErrorCode.INVALID_REQUEST


async def test_a_reply_given_together_with_others_waits_for_the_commit_too(
    patient: World,
) -> None:
    log = patient.home("k")
    log.lags = True
    async with asyncio.TaskGroup() as tasks:
        waiting = [tasks.create_task(patient.put("k", b"v")), tasks.create_task(patient.get("k"))]
        async with asyncio.timeout(60):
            while not log.end:  # noqa: ASYNC110 - the log is no task of ours
                await asyncio.sleep(0)
        for _ in range(5):
            await asyncio.sleep(0)
        assert not any(task.done() for task in waiting)
        log.high_watermark = log.end
        patient.waiting.notify(log.of)


async def test_when_what_was_gathered_cannot_be_written_all_of_it_is_refused(
    patient: World,
) -> None:
    patient.home("k").fails_with = DiskError("broken")
    loop = asyncio.get_running_loop()
    both = [loop.create_task(patient.put("k", b"v")), loop.create_task(patient.get("k"))]
    for one in both:
        assert await code_of(one) is ErrorCode.NOT_COORDINATOR
    assert await refused(patient, "k") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


async def test_what_is_asked_everywhere_comes_after_all_that_was_gathered(patient: World) -> None:
    async with asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(patient.put("k", b"v"))
        await asyncio.sleep(0)
        found = await patient.loop.run_everywhere(lambda shard, _: shard.get(b"k"), timeout_s=60)
        assert b"v" in found
    assert writing.result() == "put"


async def test_who_gave_up_before_it_was_begun_has_changed_nothing(patient: World) -> None:
    giving_up = asyncio.get_running_loop().create_task(patient.put("k", b"v"))
    await asyncio.sleep(0)
    giving_up.cancel()
    assert await patient.get("k") is None
    assert patient.home("k").end == 0


async def test_what_was_gathered_is_sent_away_when_leadership_is_lost(patient: World) -> None:
    writing = asyncio.get_running_loop().create_task(patient.put("k", b"v"))
    await asyncio.sleep(0)
    patient.loop.resign(patient.home("k").of)
    assert await code_of(writing) is ErrorCode.NOT_COORDINATOR
    assert patient.home("k").end == 0


async def test_a_fault_that_nobody_foresaw_leaves_nobody_waiting(
    patient: World, caplog: pytest.LogCaptureFixture
) -> None:
    def stumble(shard: DictShard, now_ms: int) -> Outcome[None]:
        raise KeyError("unforeseen")

    loop = asyncio.get_running_loop()
    stumbling = loop.create_task(patient.loop.run("k", stumble, timeout_s=60))
    other = loop.create_task(patient.put("k", b"v"))
    assert await code_of(stumbling) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert await code_of(other) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert "unforeseen" in caplog.text
