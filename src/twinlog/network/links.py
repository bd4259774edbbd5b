"""One connection per address, opened when it is asked for and again after it was lost."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Final

from twinlog.network.addresses import Address
from twinlog.network.client import BrokerConnection
from twinlog.network.exchange import PeerUnavailable
from twinlog.network.frames import ReceiveBuffers
from twinlog.network.secured import UNSECURED, Secured

CLOSED_BY_US: Final = "the connections of this cluster were closed by us"


@dataclass(frozen=True, slots=True)
class LinkSettings:
    """How connections are made; the defaults are those of Kafka's clients."""

    client_id: str = "twinlog"
    connect_timeout_ms: int = 10_000  # socket.connection.setup.timeout.ms
    backoff_ms_min: int = 50  # reconnect.backoff.ms
    backoff_ms_max: int = 1_000  # reconnect.backoff.max.ms
    opening_max: int = 8
    secured: Secured = UNSECURED


class Links:
    """The connections to the brokers of one cluster.

    After a failure an address is left alone for a while, which doubles with every failure up to
    a bound; the time is drawn between nothing and that (full jitter), so that many clients of a
    broker that comes back do not come all at once.
    """

    def __init__(self, settings: LinkSettings, random: Random) -> None:
        self.settings = settings
        self.opening = asyncio.Semaphore(settings.opening_max)
        self.buffers = ReceiveBuffers()
        self.random = random
        self.is_closed = False
        self._links: dict[Address, _Link] = {}

    async def connection_to(self, address: Address) -> BrokerConnection:
        """Give the open connection to ``address``, or open it when its time has come.

        Raises PeerUnavailable.
        """
        if self.is_closed:
            raise PeerUnavailable(address, CLOSED_BY_US)
        link = self._links.get(address)
        if link is None:
            link = self._links[address] = _Link(self, address)
        return link.connection if link.is_open else await link.open()

    def is_open(self, address: Address) -> bool:
        """Tell whether a connection to ``address`` is open."""
        link = self._links.get(address)
        return link is not None and link.is_open

    def in_flight_of(self, address: Address) -> int:
        """Give how many requests to ``address`` wait for their answer."""
        link = self._links.get(address)
        return link.connection.in_flight_count if link is not None and link.is_open else 0

    def wait_of(self, address: Address) -> float:
        """Give the seconds until ``address`` may be tried again; 0 when it may be now."""
        link = self._links.get(address)
        return 0.0 if link is None else link.wait_s

    async def forget_all_but(self, addresses: Iterable[Address]) -> None:
        """Close the connections to all other addresses."""
        kept = set(addresses)
        for address in [a for a in self._links if a not in kept]:
            await self._links.pop(address).close()

    async def close(self) -> None:
        """Close all connections, and open no more."""
        self.is_closed = True
        await self.forget_all_but(())


class _Link:
    """The connection to one address, and how often opening it has failed."""

    def __init__(self, home: Links, address: Address) -> None:
        self._home = home
        self._address = address
        self._loop = asyncio.get_running_loop()
        self._lock = asyncio.Lock()
        self._is_closed = False
        self._connection: BrokerConnection | None = None
        self._failure: PeerUnavailable | None = None
        self._failure_count = 0
        self._attempt_count = 0
        self._retry_at = 0.0

    @property
    def is_open(self) -> bool:
        return self._connection is not None and self._connection.is_open

    @property
    def connection(self) -> BrokerConnection:
        assert self._connection is not None, f"no connection to {self._address} was opened"
        return self._connection

    @property
    def wait_s(self) -> float:
        return 0.0 if self.is_open else max(0.0, self._retry_at - self._loop.time())

    async def open(self) -> BrokerConnection:
        """Open the connection after its back-off; who asks meanwhile shares the outcome."""
        attempt_count = self._attempt_count
        async with self._lock:
            if self.is_open:
                return self.connection
            if attempt_count != self._attempt_count and self._failure is not None:
                raise PeerUnavailable(self._address, self._failure.why)
            await self._retire()
            await asyncio.sleep(self.wait_s)
            async with self._home.opening:
                await self._try()
            return self.connection

    async def close(self) -> None:
        """Close the connection; one that is being opened is closed when it is there."""
        self._is_closed = True
        if self._connection is not None:
            await self._connection.close()

    async def _retire(self) -> None:
        """Let a lost connection count as a failure, so that it is not reopened in a tight loop."""
        if self._connection is not None:
            await self._connection.close()
            self._connection = None
            self._note_failure()

    async def _try(self) -> None:
        settings = self._home.settings
        self._attempt_count += 1
        try:
            connection = await BrokerConnection.open(
                self._address,
                settings.client_id,
                timeout_s=settings.connect_timeout_ms / 1000,
                secured=settings.secured,
                buffers=self._home.buffers,
            )
        except PeerUnavailable as failure:
            self._failure = failure
            self._note_failure()
            raise
        if self._is_closed:
            await connection.close()
            raise PeerUnavailable(self._address, CLOSED_BY_US)
        self._connection = connection
        self._failure = None
        self._failure_count = 0

    def _note_failure(self) -> None:
        settings = self._home.settings
        doubled = settings.backoff_ms_min << min(self._failure_count, 20)
        self._failure_count += 1
        backoff_ms = self._home.random.uniform(0, min(settings.backoff_ms_max, doubled))
        self._retry_at = self._loop.time() + backoff_ms / 1000
