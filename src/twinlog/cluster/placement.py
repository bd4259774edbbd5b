"""Which brokers get the replicas of new partitions."""

from collections.abc import Mapping
from itertools import zip_longest

from twinlog.cluster.facts import BrokerFact
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import BrokerId


def place(
    brokers: Mapping[BrokerId, BrokerFact],
    *,
    partition_count: int,
    replication_factor: int,
    first: int,
) -> tuple[tuple[BrokerId, ...], ...]:
    """Give each partition its replicas, leader first. Raises ApiError INVALID_REPLICATION_FACTOR.

    Leaders go round the brokers, beginning with the ``first``-th (a random number; partitions that
    are added later pass on by the count of those there are). A partition's replicas are neighbours
    in an order in which neighbours are of different racks, as far as there are any.
    """
    if replication_factor > len(brokers):
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The target replication factor of {replication_factor} cannot be reached because "
            f"only {len(brokers)} broker(s) are registered.",
        )
    ring = _alternating_by_rack(brokers)
    return tuple(
        tuple(ring[(first + index + copy) % len(ring)] for copy in range(replication_factor))
        for index in range(partition_count)
    )


def _alternating_by_rack(brokers: Mapping[BrokerId, BrokerFact]) -> list[BrokerId]:
    """Give the brokers so that neighbours are of different racks for as long as racks last."""
    by_rack: dict[str, list[BrokerId]] = {}
    for broker in sorted(brokers.values(), key=lambda broker: broker.id):
        by_rack.setdefault(broker.rack or "", []).append(broker.id)
    rounds = zip_longest(*(by_rack[rack] for rack in sorted(by_rack)))
    return [broker for one_of_each in rounds for broker in one_of_each if broker is not None]
