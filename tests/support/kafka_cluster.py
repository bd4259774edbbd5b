"""Runs a cluster of real Apache Kafka: a controller that stays, and brokers that come and go."""

import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import kafka
from confluent_kafka import ElectionType, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, PartitionMetadata
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from support.cluster_admin import create_topic, offsets_of
from support.jvm import java_server, run_tool
from support.kafka_install import KAFKA_4, RELEASES
from support.kafka_node import KafkaNode, random_uuid
from support.reaper import shared_reaper
from support.server_process import ServerProcess, accepts_connections, free_port
from support.waiting import wait_until

Partition = tuple[str, int]

_CONTROLLER_ID: Final = 100
_START_S: Final = 180.0
# They start more often than they work long: the quick compiler has them ready soonest.
_CONTROLLER_OPTIONS: Final = ("-Xms64m", "-Xmx160m", "-XX:TieredStopAtLevel=1")
_BROKER_OPTIONS: Final = ("-Xms128m", "-Xmx320m", "-XX:TieredStopAtLevel=1")
_BROKER_SETTINGS: Final = {
    "process.roles": "broker",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    # Followers of a dead leader look for the new one soon, and those that lag are out soon.
    "replica.lag.time.max.ms": "3000",
    "replica.socket.timeout.ms": "3000",
    "replica.fetch.backoff.ms": "200",
    "auto.leader.rebalance.enable": "false",
    "num.network.threads": "2",
    "num.io.threads": "4",
}


class Controller:
    """The one controller of a cluster; it leads no partition."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.cluster_id: Final = random_uuid()
        folder.mkdir(parents=True, exist_ok=True)
        self._properties = folder / "server.properties"
        every = {
            "process.roles": "controller",
            "node.id": str(_CONTROLLER_ID),
            "log.dirs": str(folder / "data"),
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{self.port}",
            "listeners": f"CONTROLLER://127.0.0.1:{self.port}",
            "advertised.listeners": f"CONTROLLER://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "broker.session.timeout.ms": "3000",
            "broker.heartbeat.interval.ms": "500",
        }
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in every.items()))
        self.server: ServerProcess = java_server(
            "kafka-controller",
            KAFKA_4,
            "kafka.Kafka",
            self._properties,
            options=_CONTROLLER_OPTIONS,
        )

    def start(self) -> None:
        """Format its folder and start it."""
        arguments = ("format", "-t", self.cluster_id, "-c", str(self._properties), "--standalone")
        run_tool(KAFKA_4, "kafka.tools.StorageTool", *arguments)
        self.server.start(
            lambda: (
                self.server.has_said(RELEASES[KAFKA_4].ready_line)
                and accepts_connections(self.port)
            ),
            timeout_s=_START_S,
        )


class ClusterBroker(KafkaNode):
    """A broker without a controller, small, with the cluster's id given."""

    def __init__(
        self, folder: Path, node_id: int, controller: Controller, settings: Mapping[str, str]
    ) -> None:
        self._cluster_id = controller.cluster_id
        super().__init__(
            folder,
            node_id=node_id,
            settings={
                **_BROKER_SETTINGS,
                "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller.port}",
                **settings,
            },
        )
        # What KafkaNode made of them has a controller's listener too.
        own = f"PLAINTEXT://127.0.0.1:{self.port}"
        with self._properties.open("a") as file:
            file.write(f"listeners={own}\nadvertised.listeners={own}\n")
        self.is_frozen = False
        self.server = java_server(
            f"kafka-{node_id}", KAFKA_4, "kafka.Kafka", self._properties, options=_BROKER_OPTIONS
        )

    @property
    def is_up(self) -> bool:
        """Whether it can answer."""
        return self.server.is_running and not self.is_frozen

    def start(self) -> None:
        """Start it, for the first time or again; several at once may take a busy machine long."""
        self.server.start(
            lambda: self.server.has_said(RELEASES[KAFKA_4].ready_line), timeout_s=_START_S
        )
        admin = self.admin()
        wait_until(
            lambda: self.is_found_by(admin),
            lambda: f"clients find it\n{self.server.log_tail()}",
            timeout_s=_START_S,
        )

    def format(self) -> None:
        """Prepare its folder for the cluster."""
        where = ("-t", self._cluster_id, "-c", str(self._properties))
        tool = "kafka.tools.StorageTool"
        run_tool(KAFKA_4, tool, "format", *where, "--no-initial-controllers")

    def freeze(self) -> None:
        """Stop it in its tracks: its connections stay open and it says nothing."""
        self.server.signal(signal.SIGSTOP)
        self.is_frozen = True

    def thaw(self) -> None:
        """Let it go on where it was."""
        self.server.signal(signal.SIGCONT)
        self.is_frozen = False

    def kill(self) -> None:
        """End it at once, frozen or not."""
        super().kill()
        self.is_frozen = False


@dataclass(frozen=True, slots=True)
class ServerLogs:
    """The ends of several servers' logs, shown together with a failed test."""

    servers: Sequence[ServerProcess]
    name: str = "kafka cluster"

    def log_tail(self) -> str:
        """The last lines of each."""
        return "\n".join(f"-- {each.name}\n{_worth_reading(each)}" for each in self.servers)


def _worth_reading(server: ServerProcess) -> str:
    lines = server.log_text().splitlines()
    return "\n".join([line for line in lines if "is defined in broker" not in line][-20:])


class KafkaCluster:
    """Brokers 1 to ``size`` of one cluster, and what an operator does to them."""

    def __init__(
        self, folder: Path, *, size: int = 3, settings: Mapping[str, str] | None = None
    ) -> None:
        self.controller = Controller(folder / "controller")
        self.brokers: dict[int, ClusterBroker] = {
            number: ClusterBroker(
                folder / f"broker-{number}", number, self.controller, settings or {}
            )
            for number in range(1, size + 1)
        }
        self.server = ServerLogs(
            [self.controller.server, *(broker.server for broker in self.brokers.values())]
        )

    # Life

    def start(self) -> None:
        """Start everything, as much as can be side by side."""
        shared_reaper()
        side_by_side([self.controller.start, *(each.format for each in self.brokers.values())])
        self.start_brokers(self.brokers)
        wait_until(
            lambda: len(self.metadata().brokers) == len(self.brokers),
            "all brokers are in",
            timeout_s=_START_S,
        )

    def stop(self) -> None:
        """End everything at once: nobody needs the data again."""
        for broker in self.brokers.values():
            broker.kill()
        self.controller.server.kill()

    def kill(self, numbers: Iterable[int]) -> None:
        """Kill -9 those brokers."""
        for number in numbers:
            self.brokers[number].kill()

    def start_brokers(self, numbers: Iterable[int]) -> None:
        """Start those brokers side by side, return when clients find each."""
        side_by_side([self.brokers[number].start for number in numbers])

    def revive(self) -> None:
        """Bring back whoever is down or frozen."""
        for broker in self.brokers.values():
            if broker.is_frozen:
                broker.thaw()
        self.start_brokers(
            [number for number, each in self.brokers.items() if not each.server.is_running]
        )

    # What clients see

    @property
    def bootstrap(self) -> str:
        """Where clients find the brokers, those that can answer first."""
        ordered = sorted(self.brokers.values(), key=lambda each: not each.is_up)
        return ",".join(each.bootstrap for each in ordered)

    def partition_folder(self, topic: str, partition: int) -> Path:
        """Where the leader keeps that partition's segments."""
        return self.brokers[self.leader_of((topic, partition))].partition_folder(topic, partition)

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        """Give a partition's log start and high watermark."""
        return offsets_of(self, topic, partition)

    def metadata(self, topic: str | None = None) -> Any:
        """Ask one of the living brokers; what it says may be a moment old."""
        up = next(each for each in self.brokers.values() if each.is_up)
        config = {"bootstrap.servers": up.bootstrap, "log_level": 2, "socket.timeout.ms": 10_000}
        admin = AdminClient(config)
        for attempt in range(5):
            try:
                return admin.list_topics(topic, timeout=20)
            except KafkaException:
                if attempt == 4:
                    raise
        raise AssertionError("unreachable: the fifth attempt raises")

    def partition(self, of: Partition) -> PartitionMetadata | None:
        """What metadata tells of a partition, None while it tells nothing."""
        topic = self.metadata(of[0]).topics.get(of[0])
        return None if topic is None else topic.partitions.get(of[1])

    def leader_of(self, of: Partition) -> int:
        """The broker that leads a partition; wait until one does."""
        found = [-1]

        def is_led() -> bool:
            told = self.partition(of)
            found[0] = -1 if told is None else told.leader
            return found[0] in self.brokers

        wait_until(is_led, f"{of} has a leader", timeout_s=120)
        return found[0]

    def in_sync(self, of: Partition) -> set[int]:
        """The in-sync replicas of a partition."""
        told = self.partition(of)
        return set() if told is None else set(told.isrs)

    def await_whole(self, topics: Iterable[str], *, timeout_s: float = 120.0) -> None:
        """Return when those topics are at every broker, in sync."""
        names, everybody = set(topics), set(self.brokers)

        def amiss() -> list[str]:
            told = self.metadata().topics
            return [
                f"{name}-{number}: leader {each.leader}, in sync {each.isrs} of {each.replicas}"
                for name in names
                for number, each in (told[name].partitions if name in told else {}).items()
                if each.leader not in everybody
                or not set(each.isrs) == set(each.replicas) == everybody
            ]

        wait_until(lambda: not amiss(), lambda: "; ".join(amiss()[:8]), timeout_s=timeout_s)

    # What an operator does

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replicas: int = 3,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic and return when it is led."""
        create_topic(self, name, partitions=partitions, replicas=replicas, config=config)

    def elect(self, partitions: Iterable[Partition], *, is_unclean: bool = False) -> None:
        """Let preferred, or any living, replicas lead, where others do and these can."""
        kind = ElectionType.UNCLEAN if is_unclean else ElectionType.PREFERRED
        asked = [TopicPartition(*of) for of in partitions]

        def elected() -> None:
            admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 2})
            admin.elect_leaders(kind, asked).result(timeout=60)

        _until_taken(elected, KafkaException)

    def move(self, replicas: Mapping[Partition, Sequence[int]]) -> None:
        """Begin to move partitions onto those replicas, the first of them preferred."""
        asked = {kafka.TopicPartition(*of): list(onto) for of, onto in replicas.items()}

        def moved() -> None:
            admin = KafkaAdminClient(bootstrap_servers=self.bootstrap.split(","))
            try:
                answers = admin.alter_partition_reassignments(asked, timeout_ms=60_000)
            finally:
                admin.close()
            refused = {of: why for of, why in answers.items() if why}
            assert not refused, f"partitions cannot be moved: {refused}"

        _until_taken(moved, KafkaError)

    def lose_what_comes_now(
        self, of: Partition, write: Callable[[], None], *, is_frozen: bool = True
    ) -> int:
        """Have an unclean election lose what ``write`` writes to a leader alone; give that leader.

        It stays dead: whoever revives it sees it come back as a follower.
        """
        leader = self.leader_of(of)
        others = [number for number in self.brokers if number != leader]
        for number in others:
            self.brokers[number].freeze() if is_frozen else self.brokers[number].kill()
        wait_until(lambda: self.in_sync(of) == {leader}, f"{leader} alone has {of}", timeout_s=120)
        write()
        self.brokers[leader].kill()
        if is_frozen:
            for number in others:
                self.brokers[number].thaw()
        else:
            self.start_brokers(others)
        wait_until(
            lambda: self.leader_of(of) != leader, f"another than {leader} leads {of}", timeout_s=120
        )
        return leader


def _until_taken(ask: Callable[[], None], failure: type[Exception]) -> None:
    """Ask again while brokers that come and go do not know of each other."""
    failures: list[Exception] = []

    def is_taken() -> bool:
        try:
            ask()
        except failure as error:
            failures.append(error)
            return False
        return True

    wait_until(is_taken, lambda: f"an order is taken: {failures[-1]}", timeout_s=120)


def side_by_side(tasks: Sequence[Callable[[], object]]) -> None:
    """Do all of that at once; raise what the first that failed raised."""
    if not tasks:
        return
    with ThreadPoolExecutor(len(tasks)) as pool:
        for done in [pool.submit(task) for task in tasks]:
            done.result()
