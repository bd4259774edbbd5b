"""Which partitions go into the next fetch from one source broker, and in which order."""

from typing import Final

from twinlog.mirroring.effects import FetchFrom
from twinlog.model.ids import TopicPartition

PARTITIONS_PER_FETCH_MAX: Final = 10_000


class FetchPlan:
    """The standing fetch orders of one fetcher.

    A source fills its answer in the order of the request and may end it early, so a partition that
    gave records goes behind those that did not: every partition comes to stand first.
    """

    __slots__ = ("_orders",)

    def __init__(self) -> None:
        self._orders: dict[TopicPartition, FetchFrom] = {}

    def __len__(self) -> int:
        """Give how many partitions are fetched."""
        return len(self._orders)

    def put(self, of: TopicPartition, order: FetchFrom) -> None:
        """Fetch a partition as ``order`` says from now on; it keeps its place if it has one."""
        self._orders[of] = order

    def drop(self, of: TopicPartition) -> None:
        """Fetch a partition no more."""
        self._orders.pop(of, None)

    def is_current(self, of: TopicPartition, order: FetchFrom) -> bool:
        """Tell whether ``order`` still stands, unchanged."""
        return self._orders.get(of) is order

    def next(self, limit: int = PARTITIONS_PER_FETCH_MAX) -> list[tuple[TopicPartition, FetchFrom]]:
        """Give the orders for the next request, the first in turn first."""
        if len(self._orders) <= limit:
            return list(self._orders.items())
        chosen = [item for item, _ in zip(self._orders.items(), range(limit), strict=False)]
        for of, _ in chosen:
            self.move_back(of)
        return chosen

    def move_back(self, of: TopicPartition) -> None:
        """Let a partition stand last in the next request."""
        order = self._orders.pop(of, None)
        if order is not None:
            self._orders[of] = order
