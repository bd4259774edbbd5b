import pytest

from twinlog.metastore.leases import LeaseTable
from twinlog.metastore.store import LeaseGoneError, LeaseId


class Clock:
    def __init__(self) -> None:
        self.now_ms = 0

    def __call__(self) -> int:
        return self.now_ms


def test_a_lease_ends_when_its_time_is_over() -> None:
    clock = Clock()
    leases = LeaseTable(clock)
    lease = leases.grant(100)
    leases.live(lease).keys.add(b"k")
    assert leases.next_end_ms() == 100
    clock.now_ms = 99
    assert leases.take_expired() == set()
    clock.now_ms = 100
    with pytest.raises(LeaseGoneError):
        leases.live(lease)
    assert leases.take_expired() == {b"k"}
    assert leases.next_end_ms() is None


def test_a_sign_of_life_begins_the_time_anew() -> None:
    clock = Clock()
    leases = LeaseTable(clock)
    lease = leases.grant(100)
    clock.now_ms = 60
    leases.keep_alive(lease)
    assert leases.next_end_ms() == 160


def test_a_revoked_lease_is_gone_and_revoking_it_again_is_no_error() -> None:
    leases = LeaseTable(Clock())
    lease = leases.grant(100)
    leases.live(lease).keys.add(b"k")
    assert leases.revoke(lease) == {b"k"}
    assert leases.revoke(lease) == set()
    assert leases.revoke(LeaseId(99)) == set()


def test_a_key_that_is_forgotten_does_not_end_with_the_lease() -> None:
    leases = LeaseTable(Clock())
    lease = leases.grant(100)
    leases.live(lease).keys.add(b"k")
    leases.forget_key(b"k")
    assert leases.revoke(lease) == set()
