"""Readers of a mirrored partition are answered as at the source, wherever and whenever they ask."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import confluent_kafka
import pytest

from support.cluster_admin import Broker
from support.kafka import Source
from support.mirror import Mirror, Partition
from support.positions import visible_in_each
from support.twinlog_process import TwinlogProcess

pytestmark = [pytest.mark.kafka, pytest.mark.cluster, pytest.mark.slow]

_TIMEOUT_S: Final = 60.0
_PLACES: Final = 8


@dataclass(frozen=True, slots=True)
class Twins:
    """A source, and its twin."""

    source: Source
    twinlog: TwinlogProcess

    def places(self, seed: int) -> dict[Partition, list[int]]:
        """Some offsets of each partition at which, or behind which, there is a record."""
        chance = random.Random(seed)
        seen = visible_in_each(
            self.source.node, self.source.data.partitions, isolation="read_uncommitted"
        )
        return {
            of: [start, last, *(chance.randint(start, last) for _ in range(_PLACES - 2))]
            for of, records in seen.items()
            if records
            for start, last in [(records[0][0], records[-1][0])]
        }


@pytest.fixture(scope="module")
def twins(source: Source, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    """Mirror every kind of data, and start anew, so that indexes are read from their files."""
    twinlog = TwinlogProcess(tmp_path_factory.mktemp("twin"))
    try:
        twinlog.start()
        mirror = Mirror(twinlog, source.node, "twin")
        mirror.create()
        mirror.start(source.data.topics)
        mirror.await_caught_up(source.data.partitions)
        twinlog.stop()
        twinlog.start()
        yield Twins(source, twinlog)
    finally:
        twinlog.stop()


def _asking(broker: Broker, ask: Callable[[Any], Any]) -> Any:
    """Ask with a consumer that sees everything."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "twins",
            "enable.auto.commit": False,
            "isolation.level": "read_uncommitted",
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 10,
        }
    )
    try:
        # All topics at once; learnt one by one, each would cost the client a second.
        consumer.list_topics(timeout=_TIMEOUT_S)
        return ask(consumer)
    finally:
        consumer.close()


def test_a_search_by_time_finds_the_same_offset(twins: Twins) -> None:
    times_ms = {
        of: {
            1,
            4_000_000_000_000,
            *(_time_ms(record) + near for record in some for near in (-1, 0, 1)),
        }
        for of, some in _records_from(twins.source.node, twins.places(seed=1)).items()
    }

    def search(consumer: Any) -> dict[Partition, list[int]]:
        return {
            of: [_offset_at(consumer, of, time_ms) for time_ms in sorted(times)]
            for of, times in times_ms.items()
        }

    assert _asking(twins.twinlog, search) == _asking(twins.source.node, search)


def _time_ms(record: tuple[Any, ...]) -> int:
    return int(record[1][1])


def _offset_at(consumer: Any, of: Partition, time_ms: int) -> int:
    wanted = confluent_kafka.TopicPartition(*of, time_ms)
    (found,) = consumer.offsets_for_times([wanted], timeout=_TIMEOUT_S)
    assert not found.error, found.error
    return int(found.offset)


def test_a_reader_from_any_offset_gets_the_same_record(twins: Twins) -> None:
    places = twins.places(seed=2)
    theirs = _records_from(twins.source.node, places)
    assert len(theirs) > 15
    assert _records_from(twins.twinlog, places) == theirs


def test_a_reader_of_committed_records_sees_the_same_ones(twins: Twins) -> None:
    partitions = twins.source.data.partitions
    theirs = visible_in_each(twins.source.node, partitions)
    assert sum(map(len, theirs.values())) > 5_000
    assert visible_in_each(twins.twinlog, partitions) == theirs


def _records_from(
    broker: Broker, places: dict[Partition, list[int]]
) -> dict[Partition, list[tuple[Any, ...]]]:
    """Give the first record at or behind each offset: offset, kind and time, and the rest."""

    def read(consumer: Any) -> dict[Partition, list[tuple[Any, ...]]]:
        return {
            of: [_record_from(consumer, of, offset) for offset in offsets]
            for of, offsets in places.items()
        }

    answer: dict[Partition, list[tuple[Any, ...]]] = _asking(broker, read)
    return answer


def _record_from(consumer: Any, of: Partition, offset: int) -> tuple[Any, ...]:
    consumer.assign([confluent_kafka.TopicPartition(*of, offset)])
    found = consumer.poll(_TIMEOUT_S)
    assert found is not None, f"nothing at {of} from {offset}"
    assert not found.error(), found.error()
    assert found.offset() >= offset
    return (found.offset(), found.timestamp(), found.key(), found.value(), found.headers())
