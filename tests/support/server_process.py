"""Starts a real server process, waits until it is ready, and stops, kills or measures it."""

import contextlib
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from support.reaper import shared_reaper

_LOG_TAIL_LINES = 40
_POLL_S = 0.005
_given_ports: set[int] = set()


class ServerDiedError(Exception):
    """A server ended, or was not ready in time; the text holds the end of what it printed."""


class ServerProcess:
    """One server, started any number of times, always printing to the end of the same log file."""

    def __init__(
        self, name: str, command: Sequence[str], log: Path, *, env: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.log = log
        self._command = list(command)
        self._env = {**os.environ, **(env or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    @property
    def pid(self) -> int:
        """The process id; only while it runs."""
        assert self._process is not None, f"{self.name} is not running"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """True until the process has ended, of itself or by us."""
        return self._process is not None and self._process.poll() is None

    def start(self, is_ready: Callable[[], bool], *, timeout_s: float = 180.0) -> None:
        """Start it and return when it is ready; raise ServerDiedError if that does not happen."""
        assert not self.is_running, f"{self.name} runs already"
        with self.log.open("ab") as log:
            self._log_start = log.tell()
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._env
            )
        shared_reaper().watch(self._process.pid)
        deadline = time.monotonic() + timeout_s
        while not is_ready():
            code = self._process.poll()
            if code is not None:
                self._forget()
                raise ServerDiedError(f"{self.name} ended with {code}:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                self.kill()
                said = self.log_tail()
                raise ServerDiedError(f"{self.name} is not ready after {timeout_s} s:\n{said}")
            time.sleep(_POLL_S)

    def stop(self, *, timeout_s: float = 120.0) -> int | None:
        """Ask it to end and give its exit code; kill it if it does not. None if it did not run."""
        if self._process is None:
            return None
        if self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGTERM)
        try:
            code = self._process.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.kill(self._process.pid, signal.SIGKILL)
            code = self._process.wait()
        self._forget()
        return code

    def kill(self) -> None:
        """End it at once, as a power cut would end the process."""
        if self._process is None:
            return
        if self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._forget()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, such as SIGSTOP and SIGCONT."""
        os.kill(self.pid, number)

    def has_said(self, text: str) -> bool:
        """True if it printed that since its last start."""
        return text in self.log_text()

    def log_text(self) -> str:
        """What it printed since its last start."""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    def log_tail(self) -> str:
        """The last lines it printed since its last start, for messages of failure."""
        return "\n".join(self.log_text().splitlines()[-_LOG_TAIL_LINES:])

    def _forget(self) -> None:
        assert self._process is not None
        shared_reaper().forget(self._process.pid)
        self._process = None


def free_port() -> int:
    """Give a loopback port that nobody listens on now, and never the same one twice.

    It lies below the ports that systems give to outgoing connections, so that no client takes it
    while its server is down for a restart; nor does another server of this run, which would find
    it free before its owner listens, and while that is down.
    """
    for _ in range(1_000):
        port = random.randint(20_000, 32_000)
        if port in _given_ports:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                _given_ports.add(port)
                return port
    raise AssertionError("no free port in 1,000 tries")


def accepts_connections(port: int) -> bool:
    """True if something listens on that loopback port."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0
