import asyncio
from collections.abc import Callable

import pytest

from support.memory_state import DictShard, MemoryStateLog
from twinlog.broker.led_shards import BATCH_BYTES_TARGET, LOAD_CHUNK_BYTES, Given, LedShard
from twinlog.coordination.outcome import Outcome, StateRecord
from twinlog.model.errors import ApiError, CorruptBatchError, DiskError, ErrorCode
from twinlog.model.ids import Offset
from twinlog.wire.records.build import build_batch, records_of_pairs
from twinlog.wire.records.control import ControlType, end_marker


def led_on(log: MemoryStateLog) -> LedShard[DictShard]:
    led = LedShard(log, DictShard)
    while not led.load_some(0):
        pass
    return led


def reply_of(given: object) -> object:
    assert isinstance(given, Given)
    return given.reply


def writing(
    records: tuple[StateRecord, ...],
) -> Callable[[DictShard, int], Outcome[None]]:
    return lambda shard, now_ms: Outcome(None, records)


def put(log: MemoryStateLog, key: bytes, value: bytes = b"v") -> None:
    log.append(build_batch(records_of_pairs([(key, value)], timestamp_ms=1)), now_ms=0)


def test_a_command_before_the_load_is_told_to_wait() -> None:
    led = LedShard(MemoryStateLog(), DictShard)
    with pytest.raises(ApiError) as caught:
        led.begin(lambda shard, _: shard.get(b"k"), 0)
    assert caught.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_a_big_log_is_loaded_in_chunks() -> None:
    log = MemoryStateLog()
    for n in range(5):
        put(log, b"%d" % n, bytes(LOAD_CHUNK_BYTES // 2))
    led = LedShard(log, DictShard)
    assert [led.load_some(7) for _ in range(5)] == [False, False, False, False, True]
    assert len(led._shard.values) == 5
    assert led._shard.loaded_at_ms == 7


def test_markers_and_open_transactions_are_no_state() -> None:
    log = MemoryStateLog()
    pairs = records_of_pairs([(b"open", b"v")], timestamp_ms=1)
    log.append(
        build_batch(pairs, producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True),  # type: ignore[arg-type]
        now_ms=0,
    )
    log.append(
        end_marker(
            ControlType.COMMIT,
            producer_id=1,  # type: ignore[arg-type]
            producer_epoch=0,
            coordinator_epoch=0,
            timestamp_ms=1,
        ),
        now_ms=0,
    )
    put(log, b"k")
    assert led_on(log)._shard.values == {b"k": b"v"}


def test_a_written_command_is_seen_by_the_next_one_and_after_a_load() -> None:
    log = MemoryStateLog()
    led = led_on(log)
    given = led.begin(lambda shard, _: shard.put(b"k", b"v"), 5)
    assert given == Given("put", 1)  # type: ignore[arg-type]
    assert reply_of(led.begin(lambda shard, _: shard.get(b"k"), 5)) == b"v"
    assert led_on(log)._shard.values == {b"k": b"v"}


def test_many_records_are_written_as_several_batches_in_one_append() -> None:
    log = MemoryStateLog()
    led = led_on(log)
    value = bytes(BATCH_BYTES_TARGET // 2)
    records = tuple(StateRecord(b"%d" % n, value) for n in range(5))
    led.begin(lambda shard, _: Outcome("many", records), 0)
    assert len(log.batches) == 3
    assert led_on(log)._shard.values == {b"%d" % n: value for n in range(5)}


def test_commands_run_together_see_each_other_and_are_written_in_one_append() -> None:
    log = MemoryStateLog()
    led = led_on(log)
    begun = led.begin_all(
        [
            lambda shard, _: shard.put(b"a", b"1"),
            lambda shard, _: shard.get(b"a"),
            lambda shard, _: shard.refuse(),
            lambda shard, _: shard.put(b"b", b"2"),
        ],
        0,
    )
    assert len(log.batches) == 1
    assert led_on(log)._shard.values == {b"a": b"1", b"b": b"2"}
    assert [begun[0], begun[1], begun[3]] == [
        Given("put", Offset(2)),
        Given(b"1", Offset(2)),
        Given("put", Offset(2)),
    ]
    assert isinstance(begun[2], ApiError)
    assert begun[2].code is ErrorCode.INVALID_REQUEST


def test_what_one_command_wrote_is_in_one_batch_whatever_came_before_it() -> None:
    log = MemoryStateLog()
    led = led_on(log)
    value = bytes(BATCH_BYTES_TARGET // 3)
    pairs = [(StateRecord(b"%d" % n, value), StateRecord(b"+%d" % n, value)) for n in range(3)]
    led.begin_all([writing(pair) for pair in pairs], 0)
    assert [end - base for base, end, _ in log.batches] == [2, 2, 2]


def test_when_an_append_fails_everything_that_was_run_together_is_refused() -> None:
    log = MemoryStateLog()
    led = led_on(log)
    log.fails_with = DiskError("broken")
    begun = led.begin_all(
        [
            lambda shard, _: shard.put(b"a", b"1"),
            lambda shard, _: shard.refuse(),
            lambda shard, _: shard.get(b"a"),
        ],
        0,
    )
    codes = [one.code for one in begun if isinstance(one, ApiError)]
    refused = ErrorCode.NOT_COORDINATOR
    assert codes == [refused, ErrorCode.INVALID_REQUEST, refused]
    assert led.is_loading
    log.fails_with = None
    assert led.load_some(1_000)
    assert led._shard.values == {}


def test_a_bug_harms_what_is_run_after_it_only() -> None:
    log = MemoryStateLog()
    led = led_on(log)
    begun = led.begin_all(
        [
            lambda shard, _: shard.put(b"a", b"1"),
            lambda shard, _: shard.put(b"poison", b""),
            lambda shard, _: shard.put(b"b", b"2"),
        ],
        0,
    )
    assert begun[0] == Given("put", Offset(1))
    assert isinstance(begun[1], AssertionError)
    assert isinstance(begun[2], ApiError)
    assert begun[2].code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert led.is_loading
    assert led_on(log)._shard.values == {b"a": b"1"}, "and what cannot be replayed was not written"


async def test_a_parked_command_is_answered_by_a_later_one() -> None:
    led = led_on(MemoryStateLog())
    waiter = led.begin(lambda shard, _: shard.wait(), 0)
    assert isinstance(waiter, asyncio.Future)
    led.begin(lambda shard, _: shard.put(b"k", b"v"), 0)
    assert (await waiter).reply == b"v"
    assert led._parked == {}


async def test_who_no_longer_waits_is_forgotten() -> None:
    led = led_on(MemoryStateLog())
    waiter = led.begin(lambda shard, _: shard.wait(), 0)
    assert isinstance(waiter, asyncio.Future)
    waiter.cancel()
    await asyncio.sleep(0)
    assert led._parked == {}
    led.begin(lambda shard, _: shard.put(b"k", b"v"), 0)


async def test_closing_sends_away_who_waits() -> None:
    led = led_on(MemoryStateLog())
    waiter = led.begin(lambda shard, _: shard.wait(), 0)
    led.close()
    assert isinstance(waiter, asyncio.Future)
    with pytest.raises(ApiError) as caught:
        await waiter
    assert caught.value.code is ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (DiskError("broken"), ErrorCode.NOT_COORDINATOR),
        (ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, ""), ErrorCode.NOT_COORDINATOR),
        (ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, ""), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ApiError(ErrorCode.MESSAGE_TOO_LARGE, ""), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_when_records_cannot_be_written_the_shard_is_loaded_again(
    error: ApiError | DiskError, told: ErrorCode
) -> None:
    log = MemoryStateLog()
    led = led_on(log)
    led.begin(lambda shard, _: shard.put(b"k", b"v"), 0)
    log.fails_with = error
    with pytest.raises(ApiError) as caught:
        led.begin(lambda shard, _: shard.put(b"k", b"lost"), 10)
    assert caught.value.code is told
    assert led.is_loading
    assert led.next_ms == 1_010
    assert led.load_some(1_010)
    assert reply_of(led.begin(lambda shard, _: shard.get(b"k"), 1_010)) == b"v"


def test_a_command_that_is_refused_changes_nothing() -> None:
    led = led_on(MemoryStateLog())
    with pytest.raises(ApiError):
        led.begin(lambda shard, _: shard.refuse(), 0)
    assert not led.is_loading


def test_a_bug_in_a_command_drops_the_shard() -> None:
    def stumble(shard: DictShard, now_ms: int) -> Outcome[None]:
        raise AssertionError("a bug")

    led = led_on(MemoryStateLog())
    with pytest.raises(AssertionError):
        led.begin(stumble, 0)
    assert led.is_loading


def test_each_load_that_fails_makes_the_next_wait_longer() -> None:
    led = LedShard(MemoryStateLog(), DictShard)
    waits = []
    for _ in range(8):
        led.start_over(0)
        waits.append(led.next_ms)
    assert waits == [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]


def test_a_batch_that_is_corrupt_is_not_replayed() -> None:
    log = MemoryStateLog()
    put(log, b"k")
    base, end, batch = log.batches[0]
    log.batches[0] = (base, end, batch[:-1] + b"?")
    with pytest.raises(CorruptBatchError):
        LedShard(log, DictShard).load_some(0)


def test_deadlines_write_records_and_move_when_the_clock_is_set() -> None:
    log = MemoryStateLog()
    led = led_on(log)
    led._shard.timers.set("t", 100)
    assert led.next_ms == 100
    led.shift_timers(1_000)
    led.fire_due(1_099)
    assert led._shard.fired == []
    led.fire_due(1_100)
    assert led._shard.fired == ["t"]
    assert led_on(log)._shard.values == {b"fired t": b"1100"}
