"""Real clients of five makes produce, consume as groups, commit, and go on where they stood."""

import pytest

from support.client_drivers import CLIENTS, Client, Confluent
from support.cluster_admin import Broker, create_topic

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def test_a_group_goes_on_where_it_stood(broker: Broker, client: Client, fresh: str) -> None:
    create_topic(broker, fresh)
    values = [f"value {number}" for number in range(20)]
    client.produce(broker.bootstrap, fresh, values)
    assert client.consume(broker.bootstrap, fresh, f"{fresh}-group", 8) == values[:8]
    assert client.consume(broker.bootstrap, fresh, f"{fresh}-group", 12) == values[8:]


def test_a_group_goes_on_with_another_client(broker: Broker, client: Client, fresh: str) -> None:
    create_topic(broker, fresh)
    values = [f"value {number}" for number in range(10)]
    client.produce(broker.bootstrap, fresh, values)
    assert Confluent().consume(broker.bootstrap, fresh, f"{fresh}-group", 4) == values[:4]
    assert client.consume(broker.bootstrap, fresh, f"{fresh}-group", 3) == values[4:7]
    assert Confluent().consume(broker.bootstrap, fresh, f"{fresh}-group", 3) == values[7:]


def test_every_client_reads_what_every_client_wrote(
    broker: Broker, client: Client, fresh: str
) -> None:
    create_topic(broker, fresh, partitions=4)
    values = {writer.name: [f"{writer.name} {n}" for n in range(12)] for writer in CLIENTS}
    for writer in CLIENTS:
        writer.produce(broker.bootstrap, fresh, values[writer.name])
    expected = sorted(value for written in values.values() for value in written)
    read = client.consume(broker.bootstrap, fresh, f"{fresh}-{client.name}", len(expected))
    assert sorted(read) == expected


def test_a_topic_makes_itself_when_a_client_writes_to_it(
    broker: Broker, client: Client, fresh: str
) -> None:
    client.produce(broker.bootstrap, fresh, ["first"])
    assert client.consume(broker.bootstrap, fresh, f"{fresh}-group", 1) == ["first"]
