"""The rule that our leader epoch never falls below the source's.

KIP-1279, "Leader Epoch Invariant": batches keep the source's epochs, so a consumer that meets an
epoch above the one our metadata shows would refetch metadata for ever. Our epoch is therefore
raised before such a batch is written, and ahead of need, so that fetching seldom has to wait.
"""

from typing import Final

from twinlog.model.ids import LeaderEpoch

MARGIN: Final = 3
"""How near the source's epoch may come to ours before ours is raised."""
LEAD: Final = 10
"""How far above the source's epoch ours is raised."""
LEAP_MAX: Final = 10_000
"""How far a stop may leap; an epoch, of 31 bits, lasts for 400,000 stops."""


def is_too_near(source_epoch: LeaderEpoch, own_epoch: LeaderEpoch) -> bool:
    """Tell whether our epoch should be raised already, though it need not be yet."""
    return source_epoch > own_epoch - MARGIN


def must_wait(source_epoch: LeaderEpoch, own_epoch: LeaderEpoch) -> bool:
    """Tell whether nothing of ``source_epoch`` may be written yet."""
    return source_epoch > own_epoch


def epoch_after_stop(latest: LeaderEpoch, chance: float) -> LeaderEpoch:
    """Give the first epoch for what is written here once a mirror is stopped.

    An epoch and an offset are all by which two logs are compared. Two copies of one source that
    both were stopped go on from the same epoch and offset with records of their own: in the very
    next epoch each, they would pass for one history where one is copied over the other. ``chance``
    in [0, 1) keeps them apart.
    """
    return LeaderEpoch(latest + 1 + int(chance * LEAP_MAX))


def raised_epoch(source_epoch: LeaderEpoch) -> LeaderEpoch:
    """Give the epoch to raise ours to, at least."""
    return LeaderEpoch(source_epoch + LEAD)
