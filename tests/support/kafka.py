"""Gives tests real Kafka brokers, empty or filled, each started once a session (pytest plug-in)."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from support.kafka_install import KAFKA_2_1, KAFKA_4, require

if TYPE_CHECKING:
    from support.kafka_node import KafkaNode
    from support.source_data import SourceData


@dataclass(frozen=True, slots=True)
class Source:
    """A real Kafka, and what it was filled with."""

    node: "KafkaNode"
    data: "SourceData"


@pytest.fixture(scope="session")
def kafka_4(tmp_path_factory: pytest.TempPathFactory) -> Iterator["KafkaNode"]:
    """Run a Kafka 4 node, KRaft, plaintext; tests make topics of their own in it."""
    yield from _running(KAFKA_4, tmp_path_factory)


@pytest.fixture(scope="session")
def kafka_2_1(tmp_path_factory: pytest.TempPathFactory) -> Iterator["KafkaNode"]:
    """Run a Kafka 2.1 broker with its ZooKeeper, the oldest that twinlog mirrors from."""
    yield from _running(KAFKA_2_1, tmp_path_factory)


@pytest.fixture(scope="session", params=["kafka_4", "kafka_2_1"])
def any_kafka(request: pytest.FixtureRequest) -> "KafkaNode":
    """Run the test against Kafka 4, then against Kafka 2.1."""
    node: KafkaNode = request.getfixturevalue(request.param)
    return node


@pytest.fixture(scope="session")
def source_4(kafka_4: "KafkaNode") -> Source:
    """Fill Kafka 4 with every kind of data."""
    return _filled(kafka_4)


@pytest.fixture(scope="session")
def source_2_1(kafka_2_1: "KafkaNode") -> Source:
    """Fill Kafka 2.1 with every kind of data."""
    return _filled(kafka_2_1)


@pytest.fixture(scope="session", params=["source_4", "source_2_1"])
def source(request: pytest.FixtureRequest) -> Source:
    """Run the test against a filled Kafka 4, then against a filled Kafka 2.1."""
    filled: Source = request.getfixturevalue(request.param)
    return filled


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show with a failed test the last lines of every server that it used."""
    report = yield
    if report.failed:
        for server in servers_among(getattr(item, "funcargs", {})):
            report.sections.append((f"end of {server[0]}'s log", server[1]))
    return report


def servers_among(arguments: dict[str, object]) -> list[tuple[str, str]]:
    """Name the server processes among a test's fixtures, with the end of what each printed."""
    found: dict[str, str] = {}
    for value in arguments.values():
        owner = value.node if isinstance(value, Source) else value
        server = getattr(owner, "server", None)
        if server is not None and hasattr(server, "log_tail"):
            found[server.name] = server.log_tail()
    return list(found.items())


def _running(version: str, folders: pytest.TempPathFactory) -> Iterator["KafkaNode"]:
    require(version)
    from support.kafka_node import KafkaNode

    node = KafkaNode(folders.mktemp(f"kafka-{version}"), version=version)
    try:
        node.start()
        yield node
    finally:
        node.stop()


def _filled(node: "KafkaNode") -> Source:
    from support.source_data import fill

    return Source(node, fill(node))
