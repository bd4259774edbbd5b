"""Keeps the leases of a store that lives in one process, and knows which keys end with them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from twinlog.metastore.store import LeaseGoneError, LeaseId

LEASES_MAX: Final = 10_000


@dataclass(slots=True)
class Lease:
    """A lease: how long it lives without a sign of life, when it ends, and what goes with it."""

    ttl_ms: int
    ends_at_ms: int
    keys: set[bytes] = field(default_factory=set)


class LeaseTable:
    """All leases; it removes no key itself but says which keys to remove."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        """Begin with no leases; ``now_ms`` is a clock that never goes back."""
        self._now_ms = now_ms
        self._leases: dict[LeaseId, Lease] = {}
        self._next_id = 1

    def grant(self, ttl_ms: int) -> LeaseId:
        """Give a new lease."""
        assert ttl_ms > 0, f"a lease of {ttl_ms} ms"
        assert len(self._leases) < LEASES_MAX, f"{LEASES_MAX} leases are held already"
        lease_id = LeaseId(self._next_id)
        self._next_id += 1
        self._leases[lease_id] = Lease(ttl_ms, self._now_ms() + ttl_ms)
        return lease_id

    def live(self, lease_id: LeaseId) -> Lease:
        """Give a lease that has not ended, or raise LeaseGoneError."""
        lease = self._leases.get(lease_id)
        if lease is None or lease.ends_at_ms <= self._now_ms():
            raise LeaseGoneError(f"lease {lease_id} has ended")
        return lease

    def keep_alive(self, lease_id: LeaseId) -> None:
        """Begin the lease's time anew."""
        lease = self.live(lease_id)
        lease.ends_at_ms = self._now_ms() + lease.ttl_ms

    def revoke(self, lease_id: LeaseId) -> set[bytes]:
        """End a lease; give the keys to remove."""
        lease = self._leases.pop(lease_id, None)
        return lease.keys if lease else set()

    def take_expired(self) -> set[bytes]:
        """End all leases whose time is over; give the keys to remove."""
        now_ms = self._now_ms()
        over = [lease_id for lease_id, lease in self._leases.items() if lease.ends_at_ms <= now_ms]
        keys: set[bytes] = set()
        for lease_id in over:
            keys |= self._leases.pop(lease_id).keys
        return keys

    def forget_key(self, key: bytes) -> None:
        """Take a key out of every lease: it was removed, or now belongs to nobody's lease."""
        for lease in self._leases.values():
            lease.keys.discard(key)

    def next_end_ms(self) -> int | None:
        """Give when the first lease ends if nobody keeps it alive."""
        return min((lease.ends_at_ms for lease in self._leases.values()), default=None)
