"""How fast the throttled partitions of all mirrors may fetch together on one broker.

A bucket that fills at the rate and holds what comes in one second. What is fetched is taken out
afterwards, even where there is less: then nothing more is fetched until the debt is paid. So over
any time the rate is kept to within one second of it and the answers that were under way.
"""

from typing import Final

from twinlog.config.kinds import LONG_MAX

UNLIMITED: Final = LONG_MAX
FOREVER_MS: Final = 3_600_000
"""How long it is waited at a rate of 0, unless the rate changes."""


class Throttle:
    """One broker's rate, in bytes a second, and what is left of it; times are monotonic ms."""

    __slots__ = ("_at_ms", "_left_bytes", "_rate")

    def __init__(self, rate: int = UNLIMITED, now_ms: int = 0) -> None:
        self._rate = rate
        self._left_bytes: float = rate
        self._at_ms = now_ms

    @property
    def rate(self) -> int:
        """Bytes a second."""
        return self._rate

    @property
    def is_unlimited(self) -> bool:
        """Whether there is nothing to keep."""
        return self._rate >= UNLIMITED

    def set_rate(self, rate: int, now_ms: int) -> bool:
        """Keep another rate from now on; tell whether it is another.

        A debt stays, and is paid at the new rate; only where there was no limit is none owed.
        """
        if rate == self._rate:
            return False
        if self.is_unlimited:
            self._left_bytes = rate
        else:
            self._fill(now_ms)
        self._rate, self._at_ms = rate, now_ms
        self._left_bytes = min(self._left_bytes, rate)
        return True

    def record(self, byte_count: int, now_ms: int) -> None:
        """Take out what was fetched."""
        if not self.is_unlimited:
            self._fill(now_ms)
            self._left_bytes -= byte_count

    def wait_ms(self, now_ms: int) -> int:
        """Give how long nothing more may be fetched; 0 when it may."""
        if self.is_unlimited:
            return 0
        self._fill(now_ms)
        if self._left_bytes >= 1:
            return 0
        if self._rate == 0:
            return FOREVER_MS
        return min(FOREVER_MS, 1 + int((1 - self._left_bytes) * 1_000 / self._rate))

    def _fill(self, now_ms: int) -> None:
        more = (now_ms - self._at_ms) * self._rate / 1_000
        self._left_bytes = min(self._rate, self._left_bytes + more)
        self._at_ms = now_ms


def is_throttled(replicas: tuple[str, ...], partition: int, broker_id: int) -> bool:
    """Tell whether ``mirror.replication.throttled.replicas`` names a partition of this broker."""
    return replicas == ("*",) or f"{partition}:{broker_id}" in replicas
