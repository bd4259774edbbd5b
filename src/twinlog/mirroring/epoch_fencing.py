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


def is_too_near(source_epoch: LeaderEpoch, own_epoch: LeaderEpoch) -> bool:
    """Tell whether our epoch should be raised already, though it need not be yet."""
    return source_epoch > own_epoch - MARGIN


def must_wait(source_epoch: LeaderEpoch, own_epoch: LeaderEpoch) -> bool:
    """Tell whether nothing of ``source_epoch`` may be written yet."""
    return source_epoch > own_epoch


def raised_epoch(source_epoch: LeaderEpoch) -> LeaderEpoch:
    """Give the epoch to raise ours to, at least."""
    return LeaderEpoch(source_epoch + LEAD)
