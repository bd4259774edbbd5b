"""Runs real Apache Kafka: a KRaft node, more brokers beside it, or Kafka 2.1 as it was."""

import base64
import uuid
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from support.cluster_admin import admin_of, create_topic, offsets_of
from support.jvm import java_server, run_tool
from support.kafka_install import KAFKA_4, RELEASES, Release
from support.server_process import ServerProcess, free_port
from support.waiting import wait_until
from support.zookeeper import ZooKeeper

# One node is a cluster here, and what a cluster does in minutes the tests await in seconds.
_COMMON = {
    "num.partitions": "1",
    "auto.create.topics.enable": "true",
    "offsets.topic.num.partitions": "10",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "5",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "transaction.max.timeout.ms": "7200000",
    "log.cleaner.backoff.ms": "300",
    "log.cleaner.dedupe.buffer.size": "16777216",
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "500",
}


class KafkaNode:
    """One broker of Apache Kafka, with its data in a folder and its port kept over restarts."""

    def __init__(
        self,
        folder: Path,
        *,
        version: str = KAFKA_4,
        node_id: int = 1,
        joins: "KafkaNode | None" = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.version = version
        self.node_id = node_id
        self.folder = folder
        self.port = free_port()
        self.log_folder = folder / "data"
        self._release: Release = RELEASES[version]
        self._joins = joins
        self._controller_port: int = joins._controller_port if joins else free_port()
        self._zookeeper = ZooKeeper(folder / "zk") if self._release.needs_zookeeper else None
        folder.mkdir(parents=True, exist_ok=True)
        self._properties = folder / "server.properties"
        own = self._zookeeper_settings() if self._zookeeper else self._kraft_settings()
        every = {**_COMMON, "log.dirs": str(self.log_folder), **own, **(settings or {})}
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in every.items()))
        self.server: ServerProcess = java_server(
            f"kafka-{version}-{node_id}", version, "kafka.Kafka", self._properties
        )

    @property
    def bootstrap(self) -> str:
        """Where clients find it."""
        return f"127.0.0.1:{self.port}"

    @property
    def cluster_id(self) -> str:
        """The id of its cluster; ask while it runs."""
        return str(self.admin().list_topics(timeout=60).cluster_id)

    def start(self) -> None:
        """Start it, for the first time or again, and return when it is ready."""
        if self._zookeeper:
            self._zookeeper.start()
            self._zookeeper.await_no_owner_of(f"/brokers/ids/{self.node_id}")
        if not self._zookeeper and not (self.log_folder / "meta.properties").exists():
            self._format()
        self.server.start(lambda: self.server.has_said(self._release.ready_line))
        # It says that it has started before clients can find it and its controller.
        admin = self.admin()
        wait_until(
            lambda: self.is_found_by(admin), lambda: f"clients find it\n{self.server.log_tail()}"
        )

    def stop(self) -> None:
        """Shut it down in an orderly way, and its ZooKeeper with it."""
        self.server.stop()
        if self._zookeeper:
            self._zookeeper.stop()

    def kill(self) -> None:
        """End the broker at once; its data, and its ZooKeeper, stay."""
        self.server.kill()

    def admin(self) -> AdminClient:
        """Give an admin client of it."""
        return admin_of(self)

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replicas: int = 1,
        config: dict[str, str] | None = None,
    ) -> None:
        """Create a topic and return when the broker leads all of it."""
        create_topic(self, name, partitions=partitions, replicas=replicas, config=config)

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        """Give a partition's log start and high watermark."""
        return offsets_of(self, topic, partition)

    def partition_folder(self, topic: str, partition: int) -> Path:
        """The folder in which it keeps that partition's segments."""
        return self.log_folder / f"{topic}-{partition}"

    def is_found_by(self, admin: AdminClient) -> bool:
        """Whether metadata names it, and a controller."""
        try:
            metadata = admin.list_topics(timeout=20)
        except KafkaException:
            return False
        return self.node_id in metadata.brokers and metadata.controller_id >= 0

    def _format(self) -> None:
        joining = self._joins is not None
        cluster_id = self._joins.cluster_id if self._joins else random_uuid()
        how = "--no-initial-controllers" if joining else "--standalone"
        arguments = ("format", "-t", cluster_id, "-c", str(self._properties), how)
        run_tool(self.version, "kafka.tools.StorageTool", *arguments)

    def _zookeeper_settings(self) -> dict[str, str]:
        assert self._zookeeper is not None
        return {
            "broker.id": str(self.node_id),
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "zookeeper.connect": self._zookeeper.address,
            "zookeeper.connection.timeout.ms": "120000",
            "zookeeper.session.timeout.ms": "8000",
        }

    def _kraft_settings(self) -> dict[str, str]:
        listener = f"PLAINTEXT://127.0.0.1:{self.port}"
        controller = f"CONTROLLER://127.0.0.1:{self._controller_port}"
        listeners = listener if self._joins else f"{listener},{controller}"
        return {
            "process.roles": "broker" if self._joins else "broker,controller",
            "node.id": str(self.node_id),
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{self._controller_port}",
            "listeners": listeners,
            "advertised.listeners": listeners,
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "log.initial.task.delay.ms": "500",
            # A broker killed and started again has to wait until its earlier self is given up.
            "broker.session.timeout.ms": "6000",
            "broker.heartbeat.interval.ms": "500",
        }


def random_uuid() -> str:
    """A random id as Kafka prints them; one that begins with a dash would look like an option."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text
