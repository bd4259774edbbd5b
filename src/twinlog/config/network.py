"""Broker settings: listeners and sockets."""

import re
from dataclasses import dataclass
from typing import Any, Final

from twinlog.config.checks import NOT_EMPTY, at_least
from twinlog.config.declare import Setting, Settings, Update
from twinlog.config.kinds import INT_MAX, Kind
from twinlog.model.errors import SettingsError

_ENDPOINT: Final = re.compile(r"([A-Za-z0-9_.-]+)://\[?([^\[\]/]*?)\]?:(\d{1,5})")
_PLAINTEXT: Final = "PLAINTEXT"

LISTENERS: Final[Setting[tuple[str, ...]]] = Setting(
    "listeners",
    Kind.LIST,
    ("PLAINTEXT://127.0.0.1:9092",),
    "Where the broker listens, as NAME://host:port. An empty host is every address; port 0 takes "
    "a free one. Kafka listens on every address by default; this broker only on loopback.",
    NOT_EMPTY,
)
ADVERTISED_LISTENERS: Final[Setting[tuple[str, ...]]] = Setting(
    "advertised.listeners",
    Kind.LIST,
    (),
    "What clients are told to connect to, as NAME://host:port. By default, what is listened on "
    "(with localhost for every address).",
)
LISTENER_SECURITY_PROTOCOL_MAP: Final[Setting[tuple[str, ...]]] = Setting(
    "listener.security.protocol.map",
    Kind.LIST,
    ("PLAINTEXT:PLAINTEXT",),
    "Which protocol each listener name speaks, as NAME:PROTOCOL. PLAINTEXT is spoken so far.",
)
INTER_BROKER_LISTENER_NAME: Final[Setting[str | None]] = Setting(
    "inter.broker.listener.name",
    Kind.STRING,
    None,
    "The listener that brokers use among themselves; by default the first.",
    is_idle=True,
)
CONTROLLER_LISTENER_NAMES: Final[Setting[tuple[str, ...]]] = Setting(
    "controller.listener.names",
    Kind.LIST,
    (),
    "Listeners that a Kafka controller would have. They are not opened: here the metadata store "
    "takes the controller's place.",
)
MAX_CONNECTIONS: Final = Setting(
    "max.connections",
    Kind.INT,
    INT_MAX,
    "Connections that are open at the same time; the next one is closed at once.",
    at_least(0),
    Update.CLUSTER_WIDE,
)
MAX_CONNECTIONS_PER_IP: Final = Setting(
    "max.connections.per.ip",
    Kind.INT,
    INT_MAX,
    "Connections from one address that are open at the same time.",
    at_least(0),
    Update.CLUSTER_WIDE,
    is_idle=True,
)
CONNECTIONS_MAX_IDLE_MS: Final = Setting(
    "connections.max.idle.ms",
    Kind.LONG,
    600_000,
    "A connection on which nothing came for so long is closed; -1 never.",
    at_least(-1),
)
SOCKET_REQUEST_MAX_BYTES: Final = Setting(
    "socket.request.max.bytes",
    Kind.INT,
    104_857_600,
    "The longest request; a longer one closes its connection.",
    at_least(1),
)
SOCKET_SEND_BUFFER_BYTES: Final = Setting(
    "socket.send.buffer.bytes",
    Kind.INT,
    102_400,
    "SO_SNDBUF of connections; -1 leaves it to the operating system.",
    at_least(-1),
    is_idle=True,
)
SOCKET_RECEIVE_BUFFER_BYTES: Final = Setting(
    "socket.receive.buffer.bytes",
    Kind.INT,
    102_400,
    "SO_RCVBUF of connections; -1 leaves it to the operating system.",
    at_least(-1),
    is_idle=True,
)
SOCKET_LISTEN_BACKLOG_SIZE: Final = Setting(
    "socket.listen.backlog.size",
    Kind.INT,
    50,
    "Connections that wait to be accepted.",
    at_least(1),
    is_idle=True,
)
QUEUED_MAX_REQUESTS: Final = Setting(
    "queued.max.requests",
    Kind.INT,
    500,
    "Requests of one connection that wait for their turn before it is no longer read from.",
    at_least(1),
    is_idle=True,
)
QUEUED_MAX_REQUEST_BYTES: Final = Setting(
    "queued.max.request.bytes",
    Kind.LONG,
    -1,
    "Bytes of requests in memory before no connection is read from; -1 takes a quarter of a GB.",
    at_least(-1),
    is_idle=True,
)
REQUEST_TIMEOUT_MS: Final = Setting(
    "request.timeout.ms",
    Kind.INT,
    30_000,
    "How long a request to another broker may take.",
    at_least(1),
    is_idle=True,
)

SETTINGS: Final[tuple[Setting[Any], ...]] = (
    LISTENERS,
    ADVERTISED_LISTENERS,
    LISTENER_SECURITY_PROTOCOL_MAP,
    INTER_BROKER_LISTENER_NAME,
    CONTROLLER_LISTENER_NAMES,
    MAX_CONNECTIONS,
    MAX_CONNECTIONS_PER_IP,
    CONNECTIONS_MAX_IDLE_MS,
    SOCKET_REQUEST_MAX_BYTES,
    SOCKET_SEND_BUFFER_BYTES,
    SOCKET_RECEIVE_BUFFER_BYTES,
    SOCKET_LISTEN_BACKLOG_SIZE,
    QUEUED_MAX_REQUESTS,
    QUEUED_MAX_REQUEST_BYTES,
    REQUEST_TIMEOUT_MS,
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a listener listens, or what is told of it; an empty host is every address."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        """Give it as Kafka writes it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def endpoints(settings: Settings) -> tuple[Endpoint, ...]:
    """Give what to listen on, without controllers' listeners."""
    controllers = settings[CONTROLLER_LISTENER_NAMES]
    found = [endpoint_in(LISTENERS, text) for text in settings[LISTENERS]]
    return tuple(endpoint for endpoint in found if endpoint.name not in controllers)


def advertised(settings: Settings) -> tuple[Endpoint, ...]:
    """Give what clients are told; port 0 stands for the port that was taken."""
    controllers = settings[CONTROLLER_LISTENER_NAMES]
    texts = settings[ADVERTISED_LISTENERS]
    if texts:
        told = [endpoint_in(ADVERTISED_LISTENERS, text) for text in texts]
        return tuple(endpoint for endpoint in told if endpoint.name not in controllers)
    return tuple(
        Endpoint(e.name, "localhost" if e.host in ("", "0.0.0.0", "::") else e.host, e.port)
        for e in endpoints(settings)
    )


def listeners_fit(settings: Settings) -> str | None:
    """Check listeners against what is told of them and the protocols they speak."""
    try:
        opened, told = endpoints(settings), advertised(settings)
    except SettingsError as error:
        return str(error)
    if not opened:
        return "listeners has only the controllers' listeners: name one for clients"
    names = [endpoint.name for endpoint in opened]
    if len({*names}) != len(names):
        return f"listeners={','.join(map(str, opened))} uses a name twice: names must differ"
    for endpoint in told:
        if endpoint.name not in names:
            return f"advertised.listeners has {endpoint.name}, but listeners has {names}"
        if endpoint.host in ("", "0.0.0.0"):
            return f"advertised.listeners has {endpoint}, to which no client can connect"
    return _protocols_fit(settings, names)


def _protocols_fit(settings: Settings, names: list[str]) -> str | None:
    protocols = dict(
        entry.partition(":")[::2] for entry in settings[LISTENER_SECURITY_PROTOCOL_MAP]
    )
    for name in names:
        protocol = protocols.get(name, name if name in _KAFKAS_PROTOCOLS else "")
        if not protocol:
            return (
                f"listener {name} has no protocol: "
                f"add {name}:PLAINTEXT to listener.security.protocol.map"
            )
        if protocol != _PLAINTEXT:
            return f"listener {name} should speak {protocol}, but only PLAINTEXT is spoken so far"
    return None


_KAFKAS_PROTOCOLS: Final = (_PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def endpoint_in(
    setting: Setting[Any], text: str, example: str = "PLAINTEXT://127.0.0.1:9092"
) -> Endpoint:
    """Read what a setting says of a listener. Raises SettingsError."""
    found = _ENDPOINT.fullmatch(text)
    if found is None or int(found[3]) >= 1 << 16:
        raise SettingsError(
            f"{setting.name} has {text!r}, which is not NAME://host:port: "
            f"write, for example, {example}"
        )
    return Endpoint(found[1], found[2], int(found[3]))
