"""What a setting's value can be, and how Kafka writes each kind as text."""

from enum import IntEnum
from typing import Any, Final

INT_MAX: Final = (1 << 31) - 1
LONG_MAX: Final = (1 << 63) - 1
HIDDEN: Final = "[hidden]"


class Kind(IntEnum):
    """The kinds of values, with the numbers that DescribeConfigs gives them."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    PASSWORD = 9


WORDS: Final = {
    Kind.BOOLEAN: "true or false",
    Kind.STRING: "text",
    Kind.INT: "a whole number",
    Kind.SHORT: "a whole number",
    Kind.LONG: "a whole number",
    Kind.DOUBLE: "a number",
    Kind.LIST: "words with commas between them",
    Kind.PASSWORD: "a password",
}

_BITS: Final = {Kind.SHORT: 16, Kind.INT: 32, Kind.LONG: 64}


def parse(kind: Kind, text: str) -> Any:
    """Give the value that ``text`` stands for; ValueError when it stands for none."""
    trimmed = text.strip()
    match kind:
        case Kind.BOOLEAN:
            return _parse_boolean(trimmed)
        case Kind.INT | Kind.SHORT | Kind.LONG:
            return _parse_integer(kind, trimmed)
        case Kind.DOUBLE:
            return float(trimmed)
        case Kind.LIST:
            return tuple(word.strip() for word in trimmed.split(",") if word.strip())
        case Kind.STRING:
            return trimmed
        case Kind.PASSWORD:
            return text


def format_value(kind: Kind, value: Any) -> str | None:
    """Give ``value`` as Kafka writes it; None for what is not set, and for every password."""
    if value is None or kind is Kind.PASSWORD:
        return None
    match kind:
        case Kind.BOOLEAN:
            return "true" if value else "false"
        case Kind.LIST:
            return ",".join(value)
        case _:
            return str(value)


def _parse_boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise ValueError(text)
    return lowered == "true"


def _parse_integer(kind: Kind, text: str) -> int:
    if not text.lstrip("+-").isascii() or "_" in text:  # int() takes more than Java does
        raise ValueError(text)
    value = int(text)
    if not -(1 << (_BITS[kind] - 1)) <= value < 1 << (_BITS[kind] - 1):
        raise ValueError(f"{value} needs more than {_BITS[kind]} bits")
    return value
