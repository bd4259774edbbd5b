"""Waits for what another process does, with a deadline and a message that says what was missing."""

import time
from collections.abc import Callable


def wait_until(
    condition: Callable[[], bool], what: str | Callable[[], str], *, timeout_s: float = 90.0
) -> None:
    """Return when the condition holds; fail with what it was if that takes too long.

    The last look begins behind the deadline: a machine that stood still is no reason to fail.
    """
    deadline = time.monotonic() + timeout_s
    is_last = False
    while not condition():
        if is_last:
            text = what if isinstance(what, str) else what()
            raise AssertionError(f"after {timeout_s} s still not so: {text}")
        time.sleep(0.05)
        is_last = time.monotonic() > deadline
