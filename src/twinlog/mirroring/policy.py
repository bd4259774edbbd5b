"""What an operator has decided for the partitions of a mirror: gaps, unclean elections, retries."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from twinlog.config.mirror_start import EARLIEST, EARLIEST_TIMESTAMP

BACKOFF_MS_MIN = 10


class GapPolicy(Enum):
    """What to do when the source no longer has the records that come next here."""

    CONTINUE = "continue"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class StartSpec:
    """Where a partition that is mirrored from scratch begins, as the operator wrote it.

    ``timestamp_ms`` is what ListOffsets is asked for: a time, or its numbers for both ends.
    """

    words: str
    timestamp_ms: int


FROM_EARLIEST: Final = StartSpec(EARLIEST, EARLIEST_TIMESTAMP)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff with full jitter; after ``attempts_max`` an operator must act."""

    backoff_ms_min: int = 100
    backoff_ms_max: int = 300_000
    attempts_max: int = 20

    def delay_ms(self, attempt: int, chance: float) -> int:
        """Give the wait before attempt ``attempt`` (1 is the first); ``chance`` is in [0, 1)."""
        # The exponent is bounded so that the power stays a small number.
        ceiling = min(self.backoff_ms_max, self.backoff_ms_min << min(max(attempt, 1) - 1, 40))
        return max(BACKOFF_MS_MIN, int(chance * ceiling))


@dataclass(frozen=True, slots=True)
class MirrorPolicy:
    """The decisions that a partition's machine follows.

    ``failed`` governs the retries of FAILED partitions; ``source`` those after answers that Kafka
    calls retriable, which leave the state as it is and go on for ever.
    """

    gap: GapPolicy = GapPolicy.CONTINUE
    supports_unclean_election: bool = False
    start: StartSpec = FROM_EARLIEST
    failed: RetryPolicy = RetryPolicy()
    source: RetryPolicy = RetryPolicy(backoff_ms_min=100, backoff_ms_max=10_000)
