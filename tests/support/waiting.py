"""Waits for what another process does, with a deadline and a message that says what was missing."""

import time
from collections.abc import Callable


def wait_until(
    condition: Callable[[], bool], what: str | Callable[[], str], *, timeout_s: float = 30.0
) -> None:
    """Return when the condition holds; fail with what it was if that takes too long."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            text = what if isinstance(what, str) else what()
            raise AssertionError(f"after {timeout_s} s still not so: {text}")
        time.sleep(0.05)
