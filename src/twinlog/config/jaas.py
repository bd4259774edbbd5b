"""Reads ``sasl.jaas.config``: the login module and its options, in the text form that Kafka takes.

What is wrong is told without a word of the text, which holds a password.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
EXAMPLE: Final = f'{PLAIN_MODULE} required username="me" password="secret";'
FLAGS: Final = ("required", "requisite", "sufficient", "optional")

_TOKEN: Final = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<quote>["'])(?P<text>(?:\\.|(?!(?P=quote))[^\\])*)(?P=quote)
    |(?P<word>[\w.$-]+)
    |(?P<mark>[=;])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED: Final = re.compile(r"\\([0-3][0-7]{2}|[0-7]{1,2}|.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}


@dataclass(frozen=True, slots=True)
class JaasLogin:
    """The one login module of a text, and its options by name."""

    module: str
    options: Mapping[str, str] = field(repr=False)


def read_jaas(text: str) -> JaasLogin:
    """Give what ``text`` says; ValueError, with the form that is wanted, when it says nothing."""
    tokens = list(_tokens(text))
    words = [token for token, _ in tokens]
    if len(tokens) < 3 or words[1].lower() not in FLAGS:
        raise ValueError("it must begin with a login module and a flag such as required")
    if tokens[-1] != (";", True):
        raise ValueError("it must end with a semicolon")
    options: dict[str, str] = {}
    middle = tokens[2:-1]
    for at in range(0, len(middle), 3):
        part = middle[at : at + 3]
        if (";", True) in part:
            raise ValueError("it must have one login module only")
        if len(part) < 3 or part[1] != ("=", True) or part[0][1] or part[2][1]:
            raise ValueError('after the flag, options are written as name="value"')
        options[part[0][0]] = part[2][0]
    return JaasLogin(words[0], options)


def _tokens(text: str) -> Iterator[tuple[str, bool]]:
    """Give words, unquoted, and whether each is a mark of punctuation."""
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise ValueError("it has a quote without its end, or a sign that needs quotes")
        position = found.end()
        if found["quote"]:
            yield _ESCAPED.sub(_unescaped, found["text"]), False
        elif not found["blank"]:
            yield found[0], found["mark"] is not None


def _unescaped(found: re.Match[str]) -> str:
    mark = found[1]
    return chr(int(mark, 8)) if mark.isdigit() and mark < "8" else _ESCAPES.get(mark, mark)
