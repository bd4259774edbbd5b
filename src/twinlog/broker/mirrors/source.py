"""The source cluster of one mirror: its metadata, its addresses, and what may be asked of it."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from twinlog.cluster.facts import INTERNAL_TOPICS
from twinlog.config import mirror as keys
from twinlog.config.client_security import security_of
from twinlog.config.declare import Settings
from twinlog.config.mirror import mirror_settings
from twinlog.mirroring.acl_sync import parse_rules
from twinlog.model.errors import ApiError, ErrorCode, SettingsError
from twinlog.model.ids import NO_TOPIC_ID, BrokerId, TopicId, TopicName
from twinlog.network.addresses import Address, parse_addresses
from twinlog.network.client import BrokerConnection
from twinlog.network.exchange import PeerUnavailable
from twinlog.network.links import LinkSettings
from twinlog.network.peers import PeerCluster
from twinlog.network.secured import Secured

RECONNECT_BACKOFF_MS_MAX: Final = 1_000
NEVER_MIRRORED: Final = INTERNAL_TOPICS | {"__share_group_state"}
"""Each cluster keeps its own state in these, whatever the filters say: another's would be taken
for it, and the two would write to one log."""


def checked_settings(config: Mapping[str, str]) -> Settings:
    """Give a mirror's settings. Raises ApiError INVALID_CONFIG, which names key and fix."""
    try:
        settings = mirror_settings(config)
        topic_matcher(settings)
        group_matcher(settings)
        acls: tuple[str, ...] = settings[keys.ACLS_INCLUDE]
        parse_rules(acls)
    except SettingsError as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from error
    return settings


def addresses_of(settings: Settings) -> tuple[Address, ...]:
    """Give the bootstrap addresses of a mirror."""
    return parse_addresses(servers_of(settings))


def servers_of(settings: Settings) -> str:
    """Give the bootstrap list as a mirror's config has it."""
    servers: tuple[str, ...] = settings[keys.BOOTSTRAP_SERVERS]
    return ",".join(servers)


def topic_matcher(settings: Settings) -> Callable[[str], bool]:
    """Give the test for the names of topics that a mirror takes."""
    include: tuple[str, ...] = settings[keys.TOPICS_INCLUDE]
    exclude: tuple[str, ...] = settings[keys.TOPICS_EXCLUDE]
    matches = keys.matcher(include, exclude)
    return lambda name: name not in NEVER_MIRRORED and matches(name)


def topic_excluder(settings: Settings) -> Callable[[str], bool]:
    """Give the test for the names of topics that a mirror never takes."""
    exclude: tuple[str, ...] = settings[keys.TOPICS_EXCLUDE]
    matches = keys.matcher(exclude, ())
    return lambda name: name in NEVER_MIRRORED or matches(name)


def group_matcher(settings: Settings) -> Callable[[str], bool]:
    """Give the test for the ids of groups whose offsets a mirror takes."""
    include: tuple[str, ...] = settings[keys.GROUPS_INCLUDE]
    exclude: tuple[str, ...] = settings[keys.GROUPS_EXCLUDE]
    return keys.matcher(include, exclude)


class SourceCluster:
    """Connections with this mirror's own credentials and name; nothing is shared with others.

    With a ``cluster_id`` nothing is taken of another cluster that answers at the same addresses.
    """

    def __init__(
        self,
        mirror: str,
        settings: Settings,
        broker_id: BrokerId,
        seed: float,
        cluster_id: str | None = None,
    ) -> None:
        self.mirror: Final = mirror
        self.settings: Final = settings
        self.request_timeout_s: Final = settings[keys.REQUEST_TIMEOUT_MS] / 1000
        self._connect_timeout_ms: Final = settings[keys.SOCKET_CONNECTION_SETUP_TIMEOUT_MS]
        self.security: Final = security_of(settings)
        self.secured: Final = Secured(self.security)
        self.peers: Final = PeerCluster(
            addresses_of(settings),
            random=Random(seed),
            settings=LinkSettings(
                client_id=f"mirror-src-admin-{mirror}-{broker_id}",
                connect_timeout_ms=self._connect_timeout_ms,
                backoff_ms_max=RECONNECT_BACKOFF_MS_MAX,
                secured=self.secured,
            ),
            request_timeout_s=self.request_timeout_s,
            expected_id=cluster_id,
        )

    def topic_id(self, topic: TopicName) -> TopicId:
        """Give the id that the source has for a topic; all zeroes if it has or told none."""
        known = self.peers.metadata.topics.get(topic)
        return NO_TOPIC_ID if known is None else known.topic_id

    async def open_fetcher(self, node: BrokerId, number: int) -> BrokerConnection:
        """Open a fetcher's own connection to a broker of the source. Raises PeerUnavailable."""
        known = self.peers.nodes.get(node)
        if known is None:
            raise PeerUnavailable(f"broker {node} of {self.peers}", "not in its metadata")
        return await BrokerConnection.open(
            known.address,
            f"mirror-fetcher-{number}-{self.mirror}",
            timeout_s=self._connect_timeout_ms / 1000,
            secured=self.secured,
        )

    async def close(self) -> None:
        """Close all connections but the fetchers'."""
        await self.peers.close()


async def identify(mirror: str, settings: Settings, broker_id: BrokerId, seed: float) -> str:
    """Connect to a source and give its cluster id.

    Raises ApiError INVALID_CONFIG saying which addresses could not be reached or used, and why.
    """
    source = SourceCluster(mirror, settings, broker_id, seed)
    try:
        await source.peers.refresh(())
    except PeerUnavailable as error:
        servers = servers_of(settings)
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"the source at bootstrap.servers={servers} cannot be reached: {error}",
        ) from error
    except ApiError as error:
        if error.code != ErrorCode.UNSUPPORTED_VERSION:
            raise
        # By its own code the client would take it for a fault of the broker that it asked.
        why = f"the source at bootstrap.servers={servers_of(settings)} cannot be mirrored"
        text = f"{why}, it is no Kafka broker from 2.1 on: {error.why}"
        raise ApiError(ErrorCode.INVALID_CONFIG, text) from error
    finally:
        await source.close()
    cluster_id = source.peers.cluster_id
    if not cluster_id:
        raise ApiError(
            ErrorCode.INVALID_CONFIG, f"the source at {source.peers} does not tell its cluster id"
        )
    wanted: str | None = settings[keys.SOURCE_CLUSTER_ID]
    if wanted and wanted != cluster_id:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"source.cluster.id={wanted}, but the cluster at {source.peers} is {cluster_id}",
        )
    return cluster_id
