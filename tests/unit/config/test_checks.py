"""Ranges and choices accept what they say."""

from typing import Any

import pytest

from twinlog.config.checks import (
    ANY,
    ENDPOINTS,
    NOT_EMPTY,
    PATTERNS,
    THROTTLED_REPLICAS,
    Check,
    at_least,
    between,
    one_of,
    some_of,
)


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (at_least(1), (1, 99), (0, -1)),
        (between(0, 1), (0, 0.5, 1), (-0.1, 1.1)),
        (one_of("a", "b"), ("a", "b"), ("c", "")),
        (some_of("a", "b"), (("a",), ("a", "b"), ()), (("c",), ("a", "c"))),
        (NOT_EMPTY, ("x", ("y",)), ("", ())),
        (PATTERNS, ((), ("a.*", "b+")), (("(",), ("ok", "*"))),
        (THROTTLED_REPLICAS, ((), ("*",), ("0:1", "12:3")), (("*", "0:1"), ("0",), ("a:b",))),
        (ENDPOINTS, (("h:1", "[::1]:9092"),), ((), ("h",), ("h:0",), ("h:65536",), (":9",))),
    ],
    ids=lambda value: value.words if isinstance(value, Check) else "",
)
def test_a_check_accepts_what_its_words_say(
    check: Check, good: tuple[Any, ...], bad: tuple[Any, ...]
) -> None:
    assert check.words
    assert [value for value in good if not check.accepts(value)] == []
    assert [value for value in bad if check.accepts(value)] == []


def test_anything_goes_without_a_word() -> None:
    assert ANY.accepts(object())
    assert ANY.words == ""
