"""A group that consumed on Kafka goes on at twinlog after the stop, at the very next record."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pytest

from support.client_drivers import Client
from support.kafka_node import KafkaNode
from support.mirror import Mirror
from support.positions import committed_offset
from support.source_data import flush, producer_of
from support.twinlog_process import TwinlogProcess
from support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.cluster, pytest.mark.slow]

READ_AT_SOURCE: Final = 23
PRODUCED: Final = 60


@dataclass(frozen=True, slots=True)
class MovedGroups:
    """Two brokers, and for each client a topic and a group that went from the one to the other."""

    source: KafkaNode
    destination: TwinlogProcess

    def topic_of(self, client: Client) -> str:
        """The topic that this client reads."""
        return f"moved-{client.name}"

    def group_of(self, client: Client) -> str:
        """The group in which it reads."""
        return f"movers-{client.name}"


def _value(number: int) -> str:
    return f"record {number}"


@pytest.fixture(scope="module")
def moved(
    any_kafka: KafkaNode,
    tmp_path_factory: pytest.TempPathFactory,
    usable_clients: tuple[Client, ...],
) -> Iterator[MovedGroups]:
    """Consume a part at Kafka with each client, mirror it all, and stop."""
    twinlog = TwinlogProcess(tmp_path_factory.mktemp("moved"))
    groups = MovedGroups(any_kafka, twinlog)
    try:
        twinlog.start()
        _consume_at_source(groups, usable_clients)
        _move(groups, usable_clients)
        yield groups
    finally:
        twinlog.stop()


def _consume_at_source(groups: MovedGroups, clients: tuple[Client, ...]) -> None:
    producer = producer_of(groups.source, compression_type="lz4")
    for client in clients:
        topic, group = groups.topic_of(client), groups.group_of(client)
        groups.source.create_topic(topic)
        for number in range(PRODUCED):
            producer.produce(topic, _value(number).encode(), partition=0)
            # Several batches, and the groups stand inside one.
            if number % 20 == 19:
                flush(producer)
        read = client.consume(groups.source.bootstrap, topic, group, READ_AT_SOURCE)
        assert read == [_value(number) for number in range(READ_AT_SOURCE)]
        assert committed_offset(groups.source, group, topic) == READ_AT_SOURCE


def _move(groups: MovedGroups, clients: tuple[Client, ...]) -> None:
    mirror = Mirror(groups.destination, groups.source, "mover")
    mirror.create(groups_sync_interval_ms="300")
    topics = [groups.topic_of(client) for client in clients]
    partitions = [(topic, 0) for topic in topics]
    mirror.start(topics)
    mirror.await_caught_up(partitions)

    def missing() -> list[str]:
        return [
            client.name
            for client in clients
            if committed_offset(
                groups.destination, groups.group_of(client), groups.topic_of(client)
            )
            != READ_AT_SOURCE
        ]

    wait_until(lambda: not missing(), lambda: f"offsets are here of {missing()}")
    mirror.stop(topics)
    mirror.await_states(partitions, "STOPPED")


def test_a_group_goes_on_at_the_record_where_it_stood(moved: MovedGroups, client: Client) -> None:
    topic, group, bootstrap = (
        moved.topic_of(client),
        moved.group_of(client),
        moved.destination.bootstrap,
    )
    # All the rest at once: where a control record lies behind what it was given, kcat commits too
    # far when it stops early, at Kafka as well.
    read = client.consume(bootstrap, topic, group, PRODUCED - READ_AT_SOURCE)
    assert read == [_value(number) for number in range(READ_AT_SOURCE, PRODUCED)]
    client.produce(bootstrap, topic, ["written here 1", "written here 2"])
    read = client.consume(bootstrap, topic, group, 2)
    assert read == ["written here 1", "written here 2"]
    end = committed_offset(moved.destination, group, topic)
    # Behind the mirrored records stands the producer reset, which no client sees.
    assert end == PRODUCED + 1 + 2
