"""A -> B -> C: the chain holds over a failover in its middle, and over B's way back to A."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.cluster_admin import create_topic, offsets_of
from support.log_bytes import batches_of
from support.mirror import Partition
from support.positions import visible_records
from support.producer_ids import next_of
from support.record_ledger import records_in, tails_in
from support.source_data import flush, producer_of
from support.stopped_logs import Marker, markers_behind, producer_id_of
from support.topology import (
    ULE_SETTING,
    allow_unclean,
    level,
    losses_of,
    mirror_started,
    stop_all,
    twinlogs,
    write,
)
from support.twinlog_process import TwinlogProcess

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

TOPIC = "orders"
OF = (TOPIC, 0)


class Chain:
    """C mirrors B, which mirrors A."""

    def __init__(self, a: Any, b: TwinlogProcess, c: TwinlogProcess, topic: str) -> None:
        self.a, self.b, self.c = a, b, c
        self.of: Partition = (topic, 0)
        create_topic(a, topic)
        write(a, self.of, "first")
        self.to_b = mirror_started(b, a, "a-to-b", [topic])
        level(self.to_b, [self.of])
        self.to_c = mirror_started(c, b, "b-to-c", [topic])
        level(self.to_c, [self.of])

    @property
    def end_of_b(self) -> int:
        """Where B's log ends."""
        return offsets_of(self.b, *self.of)[1]

    def ids_at(self, broker: Any) -> set[int]:
        """Give the ids of the producers in a broker's log."""
        batches = batches_of(broker.partition_folder(*self.of))
        return {producer_id_of(batch) for batch in batches} - {-1}


@pytest.fixture(params=["twinlog", "kafka"])
def chain(request: pytest.FixtureRequest, tmp_path: Path, fresh: str) -> Iterator[Chain]:
    """Run a chain that begins at a twinlog, then one that begins at a Kafka."""
    is_ours = request.param == "twinlog"
    with twinlogs(tmp_path, 3 if is_ours else 2) as brokers:
        a = brokers.pop(0) if is_ours else request.getfixturevalue("kafka_4")
        b, c = brokers
        yield Chain(a, b, c, fresh)


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[Chain]:
    """Run a chain of twinlogs."""
    with twinlogs(tmp_path, 3) as brokers:
        a, b, c = brokers
        yield Chain(a, b, c, TOPIC)


def _open_transaction(broker: Any, of: Partition) -> Any:
    """Begin a transaction and leave it open; keep what is given until the test is over."""
    producer = producer_of(broker, transactional_id=f"open at {of[0]}")
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(of[0], b"undecided", partition=of[1])
    flush(producer)
    return producer


def _write_with_a_mirrored_id(broker: TwinlogProcess, of: Partition, ids: set[int]) -> set[int]:
    """Write with an idempotent producer whose id is in the log already; give its ids."""
    asyncio.run(next_of(broker, ids))
    start = offsets_of(broker, *of)[1]
    sent = write(broker, of, f"written at {broker.node_id}", 5)
    found = {
        producer_id_of(batch) for batch in batches_of(broker.partition_folder(*of), start=start)
    }
    assert found & ids, f"{found} is none of {ids}"
    assert [value for _, value in visible_records(broker, of[0])][-len(sent) :] == sent
    return found


@pytest.mark.kafka
def test_a_failover_in_the_middle_goes_on_to_the_end(chain: Chain, request: Any) -> None:
    of = chain.of
    is_kafka = "kafka" in request.node.name
    opened = _open_transaction(chain.a, of) if is_kafka else None
    level(chain.to_b, [of])
    level(chain.to_c, [of])
    ids = chain.ids_at(chain.a)
    assert ids == chain.ids_at(chain.b) == chain.ids_at(chain.c)
    assert ids
    end = chain.end_of_b
    stop_all(chain.to_b, [of])
    level(chain.to_c, [of])
    aborts = [Marker.ABORT] if is_kafka else []
    assert markers_behind(chain.c.partition_folder(*of), end) == [*aborts, Marker.PID_RESET]
    # The ids of B's producers are those of A's, here and at C.
    ids |= _write_with_a_mirrored_id(chain.b, of, ids)
    level(chain.to_c, [of])
    values = [value for _, value in visible_records(chain.c, of[0])]
    assert values == [value for _, value in visible_records(chain.b, of[0])]
    assert b"undecided" not in values
    stop_all(chain.to_c, [of])
    _write_with_a_mirrored_id(chain.c, of, ids)
    del opened


def test_the_first_comes_back_behind_the_second_while_the_third_goes_on(ours: Chain) -> None:
    stop_all(ours.to_b, [OF])
    end = offsets_of(ours.a, *OF)[1]
    lost = write(ours.a, OF, "only at A")
    write(ours.b, OF, "after the failover")
    back = mirror_started(ours.a, ours.b, "b-to-a", [TOPIC])
    level(back, [OF])
    level(ours.to_c, [OF])
    (tail,) = tails_in(ours.a.log_folder)
    assert [value.encode() for value in tail.records.values()] == lost
    assert losses_of(back, OF) == [("truncation", end, end + len(lost))]
    assert not losses_of(ours.to_c, OF)
    write(ours.b, OF, "for both")
    level(back, [OF])
    level(ours.to_c, [OF])
    # C stays at B when A takes over again; then B follows A, and C all of it.
    stop_all(back, [OF])
    ours.to_b.start([TOPIC])
    level(ours.to_b, [OF])
    write(ours.a, OF, "at A again")
    level(ours.to_b, [OF])
    level(ours.to_c, [OF])
    assert not losses_of(ours.to_b, OF)
    assert not tails_in(ours.b.log_folder)


def test_a_mirror_that_is_stopped_and_started_again_loses_what_was_written_between_only(
    ours: Chain,
) -> None:
    """Its source remembers an older agreement, of when it followed this side."""
    stop_all(ours.to_b, [OF])
    write(ours.b, OF, "at B")
    back = mirror_started(ours.a, ours.b, "b-to-a", [TOPIC])
    level(back, [OF])
    write(ours.b, OF, "followed by A", 9)
    level(back, [OF])
    end = offsets_of(ours.a, *OF)[1]
    stop_all(back, [OF])
    lost = write(ours.a, OF, "a drill at A")
    back.start([TOPIC])
    level(back, [OF])
    # The reset of producers, then the drill's records.
    assert losses_of(back, OF)[-1] == ("truncation", end, end + 1 + len(lost))
    tail = tails_in(ours.a.log_folder)[-1]
    assert [value.encode() for value in tail.records.values()] == lost


def _fail_over_and_cut_b(chain: Chain) -> tuple[int, int]:
    """Let B write for itself, with C behind it, and go back to A; give what it cut."""
    first = chain.end_of_b
    stop_all(chain.to_b, [OF])
    write(chain.b, OF, "only at B and C", 4)
    level(chain.to_c, [OF])
    end = chain.end_of_b
    chain.to_b.start([TOPIC])
    chain.to_b.await_states([OF], "MIRRORING")
    return first, end


def test_what_the_second_drops_the_third_drops_where_that_is_allowed(ours: Chain) -> None:
    allow_unclean(ours.c, TOPIC)
    first, end = _fail_over_and_cut_b(ours)
    write(ours.a, OF, "at A all the time", 2)
    level(ours.to_b, [OF])
    level(ours.to_c, [OF])
    assert losses_of(ours.to_b, OF) == losses_of(ours.to_c, OF) == [("truncation", first, end)]
    (at_b,), (at_c,) = tails_in(ours.b.log_folder), tails_in(ours.c.log_folder)
    assert at_b.path.read_bytes() == at_c.path.read_bytes()
    _assert_in_step(ours)


@pytest.mark.parametrize("written", [0, 2, 9], ids=["shorter", "short", "longer"])
def test_where_it_is_not_allowed_the_third_fails_with_all_it_had(ours: Chain, written: int) -> None:
    first, end = _fail_over_and_cut_b(ours)
    write(ours.a, OF, "at A all the time", written)
    level(ours.to_b, [OF])
    before = records_in(ours.c.partition_folder(*OF))
    write(ours.a, OF, "after that", 1)
    words = (ULE_SETTING, f"our records below {first}", "nothing was cut", "--recover")
    ours.to_c.await_row(OF, "FAILED", *words)
    assert records_in(ours.c.partition_folder(*OF)) == before
    allow_unclean(ours.c, TOPIC)
    ours.to_c.run("--recover", "--mirror", ours.to_c.name, "--topics", TOPIC)
    level(ours.to_b, [OF])
    level(ours.to_c, [OF])
    assert losses_of(ours.to_c, OF) == [("truncation", first, end)]
    _assert_in_step(ours)


def test_what_the_third_missed_of_it_is_never_taken_for_what_it_has(ours: Chain) -> None:
    """B is cut and stopped again while C is away: other records stand where C's last ones do."""
    allow_unclean(ours.c, TOPIC)
    first = ours.end_of_b
    stop_all(ours.to_b, [OF])
    write(ours.b, OF, "only at B and C", 2)
    level(ours.to_c, [OF])
    end = ours.end_of_b
    ours.c.kill()
    ours.to_b.start([TOPIC])
    ours.to_b.await_states([OF], "MIRRORING")
    ours.to_b.await_caught_up([OF])
    stop_all(ours.to_b, [OF])
    write(ours.b, OF, "at B for the second time", 9)
    assert ours.end_of_b > end
    ours.c.start()
    level(ours.to_c, [OF])
    assert losses_of(ours.to_c, OF) == [("truncation", first, end)]


def _assert_in_step(chain: Chain) -> None:
    """See that what is written at the head arrives at the end."""
    sent = write(chain.a, OF, "to the end")
    level(chain.to_b, [OF])
    level(chain.to_c, [OF])
    for broker in (chain.b, chain.c):
        assert [value for _, value in visible_records(broker, TOPIC)][-len(sent) :] == sent
