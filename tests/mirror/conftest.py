"""A fresh twinlog broker for each test; the real Kafkas beside it come from support.kafka."""

import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from support.certificates import Certificates
from support.client_drivers import CLIENTS, Client
from support.kafka_cluster import KafkaCluster
from support.kafka_install import KAFKA_4, is_ci, require
from support.kafka_node import KafkaNode
from support.proxied_kafka import ProxiedKafka
from support.secured_kafka import NEEDED, PASSWORD, SecuredKafka
from support.tampering_proxy import behind_proxy
from support.twinlog_process import TwinlogProcess


@pytest.fixture
def twinlog(tmp_path: Path) -> Iterator[TwinlogProcess]:
    """Run a twinlog broker with an empty folder."""
    process = TwinlogProcess(tmp_path / "twinlog")
    try:
        process.start()
        yield process
    finally:
        process.stop()


@pytest.fixture
def watchful(tmp_path: Path) -> Iterator[TwinlogProcess]:
    """Run a twinlog broker that looks at its sources' topics all the time."""
    process = TwinlogProcess(
        tmp_path / "watchful", settings={"mirror.metadata.refresh.interval.ms": "300"}
    )
    try:
        process.start()
        yield process
    finally:
        process.stop()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwinlogProcess]:
    """Run a twinlog broker for those tests of a file that leave nothing behind."""
    process = TwinlogProcess(tmp_path_factory.mktemp("shared"))
    try:
        process.start()
        yield process
    finally:
        process.stop()


@pytest.fixture(scope="session")
def proxied_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxiedKafka]:
    """Run a Kafka 4 node that mirrors reach through a proxy only."""
    require(KAFKA_4)
    node = KafkaNode(tmp_path_factory.mktemp("kafka-proxied"), version=KAFKA_4)
    proxy = behind_proxy(node)
    try:
        node.start()
        proxy.start()
        yield ProxiedKafka(node, proxy)
    finally:
        proxy.stop()
        node.stop()


@pytest.fixture(scope="session")
def secured_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    """Run a Kafka 4 node that wants TLS or a login, and lets the mirror's user do what it needs."""
    require(KAFKA_4)
    folder = tmp_path_factory.mktemp("kafka-secured")
    node = SecuredKafka(folder, Certificates(folder / "certificates"))
    try:
        node.start()
        node.set_password(PASSWORD)
        node.allow(NEEDED)
        yield node
    finally:
        node.stop()


@pytest.fixture
def proxied(proxied_kafka: ProxiedKafka) -> Iterator[ProxiedKafka]:
    """Give the proxied Kafka, and undo what a test did to the proxy."""
    yield proxied_kafka
    proxied_kafka.proxy.spoil(b"")
    proxied_kafka.proxy.run_well()
    proxied_kafka.proxy.heal()


@pytest.fixture(scope="session")
def trio_for_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """Run three brokers of Kafka 4 with a controller beside them."""
    require(KAFKA_4)
    cluster = KafkaCluster(tmp_path_factory.mktemp("kafka-trio"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def trio(trio_for_all: KafkaCluster) -> Iterator[KafkaCluster]:
    """Give the three brokers, and bring back those that a test left dead or frozen."""
    yield trio_for_all
    trio_for_all.revive()


def _why_unusable(client: Client) -> str | None:
    if client.name == "kcat" and shutil.which("kcat") is None:
        return "kcat is not installed (Debian: apt-get install kcat)"
    return None


@pytest.fixture(scope="session")
def usable_clients() -> tuple[Client, ...]:
    """Give the clients that this machine has."""
    return tuple(client for client in CLIENTS if _why_unusable(client) is None)


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> Client:
    """Run the test with each of the five clients."""
    wanted: Client = request.param
    missing = _why_unusable(wanted)
    if missing:
        pytest.fail(missing) if is_ci() else pytest.skip(missing)
    return wanted


_numbers = count(1)


@pytest.fixture
def fresh() -> str:
    """Give a name for a topic or group that no other test uses."""
    return f"mirror-{next(_numbers)}"
