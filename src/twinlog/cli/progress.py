"""A progress bar on a terminal, and nothing anywhere else."""

import time
from dataclasses import dataclass
from typing import Final, TextIO

WIDTH: Final = 30
REDRAW_MS: Final = 100
LINE_CHARS_MAX: Final = 100


def bar(done: int, total: int) -> str:
    """Draw ``done`` of ``total``; a total of 0 is all of it."""
    part = min(1.0, max(0.0, done / total)) if total > 0 else 1.0
    filled = int(part * WIDTH)
    # What is not all done never shows as 100 %.
    return f"[{'#' * filled}{'.' * (WIDTH - filled)}] {int(part * 100):3d}%"


@dataclass(slots=True)
class ProgressBar:
    """Redraws one line of ``out``; ``clear`` takes it away."""

    out: TextIO
    _drawn_at_ms: int = -REDRAW_MS
    _is_drawn: bool = False

    def show(self, done: int, total: int, text: str) -> None:
        """Draw, unless it was drawn a moment ago."""
        now_ms = time.monotonic_ns() // 1_000_000
        if not self.out.isatty() or now_ms - self._drawn_at_ms < REDRAW_MS:
            return
        self._drawn_at_ms, self._is_drawn = now_ms, True
        line = f"{bar(done, total)} {text}"[:LINE_CHARS_MAX]
        self.out.write(f"\r\x1b[K{line}")
        self.out.flush()

    def clear(self) -> None:
        """Take the bar away, so that what is told begins on an empty line."""
        if self._is_drawn:
            self.out.write("\r\x1b[K")
            self.out.flush()
            self._is_drawn = False
