"""Runs callbacks in time order; the same seed always gives the same run."""

import heapq
from collections import Counter, deque
from collections.abc import Callable
from random import Random

TOLD_MAX = 120
SCALES = (0, 1, 1, 4)
OFTEN = 8


class Schedule:
    """Time, chance and what was told; ``faults`` counts what went wrong by its name."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now_ms = 0
        self.faults_on = True
        self.faults: Counter[str] = Counter()
        self.steps = 0
        self.told: deque[object] = deque(maxlen=TOLD_MAX)
        self._scales: dict[str, float] = {}
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Run something later; what is due at the same time runs in the order it was asked for."""
        self._count += 1
        heapq.heappush(self._due, (self.now_ms + delay_ms, self._count, action))

    def soon(self, action: Callable[[], None], at_most_ms: int = 10) -> None:
        """Run something after a short while."""
        self.after(self.random.randint(0, at_most_ms), action)

    def step(self) -> None:
        """Run what is due next."""
        at_ms, _, action = heapq.heappop(self._due)
        self.now_ms = max(self.now_ms, at_ms)
        self.steps += 1
        action()

    def run_until(
        self, is_done: Callable[[], bool], describe: Callable[[], str], *, steps_max: int
    ) -> None:
        """Go on until something holds; it must, within so many steps."""
        for _ in range(steps_max):
            if is_done():
                return
            if not self._due:
                raise AssertionError(f"nothing will ever happen: {describe()}\n{self.tell()}")
            self.step()
        raise AssertionError(f"never done: {describe()}\n{self.tell()}")

    def fails(self, what: str, chance: float) -> bool:
        """Tell whether something goes wrong now; never once the faults have ended.

        Each run has faults of its own: some do not come at all, some come often.
        """
        if not self.faults_on:
            return False
        scale = self._scales.get(what)
        if scale is None:
            scale = self._scales[what] = self.random.choice(SCALES)
        if self.random.random() >= chance * scale:
            return False
        self.faults[what] += 1
        return True

    def let_fail_often(self, what: str) -> None:
        """Let something go wrong very often in this run."""
        self._scales[what] = OFTEN

    def tell(self) -> str:
        """Give the last of what happened, a line each."""
        return "\n".join(str(line)[:220] for line in self.told)
