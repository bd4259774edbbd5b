import pytest

from support.memory_state import DictShard, ManualClock, MemoryStateLog
from twinlog.coordination.outcome import Parked
from twinlog.model.errors import ApiError, DiskError
from twinlog.model.ids import Offset
from twinlog.wire.records.batch import iter_headers
from twinlog.wire.records.build import build_batch, records_of_pairs


def batch(*keys: bytes) -> bytes:
    return build_batch(records_of_pairs([(key, b"v") for key in keys], timestamp_ms=1))


def test_batches_are_read_from_the_one_that_holds_the_offset() -> None:
    log = MemoryStateLog()
    log.append(batch(b"a", b"b") + batch(b"c"), now_ms=0)
    assert (log.end, log.high_watermark) == (3, 3)
    offsets = [h.base_offset for _, h in iter_headers(log.read(Offset(1), max_bytes=1 << 20))]
    assert offsets == [0, 2]
    assert len(list(iter_headers(log.read(Offset(0), max_bytes=1)))) == 1


def test_what_lags_is_not_committed_and_what_fails_is_not_written() -> None:
    log = MemoryStateLog()
    log.lags = True
    log.append(batch(b"a"), now_ms=0)
    assert (log.end, log.high_watermark) == (1, 0)
    log.fails_with = DiskError("broken")
    with pytest.raises(DiskError):
        log.append(batch(b"b"), now_ms=0)
    assert log.end == 1


def test_a_put_answers_who_waits_and_changes_nothing_before_its_replay() -> None:
    shard = DictShard()
    parked = shard.wait().reply
    assert isinstance(parked, Parked)
    outcome = shard.put(b"k", b"v")
    assert [answer.ticket for answer in outcome.answers] == [parked.ticket]
    assert shard.get(b"k").reply is None
    shard.replay(b"k", b"v")
    assert shard.get(b"k").reply == b"v"
    shard.replay(b"k", None)
    assert shard.get(b"k").reply is None
    with pytest.raises(ApiError):
        shard.refuse()


def test_a_clock_moves_as_it_is_told() -> None:
    clock = ManualClock()
    clock.advance(5)
    assert (clock.wall_ms(), clock.now_ms()) == (1_000_005, 5)
