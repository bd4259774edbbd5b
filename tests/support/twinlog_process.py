"""Runs a real twinlog broker in a process of its own, as a user would start it."""

import socket
import struct
import sys
from collections.abc import Mapping
from pathlib import Path

from support.server_process import ServerProcess, free_port

# ApiVersions v0 with correlation id 7 and no client id: the smallest question there is.
_API_VERSIONS_REQUEST = struct.pack(">ihhih", 10, 18, 0, 7, -1)
_READY_TIMEOUT_S = 180.0


class TwinlogProcess:
    """One broker of twinlog, with its data in a folder and its port kept over restarts."""

    def __init__(
        self, folder: Path, *, node_id: int = 1, settings: Mapping[str, str] | None = None
    ) -> None:
        self.folder = folder
        self.node_id = node_id
        self.port = free_port()
        self.log_folder = folder / "data"
        folder.mkdir(parents=True, exist_ok=True)
        self.properties = folder / "server.properties"
        every = {
            "node.id": str(node_id),
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(self.log_folder),
            "group.initial.rebalance.delay.ms": "0",
            "group.min.session.timeout.ms": "1000",
            **(settings or {}),
        }
        self.properties.write_text("".join(f"{key}={value}\n" for key, value in every.items()))
        command = [sys.executable, "-m", "twinlog.cli.main", "serve", str(self.properties)]
        source = Path(__file__).parents[2] / "src"
        self.server = ServerProcess(
            f"twinlog-{node_id}", command, folder / "twinlog.out", env={"PYTHONPATH": str(source)}
        )

    @property
    def bootstrap(self) -> str:
        """Where clients find it."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, for the first time or again, and return when it answers ApiVersions."""
        self.server.start(lambda: answers_api_versions(self.port), timeout_s=_READY_TIMEOUT_S)

    def stop(self) -> int | None:
        """Shut it down in an orderly way and give its exit code."""
        return self.server.stop()

    def kill(self) -> None:
        """End it at once (SIGKILL); its data stays."""
        self.server.kill()

    def partition_folder(self, topic: str, partition: int) -> Path:
        """The folder in which it keeps that partition's segments."""
        return self.log_folder / f"{topic}-{partition}"


def answers_api_versions(port: int, *, timeout_s: float = 30.0) -> bool:
    """True if a broker on that loopback port answers ApiVersions v0 without an error."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=timeout_s) as connection:
            connection.sendall(_API_VERSIONS_REQUEST)
            answer = connection.recv(10)
    except OSError:
        return False
    if len(answer) < 10:
        return False
    _, correlation_id, error_code = struct.unpack(">iih", answer)
    return bool(correlation_id == 7 and error_code == 0)
