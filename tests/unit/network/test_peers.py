import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from uuid import UUID

import pytest

from support.listening import eventually
from support.scripted_broker import ScriptedBroker, serving
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import TopicName, TopicPartition
from twinlog.network.addresses import Address
from twinlog.network.exchange import PeerUnavailable
from twinlog.network.links import LinkSettings
from twinlog.network.peers import GROUPS_AT_ONCE_MAX, PeerCluster
from twinlog.wire.api_keys import ApiKey
from twinlog.wire.messages.groups import (
    FIND_COORDINATOR,
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from twinlog.wire.messages.metadata import (
    METADATA,
    MetadataBroker,
    MetadataPartition,
    MetadataRequest,
    MetadataResponse,
    MetadataTopic,
)

ORDERS = TopicName("orders")
QUICK = LinkSettings(backoff_ms_min=1, backoff_ms_max=4)


class TwoBrokers:
    """A cluster of two brokers; number 2 leads the only partition, in a given epoch."""

    def __init__(self, *, metadata: tuple[int, int] = (0, 13), coordinator: int = 6) -> None:
        self.asked_for_coordinators = 0
        ranges = {ApiKey.METADATA: metadata, ApiKey.FIND_COORDINATOR: (0, coordinator)}
        self.brokers = [ScriptedBroker(ranges=ranges) for _ in range(2)]
        self.epoch = 4
        self.error_code = 0
        self.requests: list[MetadataRequest] = []
        for broker in self.brokers:
            broker.on(METADATA, self.on_metadata)
            broker.on(FIND_COORDINATOR, self.on_find_coordinator)

    @property
    def addresses(self) -> list[Address]:
        return [broker.address for broker in self.brokers]

    def on_metadata(self, request: MetadataRequest, version: int) -> MetadataResponse:
        self.requests.append(request)
        names = [ORDERS] if request.topics is None else [t.name for t in request.topics]
        return MetadataResponse(
            brokers=tuple(
                MetadataBroker(node_id=number + 1, host=a.host, port=a.port)
                for number, a in enumerate(self.addresses)
            ),
            cluster_id="two brokers",
            topics=tuple(self.topic(name) for name in names),
            error_code=self.error_code,
        )

    def topic(self, name: str | None) -> MetadataTopic:
        if name != ORDERS:
            return MetadataTopic(error_code=3, name=name, partitions=())
        partition = MetadataPartition(
            partition_index=0,
            leader_id=2,
            leader_epoch=self.epoch,
            replica_nodes=(2,),
            isr_nodes=(2,),
        )
        return MetadataTopic(name=name, topic_id=UUID(int=9), partitions=(partition,))

    def on_find_coordinator(
        self, request: FindCoordinatorRequest, version: int
    ) -> FindCoordinatorResponse:
        self.asked_for_coordinators += 1
        address = self.addresses[1]
        if version < 4:
            return FindCoordinatorResponse(
                error_code=15 if request.key == "homeless" else 0,
                node_id=2,
                host=address.host,
                port=address.port,
            )
        return FindCoordinatorResponse(
            coordinators=tuple(
                Coordinator(
                    key=group,
                    node_id=2,
                    host=address.host,
                    port=address.port,
                    error_code=15 if group == "homeless" else 0,
                    error_message="no one is home" if group == "homeless" else None,
                )
                for group in request.coordinator_keys
                if group != "lost"
            )
        )


@asynccontextmanager
async def meeting(cluster: TwoBrokers, *others: Address) -> AsyncIterator[PeerCluster]:
    async with serving(cluster.brokers[0]), serving(cluster.brokers[1]):
        bootstrap = others or (cluster.addresses[0],)
        peers = PeerCluster(bootstrap, random=Random(1), settings=QUICK)
        try:
            yield peers
        finally:
            await peers.close()


async def test_a_cluster_is_known_after_a_refresh() -> None:
    async with meeting(TwoBrokers()) as peers:
        assert not peers.nodes
        (orders,) = await peers.refresh(None)
        assert orders.topic_id == UUID(int=9)
        assert peers.cluster_id == "two brokers"
        assert set(peers.nodes) == {1, 2}
        assert peers.leader_of(TopicPartition(ORDERS, 0)) == (2, 4)
        assert peers.leader_of(TopicPartition(ORDERS, 1)) is None


@pytest.mark.parametrize("version", [1, 4, 7, 9, 10, 12, 13])
async def test_every_version_of_metadata_will_do(version: int) -> None:
    cluster = TwoBrokers(metadata=(0, version))
    async with meeting(cluster) as peers:
        told = await peers.refresh([ORDERS, TopicName("nowhere")])
        assert [(t.name, t.error_code) for t in told] == [(ORDERS, 0), ("nowhere", 3)]
        assert peers.leader_of(TopicPartition(ORDERS, 0)) == (2, 4 if version >= 7 else -1)
        assert version < 4 or not cluster.requests[0].allow_auto_topic_creation


async def test_a_leader_epoch_that_went_back_is_not_believed() -> None:
    cluster = TwoBrokers()
    async with meeting(cluster) as peers:
        await peers.refresh(None)
        cluster.epoch = 3
        await peers.refresh(None)
        assert peers.leader_of(TopicPartition(ORDERS, 0)) == (2, 4)


async def test_each_broker_has_one_connection() -> None:
    cluster = TwoBrokers()
    async with meeting(cluster) as peers:
        await peers.refresh(None)
        one, two = await peers.connection_to(1), await peers.connection_to(2)
        assert one.address == cluster.addresses[0]
        assert two.address == cluster.addresses[1]
        assert await peers.connection_to(1) is one
        assert [broker.connection_count() for broker in cluster.brokers] == [1, 1]


async def test_a_broker_outside_the_metadata_is_unavailable() -> None:
    async with meeting(TwoBrokers()) as peers:
        with pytest.raises(PeerUnavailable, match=r"broker 7 of 127.*: not in the cluster's"):
            await peers.connection_to(7)


async def test_a_bootstrap_address_that_is_dead_is_passed_over() -> None:
    cluster = TwoBrokers()
    async with meeting(cluster, Address("127.0.0.1", 1), Address("127.0.0.1", 2)) as peers:
        with pytest.raises(PeerUnavailable, match=r"cluster 127\.0\.0\.1:1,.*refused; .*refused"):
            await peers.refresh(None)
    async with serving(cluster.brokers[0]), serving(cluster.brokers[1]):
        for seed in range(5):
            dead_first = [Address("127.0.0.1", 1), cluster.addresses[0]]
            peers = PeerCluster(dead_first, random=Random(seed), settings=QUICK)
            await peers.refresh(None)
            await peers.close()


async def test_another_broker_is_asked_when_one_goes_away() -> None:
    cluster = TwoBrokers()
    async with serving(cluster.brokers[1]):
        async with serving(cluster.brokers[0]):
            peers = PeerCluster(cluster.addresses, random=Random(1), settings=QUICK)
            await peers.refresh(None)
            await peers.connection_to(1)
            await peers.connection_to(2)
        await eventually(lambda: cluster.brokers[0].connection_count() == 0)
        for _ in range(5):
            await peers.refresh(None)
        assert (await peers.connection_to(2)).is_open
        with pytest.raises(PeerUnavailable, match="refused"):
            await peers.connection_to(1)
        await peers.close()


async def test_a_broker_that_owes_an_answer_is_not_asked_more_while_others_are_open() -> None:
    async with meeting(TwoBrokers()) as peers:
        await peers.refresh(None)
        hanging, other = await peers.connection_to(1), await peers.connection_to(2)
        call = hanging.call(METADATA, MetadataRequest(topics=None), timeout_s=60)
        waiting = asyncio.create_task(call)
        await asyncio.sleep(0)
        assert hanging.in_flight_count == 1
        for _ in range(10):
            assert await peers.any_connection() is other
        await waiting


@pytest.mark.parametrize("version", [0, 1, 3, 4, 6])
async def test_the_coordinator_is_found_in_old_and_new_forms(version: int) -> None:
    async with meeting(TwoBrokers(coordinator=version)) as peers:
        found = await peers.coordinators_of(["a group", "homeless", "lost"])
        assert found["a group"] == 2
        assert (await peers.connection_to(2)).is_open
        homeless = found["homeless"]
        assert isinstance(homeless, ApiError)
        assert homeless.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert "homeless: COORDINATOR_NOT_AVAILABLE" in homeless.why
        if version >= 4:
            assert "lost: not in the answer" in str(found["lost"])


async def test_of_many_groups_the_coordinators_are_asked_in_a_few_requests() -> None:
    cluster = TwoBrokers(coordinator=4)
    async with meeting(cluster) as peers:
        names = [f"group {number}" for number in range(2 * GROUPS_AT_ONCE_MAX + 1)]
        found = await peers.coordinators_of(names)
        assert set(found.values()) == {2}
        assert list(found) == names
        assert cluster.asked_for_coordinators == 3
        assert await peers.coordinators_of([]) == {}


async def test_an_error_of_the_whole_answer_is_raised_also_one_we_do_not_know() -> None:
    cluster = TwoBrokers()
    async with meeting(cluster) as peers:
        cluster.error_code = 129
        with pytest.raises(ApiError, match="Metadata: REBOOTSTRAP_REQUIRED"):
            await peers.refresh(None)
        cluster.error_code = 9999
        with pytest.raises(ApiError, match="Metadata: error 9999") as failure:
            await peers.refresh(None)
        assert failure.value.code == ErrorCode.UNKNOWN_SERVER_ERROR
