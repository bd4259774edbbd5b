"""Ranges and choices of settings: a rule, and the words in which it is told."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Check:
    """A rule that a value keeps; ``words`` go on after "must be a whole number" and its like."""

    words: str
    accepts: Callable[[Any], bool]


ANY: Final = Check("", lambda value: True)
NOT_EMPTY: Final = Check("not empty", lambda value: len(value) > 0)


def at_least(least: float) -> Check:
    """Accept numbers from ``least`` on."""
    return Check(f"at least {least}", lambda value: bool(value >= least))


def between(least: float, most: float) -> Check:
    """Accept numbers from ``least`` to ``most``, both included."""
    return Check(f"between {least} and {most}", lambda value: bool(least <= value <= most))


def one_of(*words: str) -> Check:
    """Accept one of some words."""
    return Check(f"one of {', '.join(words)}", lambda value: value in words)


def some_of(*words: str) -> Check:
    """Accept a list of some of these words, or of none."""
    return Check(f"any or none of {', '.join(words)}", lambda value: set(value) <= {*words})


def _all_compile(patterns: tuple[str, ...]) -> bool:
    try:
        for pattern in patterns:
            re.compile(pattern)
    except re.error:
        return False
    return True


PATTERNS: Final = Check("each a regular expression", _all_compile)


def _is_throttled_replicas(entries: tuple[str, ...]) -> bool:
    return entries == ("*",) or all(re.fullmatch(r"\d+:\d+", entry) for entry in entries)


THROTTLED_REPLICAS: Final = Check("each partition:broker, or a single *", _is_throttled_replicas)


def _is_endpoint(text: str) -> bool:
    host, _, port = text.rpartition(":")
    return bool(host) and port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16


ENDPOINTS: Final = Check(
    "at least one, each host:port", lambda value: bool(value) and all(map(_is_endpoint, value))
)
