"""The brokers a command talks to: found from --bootstrap-server, asked, retried within bounds."""

import argparse
import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, TypeVar

from twinlog.cli.failures import CliError, UsageError, expect_ok
from twinlog.cli.text_files import text_of
from twinlog.config.client_security import client_security
from twinlog.config.read import properties
from twinlog.model.errors import ErrorCode, SettingsError, is_retriable
from twinlog.network.addresses import Address, parse_addresses
from twinlog.network.client import BrokerConnection
from twinlog.network.exchange import PeerUnavailable
from twinlog.network.sasl import AuthenticationFailed
from twinlog.network.secured import UNSECURED, Secured
from twinlog.wire.api_keys import ApiKey
from twinlog.wire.messages.groups import FIND_COORDINATOR, FindCoordinatorRequest
from twinlog.wire.messages.metadata import (
    METADATA,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataTopic,
)
from twinlog.wire.schema import Api

Request = TypeVar("Request")
Response = TypeVar("Response")

CONNECT_TIMEOUT_S: Final = 10.0
REQUEST_TIMEOUT_MS: Final = 30_000
RETRIES_MAX: Final = 40
RETRY_DELAY_S: Final = 0.25
CLIENT_ID: Final = "twinlog-cli"
COORDINATOR_MOVES: Final = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
)
LAST_WITH_NAMES: Final = {
    ApiKey.PRODUCE: 12,
    ApiKey.FETCH: 12,
    ApiKey.OFFSET_COMMIT: 9,
    ApiKey.OFFSET_FETCH: 9,
}


def add_cluster_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say which cluster is meant."""
    parser.add_argument(
        "--bootstrap-server",
        required=True,
        metavar="HOST:PORT",
        help="brokers of the cluster, with commas between them",
    )
    parser.add_argument(
        "--command-config",
        type=Path,
        metavar="FILE",
        help="properties of the connection: request.timeout.ms, client.id, and those of security, "
        "such as security.protocol, sasl.mechanism, sasl.jaas.config, ssl.truststore.location",
    )


class Cluster:
    """Connections to the brokers of one cluster, opened when needed."""

    def __init__(
        self,
        bootstrap: tuple[Address, ...],
        *,
        named_by: str,
        client_id: str,
        timeout_ms: int,
        secured: Secured = UNSECURED,
    ) -> None:
        self._bootstrap = bootstrap
        self._secured = secured
        self._named_by = named_by
        self._client_id = client_id
        self.timeout_ms = timeout_ms
        self._any: BrokerConnection | None = None
        self._nodes: dict[int, Address] = {}
        self._connections: dict[int, BrokerConnection] = {}
        self._opening = asyncio.Lock()

    async def connect(self) -> None:
        """Connect to the first bootstrap broker that answers; CliError when none does."""
        failures = []
        for address in self._bootstrap:
            try:
                self._any = await self._open(address)
            except AuthenticationFailed as error:
                raise CliError(str(error)) from error  # the others would say the same
            except PeerUnavailable as error:
                failures.append(str(error))
            else:
                return
        raise CliError(
            f"no broker can be reached at {', '.join(failures)}. "
            f"Is it running, and is {self._named_by} right?"
        )

    async def reconnect(self) -> None:
        """Connect again if the connection was lost; as it was if no broker answers."""
        if self._any is not None and not self._any.is_open:
            for address in self._bootstrap:
                try:
                    self._any = await self._open(address)
                except PeerUnavailable:
                    continue
                return

    async def close(self) -> None:
        """Close every connection."""
        for connection in (self._any, *self._connections.values()):
            if connection is not None:
                await connection.close()

    async def ask(self, api: Api[Request, Response], request: Request) -> Response:
        """Ask any broker."""
        assert self._any is not None, "connect first"
        return await self._call(self._any, api, request)

    async def ask_node(
        self, node_id: int, api: Api[Request, Response], request: Request
    ) -> Response:
        """Ask one broker, which a metadata or coordinator answer named before.

        Of requests that name topics by id in their latest versions, the last version with names
        is used.
        """
        return await self._call(await self.connection_to(node_id), api, request)

    async def connection_to(self, node_id: int) -> BrokerConnection:
        """Give the connection to one broker; CliError when it cannot be reached."""
        # One at a time: two that open the same connection would leave one of them open for good.
        async with self._opening:
            found = self._connections.get(node_id)
            if found is not None and found.is_open:
                return found
            try:
                opened = await self._open(self._nodes[node_id])
            except PeerUnavailable as error:
                raise CliError(
                    f"broker {node_id} cannot be reached at {error}. "
                    "It is what the cluster advertises: check advertised.listeners there"
                ) from error
            self._connections[node_id] = opened
            return opened

    async def metadata(
        self, topics: Sequence[str] | None = None, *, create: bool = False
    ) -> MetadataResponse:
        """Give the brokers and all topics, or those named; may let the cluster create these."""
        asked = None if topics is None else tuple(MetadataRequestTopic(name=t) for t in topics)
        answer = await self.ask(
            METADATA, MetadataRequest(topics=asked, allow_auto_topic_creation=create)
        )
        self._nodes |= {b.node_id: Address(b.host, b.port) for b in answer.brokers}
        return answer

    async def topic(self, name: str, *, create: bool = False) -> MetadataTopic:
        """Give one topic, all of whose partitions have a leader; waits for that, within bounds."""
        passing = {ErrorCode.LEADER_NOT_AVAILABLE}
        if create:
            passing.add(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        for _ in range(RETRIES_MAX):
            (found,) = (await self.metadata([name], create=create)).topics
            if not {found.error_code, *(p.error_code for p in found.partitions)} & passing:
                break
            await asyncio.sleep(RETRY_DELAY_S)
        else:
            raise CliError(f"topic {name} has a partition without a leader; is a broker down?")
        expect_ok(found.error_code, None, doing=f"topic {name} cannot be used")
        return found

    async def coordinator_of(self, group: str) -> int:
        """Give the node that keeps ``group``; waits until there is one, within bounds."""
        code, why = 0, None
        for _ in range(RETRIES_MAX):
            answer = await self.ask(
                FIND_COORDINATOR, FindCoordinatorRequest(key=group, coordinator_keys=(group,))
            )
            found = answer.coordinators[0] if answer.coordinators else answer
            code, why = found.error_code, found.error_message
            if code == ErrorCode.NONE:
                self._nodes[found.node_id] = Address(found.host, found.port)
                return found.node_id
            if not is_retriable(code):
                break
            await asyncio.sleep(RETRY_DELAY_S)
        expect_ok(code, why, doing=f"the coordinator of group {group} cannot be found")
        raise AssertionError("no error, and no coordinator")

    async def ask_coordinator(
        self,
        group: str,
        api: Api[Request, Response],
        request: Request,
        *,
        code_of: Callable[[Response], int],
    ) -> Response:
        """Ask whoever keeps ``group``; again, within bounds, while it loads or moves.

        ``code_of`` gives the error code of an answer.
        """
        for _ in range(RETRIES_MAX - 1):
            answer = await self.ask_node(await self.coordinator_of(group), api, request)
            if code_of(answer) not in COORDINATOR_MOVES:
                return answer
            await asyncio.sleep(RETRY_DELAY_S)
        return await self.ask_node(await self.coordinator_of(group), api, request)

    async def _open(self, address: Address) -> BrokerConnection:
        return await BrokerConnection.open(
            address,
            self._client_id,
            timeout_s=min(CONNECT_TIMEOUT_S, self.timeout_ms / 1_000),
            secured=self._secured,
        )

    async def _call(
        self, connection: BrokerConnection, api: Api[Request, Response], request: Request
    ) -> Response:
        version = min(connection.version_of(api), LAST_WITH_NAMES.get(api.key, api.max_version))
        timeout_s = self.timeout_ms / 1_000 + 1
        try:
            return await connection.call(api, request, timeout_s=timeout_s, version=version)
        except PeerUnavailable as error:
            raise CliError(f"the broker at {error}. Its log may say why; then try again") from error


@asynccontextmanager
async def cluster_of(options: argparse.Namespace) -> AsyncIterator[Cluster]:
    """Connect to the cluster that the flags name."""
    try:
        bootstrap = parse_addresses(options.bootstrap_server, key="--bootstrap-server")
    except SettingsError as error:
        raise UsageError(str(error)) from error
    given = connection_properties(options.command_config)
    async with cluster_at(bootstrap, given, named_by="--bootstrap-server") as cluster:
        yield cluster


@asynccontextmanager
async def cluster_at(
    bootstrap: tuple[Address, ...], given: Mapping[str, str], *, named_by: str
) -> AsyncIterator[Cluster]:
    """Connect to a cluster with the properties of its connection; ``named_by`` said where it is."""
    cluster = Cluster(
        bootstrap,
        named_by=named_by,
        client_id=given.get("client.id", CLIENT_ID),
        timeout_ms=_positive(given, "request.timeout.ms", REQUEST_TIMEOUT_MS),
        secured=Secured(client_security(given)),
    )
    await cluster.connect()
    try:
        yield cluster
    finally:
        await cluster.close()


def connection_properties(file: Path | None) -> dict[str, str]:
    """Read the properties of a connection; none without a file."""
    if file is None:
        return {}
    found = {entry.key: entry.value.strip() for entry in properties(text_of(file))}
    try:
        client_security(found)
    except SettingsError as error:
        raise CliError(f"{file}: {error}") from error
    return found


def _positive(given: Mapping[str, str], key: str, default: int) -> int:
    text = given.get(key, str(default))
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise CliError(f"{key}={text} cannot be: it must be a whole number of ms, at least 1")
    return int(text)
