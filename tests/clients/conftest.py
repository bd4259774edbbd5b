"""The one broker that the client tests talk to: twinlog, or a real Kafka to prove the tests."""

import os
import shutil
from collections.abc import Iterator
from itertools import count

import pytest

from support.client_drivers import CLIENTS, Client
from support.kafka_install import KAFKA_4, is_ci, require
from support.kafka_node import KafkaNode
from support.twinlog_process import TwinlogProcess

# "twinlog" or "kafka_4": a test that fails against Kafka itself is wrong.
AGAINST = os.environ.get("CLIENTS_AGAINST", "twinlog")


@pytest.fixture(scope="session")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TwinlogProcess | KafkaNode]:
    """Run the broker under test."""
    if AGAINST != "twinlog":
        yield request.getfixturevalue(AGAINST)
        return
    twinlog = TwinlogProcess(tmp_path_factory.mktemp("twinlog"))
    try:
        twinlog.start()
        yield twinlog
    finally:
        twinlog.stop()


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> Client:
    """Run the test with each of the five clients."""
    needed: Client = request.param
    if needed.name == "kcat" and shutil.which("kcat") is None:
        missing = "kcat is not installed (Debian: apt-get install kcat)"
        pytest.fail(missing) if is_ci() else pytest.skip(missing)
    if needed.name == "java":
        require(KAFKA_4)
    return needed


_numbers = count(1)


@pytest.fixture
def fresh() -> str:
    """Give a name for a topic or group that no other test uses."""
    return f"clients-{next(_numbers)}"
