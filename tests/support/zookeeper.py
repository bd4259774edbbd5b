"""Runs the ZooKeeper that Kafka 2.1 keeps its metadata in."""

import socket
from pathlib import Path

from support.jvm import java_server
from support.kafka_install import KAFKA_2_1
from support.server_process import ServerProcess, free_port
from support.waiting import wait_until


class ZooKeeper:
    """One ZooKeeper server on a loopback port, with its data in a folder."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        folder.mkdir(parents=True, exist_ok=True)
        properties = folder / "zookeeper.properties"
        properties.write_text(
            f"dataDir={folder / 'data'}\n"
            f"clientPort={self.port}\n"
            "clientPortAddress=127.0.0.1\n"
            "admin.enableServer=false\n"
            "4lw.commands.whitelist=ruok,dump\n"
            "tickTime=1000\n"
        )
        self.server: ServerProcess = java_server(
            "zookeeper",
            KAFKA_2_1,
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            properties,
            options=("-Xms64m", "-Xmx256m"),
        )

    @property
    def address(self) -> str:
        """Where clients find it."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it unless it runs, and return when it serves."""
        if not self.server.is_running:
            self.server.start(lambda: ask(self.port, b"ruok") == "imok")

    def stop(self) -> None:
        """End it."""
        self.server.stop()

    def await_no_owner_of(self, path: str) -> None:
        """Return when no session holds that node: a killed broker's lives on for a while."""
        wait_until(
            lambda: path not in ask(self.port, b"dump").split(), f"{path} is given up in ZooKeeper"
        )


def ask(port: int, word: bytes) -> str:
    """Send a ZooKeeper one of its four-letter words and give the answer, empty if there is none."""
    answer = b""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2.0) as connection:
            connection.sendall(word)
            while piece := connection.recv(65536):
                answer += piece
    except OSError:
        return ""
    return answer.decode(errors="replace")
