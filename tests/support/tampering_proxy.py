"""Stands between a client and a broker: passes on what they say, spoils it, swallows it or cuts it.

A broker is put behind it with a listener of its own, which advertises the proxy's port, so that
clients come back through it whatever the metadata tells them (``behind_proxy``).
"""

import contextlib
import re
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from support.server_process import free_port

if TYPE_CHECKING:
    from support.kafka_node import KafkaNode

_CHUNK_BYTES = 1 << 16
_SIZE = struct.Struct(">i")


class _Mode(Enum):
    OPEN = "open"
    CUT = "cut"
    SILENT = "silent"


@dataclass(slots=True)
class _Link:
    """One client's connection, and ours to the broker on its behalf."""

    client: socket.socket
    broker: socket.socket
    is_silent: bool = False
    carried_bytes: int = 0

    def close(self) -> None:
        for side in (self.client, self.broker):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)
            side.close()


@dataclass(frozen=True, slots=True)
class _Line:
    """How answers travel: so fast, so late, and until so many bytes came over one connection."""

    bytes_per_s: float = 0.0
    delay_s: float = 0.0
    cut_at_bytes: int = 0

    def carry(self, link: _Link, answer: bytes | bytearray) -> bool:
        """Move one answer; False when the line broke on the way."""
        if self.delay_s:
            time.sleep(self.delay_s)
        step = _CHUNK_BYTES if not self.bytes_per_s else max(1, int(self.bytes_per_s / 50))
        for at in range(0, len(answer), step):
            some = answer[at : at + step]
            link.client.sendall(some)
            link.carried_bytes += len(some)
            if 0 < self.cut_at_bytes <= link.carried_bytes:
                return False
            if self.bytes_per_s:
                time.sleep(len(some) / self.bytes_per_s)
        return True


class TamperingProxy:
    """Forwards TCP connections on a loopback port to another one, frame by frame backwards."""

    def __init__(self, target_port: int) -> None:
        self.port = free_port()
        self.spoilt_count = 0
        self._target_port = target_port
        self._mode = _Mode.OPEN
        self._marker = b""
        self._line = _Line()
        self._links: list[_Link] = []
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None

    @property
    def bootstrap(self) -> str:
        """Where clients find it."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listen."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(64)
        self._listener = listener
        self._mode = _Mode.OPEN
        self._run(partial(self._accept, listener))

    def stop(self) -> None:
        """Close everything, whatever was done to it."""
        self.cut()

    def cut(self) -> None:
        """Close all connections and refuse new ones, as when the broker's host is rebooted."""
        self._mode = _Mode.CUT
        if self._listener is not None:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        with self._lock:
            links, self._links = self._links, []
        for link in links:
            link.close()

    def fall_silent(self) -> None:
        """Swallow all bytes from now on, and close nothing, as when a cable is pulled."""
        self._mode = _Mode.SILENT
        with self._lock:
            for link in self._links:
                link.is_silent = True

    def heal(self) -> None:
        """Serve new connections again; those that fell silent stay so for ever."""
        if self._mode == _Mode.CUT:
            self.start()
        self._mode = _Mode.OPEN

    def spoil(self, marker: bytes) -> None:
        """Flip a bit behind that marker in every answer that holds it; empty: spoil nothing."""
        self._marker = marker

    def limp(self, *, bytes_per_s: float, delay_s: float, cut_at_bytes: int = 0) -> None:
        """Be a slow line from now on; one that also breaks, when ``cut_at_bytes`` is not 0.

        Each connection then ends once so many bytes came back over it, in the middle of an answer.
        """
        self._line = _Line(bytes_per_s, delay_s, cut_at_bytes)

    def run_well(self) -> None:
        """Be a good line again."""
        self._line = _Line()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            broker = socket.socket()
            try:
                if self._mode == _Mode.OPEN:
                    broker.connect(("127.0.0.1", self._target_port))
            except OSError:
                client.close()
                broker.close()
                continue
            link = _Link(client, broker)
            with self._lock:
                # As it is by now: who cuts the line, or silences it, knows only what is listed.
                mode = self._mode
                link.is_silent = mode == _Mode.SILENT
                if mode != _Mode.CUT:
                    self._links.append(link)
            if mode == _Mode.CUT:
                link.close()
            elif not link.is_silent:
                self._run(partial(self._pump, link, self._forth))
                self._run(partial(self._pump, link, self._back))

    def _pump(self, link: _Link, move: Callable[[_Link], bool]) -> None:
        with contextlib.suppress(OSError):
            while move(link):
                pass
        if not link.is_silent:
            link.close()

    def _forth(self, link: _Link) -> bool:
        """Move what the client says; False at its end."""
        some = link.client.recv(_CHUNK_BYTES)
        if some and not link.is_silent:
            link.broker.sendall(some)
        return bool(some)

    def _back(self, link: _Link) -> bool:
        """Move one answer; False at the end."""
        size = _exactly(link.broker, _SIZE.size)
        answer = _exactly(link.broker, _SIZE.unpack(size)[0])
        if link.is_silent:
            return True
        at = answer.find(self._marker) if self._marker else -1
        if at >= 0:
            answer[at + len(self._marker)] ^= 0x10
            self.spoilt_count += 1
        return self._line.carry(link, size + answer)

    @staticmethod
    def _run(work: Callable[[], None]) -> None:
        threading.Thread(target=work, daemon=True).start()


def behind_proxy(node: "KafkaNode") -> TamperingProxy:
    """Give a node of Kafka 4, not yet started, a second listener that advertises a proxy's port."""
    behind = free_port()
    proxy = TamperingProxy(behind)
    properties = node.folder / "server.properties"
    known = dict(re.findall(r"(?m)^([\w.]+)=(.*)$", properties.read_text()))
    more = {
        "listeners": f"{known['listeners']},PROXIED://127.0.0.1:{behind}",
        "advertised.listeners": f"{known['advertised.listeners']},PROXIED://{proxy.bootstrap}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
        "PROXIED:PLAINTEXT",
    }
    # Of two lines with the same key, Java takes the later one.
    with properties.open("a") as file:
        file.writelines(f"{key}={value}\n" for key, value in more.items())
    return proxy


def _exactly(connection: socket.socket, size: int) -> bytearray:
    received = bytearray()
    while len(received) < size:
        some = connection.recv(min(size - len(received), _CHUNK_BYTES))
        if not some:
            raise ConnectionError("closed by the broker")
        received += some
    return received
