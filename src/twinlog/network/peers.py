"""A cluster we talk to: found by its bootstrap list, known by its metadata."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from random import Random
from typing import Final, TypeVar

from twinlog.model.errors import ApiError, ErrorCode, error_name
from twinlog.model.ids import BrokerId, LeaderEpoch, TopicName, TopicPartition
from twinlog.network.addresses import Address
from twinlog.network.client import BrokerConnection
from twinlog.network.exchange import PeerUnavailable
from twinlog.network.links import Links, LinkSettings
from twinlog.network.peer_metadata import PeerMetadata, PeerNode, PeerTopic
from twinlog.network.sasl import AuthenticationFailed
from twinlog.wire.messages.groups import (
    FIND_COORDINATOR,
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from twinlog.wire.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from twinlog.wire.schema import Api

Request = TypeVar("Request")
Response = TypeVar("Response")

REQUEST_TIMEOUT_S: Final = 30.0
BROKERS_ASKED_MAX: Final = 3
GROUP_KEY: Final = 0
BATCHED_SINCE: Final = 4
GROUPS_AT_ONCE_MAX: Final = 500


class PeerCluster:
    """The brokers of one cluster, with one connection to each that is talked to.

    Every wait is bounded: opening by the link settings, a request by ``request_timeout_s``.
    """

    def __init__(
        self,
        bootstrap: Sequence[Address],
        *,
        random: Random,
        settings: LinkSettings | None = None,
        request_timeout_s: float = REQUEST_TIMEOUT_S,
        expected_id: str | None = None,
    ) -> None:
        assert bootstrap, "a cluster is found by at least one address"
        self.metadata = PeerMetadata()
        self._bootstrap = tuple(bootstrap)
        self._links = Links(settings or LinkSettings(), random)
        self._random = random
        self._request_timeout_s = request_timeout_s
        self._expected_id = expected_id

    def __str__(self) -> str:
        """Give the bootstrap list."""
        return ",".join(map(str, self._bootstrap))

    @property
    def cluster_id(self) -> str | None:
        """The cluster's id; None before the first refresh."""
        return self.metadata.cluster_id

    @property
    def nodes(self) -> dict[BrokerId, PeerNode]:
        """The brokers, by id; empty before the first refresh."""
        return self.metadata.nodes

    def leader_of(self, of: TopicPartition) -> tuple[BrokerId, LeaderEpoch] | None:
        """Give the leader and its epoch (-1: the cluster tells none); None if there is none."""
        known = self.metadata.partition(of)
        if known is None or known.leader_id < 0:
            return None
        return known.leader_id, known.leader_epoch

    async def refresh(self, topics: Iterable[TopicName] | None) -> list[PeerTopic]:
        """Ask for the brokers and for ``topics`` (None: all); give what was told of these.

        A topic that does not exist comes back with its error code, and is not created. Raises
        PeerUnavailable, and ApiError: when the cluster refuses the request as a whole, and
        INCONSISTENT_CLUSTER_ID when it is not the one with the ``expected_id``; then nothing of
        what it told is believed.
        """
        names = None if topics is None else tuple(topics)
        wanted = None if names is None else tuple(MetadataRequestTopic(name=n) for n in names)
        response = await self.ask_any(
            METADATA, MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        )
        raise_for(response.error_code, f"{self}: Metadata")
        if self._expected_id and response.cluster_id != self._expected_id:
            raise ApiError(
                ErrorCode.INCONSISTENT_CLUSTER_ID,
                f"the cluster at {self} is {response.cluster_id}, not {self._expected_id}: "
                "nothing of it is taken",
            )
        told = self.metadata.take(response, is_of_all_topics=names is None)
        addresses = [node.address for node in self.nodes.values()]
        await self._links.forget_all_but([*addresses, *self._bootstrap])
        return told

    async def connection_to(self, node_id: int) -> BrokerConnection:
        """Give the connection to a broker, opened or reopened if need be.

        Raises PeerUnavailable, also when the metadata has no such broker.
        """
        node = self.nodes.get(BrokerId(node_id))
        if node is None:
            raise PeerUnavailable(f"broker {node_id} of {self}", "not in the cluster's metadata")
        return await self._links.connection_to(node.address)

    async def any_connection(self) -> BrokerConnection:
        """Give a connection to some broker: an open one, or the first that can be opened.

        Of the open ones that with the fewest questions to answer: a broker that hangs is not asked
        more and more. Raises PeerUnavailable when every known address was tried once.
        """
        addresses = self._addresses()
        are_open = [address for address in addresses if self._links.is_open(address)]
        if are_open:
            return await self._links.connection_to(min(are_open, key=self._links.in_flight_of))
        failures = []
        for address in sorted(addresses, key=self._links.wait_of):
            try:
                return await self._links.connection_to(address)
            except AuthenticationFailed:
                raise  # the others would say the same
            except PeerUnavailable as failure:
                failures.append(str(failure))
        raise PeerUnavailable(f"cluster {self}", "; ".join(failures))

    async def coordinators_of(self, groups: Collection[str]) -> dict[str, BrokerId | ApiError]:
        """Find the brokers that coordinate consumer groups; for each, or why there is none.

        Raises PeerUnavailable.
        """
        names = list(groups)
        connection = await self.any_connection()
        version = connection.version_of(FIND_COORDINATOR)
        at_once = GROUPS_AT_ONCE_MAX if version >= BATCHED_SINCE else 1
        found: dict[str, BrokerId | ApiError] = {}
        for first in range(0, len(names), at_once):
            some = names[first : first + at_once]
            if version >= BATCHED_SINCE:
                request = FindCoordinatorRequest(key_type=GROUP_KEY, coordinator_keys=tuple(some))
            else:
                request = FindCoordinatorRequest(key=some[0], key_type=GROUP_KEY)
            response = await connection.call(
                FIND_COORDINATOR, request, timeout_s=self._request_timeout_s, version=version
            )
            told = _coordinators_in(response, some, version)
            for group in some:
                try:
                    node = _coordinator_in(told, group)
                except ApiError as error:
                    found[group] = error
                else:
                    self.metadata.learn_node(node)
                    found[group] = node.node_id
        return found

    async def ask_any(self, api: Api[Request, Response], request: Request) -> Response:
        """Ask whichever broker answers; a few are tried.

        Raises PeerUnavailable, and ApiError when no version is common.
        """
        failure: PeerUnavailable | None = None
        for _ in range(BROKERS_ASKED_MAX):
            connection = await self.any_connection()
            try:
                return await connection.call(api, request, timeout_s=self._request_timeout_s)
            except PeerUnavailable as error:
                failure = error
        assert failure is not None, "no broker was asked"
        raise failure

    async def close(self) -> None:
        """Close all connections."""
        await self._links.close()

    def _addresses(self) -> list[Address]:
        """Give all known addresses: the brokers' first, then the bootstrap list; each shuffled."""
        known = [node.address for node in self.nodes.values()]
        others = [address for address in self._bootstrap if address not in known]
        self._random.shuffle(known)
        self._random.shuffle(others)
        return known + others


def raise_for(code: int, what: str, why: str | None = None) -> None:
    """Raise ApiError if ``code`` is an error; a number we do not know is named in its text."""
    if not code:
        return
    told = f"{what}: {error_name(code)}" + (f": {why}" if why else "")
    try:
        known = ErrorCode(code)
    except ValueError:
        known = ErrorCode.UNKNOWN_SERVER_ERROR
    raise ApiError(known, told)


def _coordinators_in(
    response: FindCoordinatorResponse, groups: Sequence[str], version: int
) -> dict[str, Coordinator]:
    """Read either form of the answer."""
    if version >= BATCHED_SINCE:
        return {told.key: told for told in response.coordinators}
    return {
        group: Coordinator(
            key=group,
            node_id=response.node_id,
            host=response.host,
            port=response.port,
            error_code=response.error_code,
            error_message=response.error_message,
        )
        for group in groups
    }


def _coordinator_in(told: Mapping[str, Coordinator], group: str) -> PeerNode:
    what = f"coordinator of group {group}"
    found = told.get(group)
    if found is None:
        raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{what}: not in the answer")
    raise_for(found.error_code, what, found.error_message)
    return PeerNode(BrokerId(found.node_id), Address(found.host, found.port))
