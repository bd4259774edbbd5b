"""The real clock behind every ``now_ms``, and the one place where chance comes from."""

import random
import time
import uuid
from dataclasses import dataclass, field


@dataclass(slots=True)
class Clock:
    """Wall time in ms for records, monotonic time in ms for deadlines, and random values."""

    _random: random.Random = field(default_factory=random.Random)

    def wall_ms(self) -> int:
        """Give the time of day, in ms since 1970, as records carry it."""
        return time.time_ns() // 1_000_000

    def now_ms(self) -> int:
        """Give a time that never goes back, in ms; only differences mean anything."""
        return time.monotonic_ns() // 1_000_000

    def fraction(self) -> float:
        """Give a random number from 0 (inclusive) to 1 (exclusive), for jitter."""
        return self._random.random()

    def uuid(self) -> uuid.UUID:
        """Give a fresh random id; ids that would print with a leading dash are passed over.

        Kafka's Uuid.randomUuid does the same, so that an id can be an argument on a command line.
        """
        while True:
            fresh = uuid.uuid4()
            if fresh.bytes[0] >> 2 != 62:  # 62 is '-' in URL-safe base64
                return fresh
