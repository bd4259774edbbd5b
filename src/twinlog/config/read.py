"""Reads ``.properties`` text into checked settings, with errors that name the line and the fix."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from twinlog.config.declare import Given, Settings, SettingSet, Source
from twinlog.model.errors import SettingsError

_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANKS: Final = " \t\f"


@dataclass(frozen=True, slots=True)
class Property:
    """One key and its value, and the line (from 1) on which they begin."""

    key: str
    value: str
    line: int


def properties(text: str) -> list[Property]:
    """Give the entries of a Java properties file, in order, comments and blank lines left out.

    Keys end at ``=``, ``:`` or a blank; a backslash at a line's end goes on with the next line.
    """
    return [_property(line, number) for number, line in _logical_lines(text)]


def read_settings(
    declared: SettingSet,
    text: str,
    *,
    file_name: str,
    overrides: Iterable[str] = (),
    source: Source = Source.STATIC_BROKER,
) -> Settings:
    """Give the settings that ``text`` of ``file_name`` and overrides (``key=value``) make.

    Overrides win. Raises SettingsError that names file, line, key, value and the fix.
    """
    given = {
        entry.key: Given(entry.value, f"{file_name} line {entry.line}")
        for entry in properties(text)
    }
    for key, value in read_overrides(overrides).items():
        given[key] = Given(value, f"--override {key}")
    return Settings(declared, {source: given})


def read_overrides(overrides: Iterable[str]) -> Mapping[str, str]:
    """Give ``key=value`` texts as a mapping; SettingsError for a text without a key or ``=``."""
    found: dict[str, str] = {}
    for text in overrides:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise SettingsError(f"{text!r} is not key=value: write, for example, num.partitions=4")
        found[key.strip()] = value.strip()
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Give each entry as one line, with the number of its first line."""
    kept, first = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.lstrip(_BLANKS)
        if not kept:
            if not line or line[0] in "#!":
                continue
            first = number
        if _goes_on(line):
            kept += line[:-1]
            continue
        yield first, kept + line
        kept = ""
    if kept:
        yield first, kept


def _goes_on(line: str) -> bool:
    """Tell whether a line ends in an odd number of backslashes."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _property(line: str, number: int) -> Property:
    end = _key_end(line)
    rest = line[end:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return Property(_unescape(line[:end], number), _unescape(rest, number), number)


def _key_end(line: str) -> int:
    position = 0
    while position < len(line) and line[position] not in "=:" + _BLANKS:
        position += 2 if line[position] == "\\" else 1
    return min(position, len(line))


def _unescape(text: str, number: int) -> str:
    if "\\" not in text:
        return text
    out, position = [], 0
    while position < len(text):
        if text[position] != "\\" or position + 1 == len(text):
            out.append(text[position])
            position += 1
            continue
        mark = text[position + 1]
        position += 2
        if mark == "u":
            out.append(_unicode(text[position : position + 4], number))
            position += 4
        else:
            out.append(_ESCAPES.get(mark, mark))
    return "".join(out)


def _unicode(digits: str, number: int) -> str:
    try:
        return chr(int(digits, 16))
    except ValueError:
        raise SettingsError(
            f"line {number}: \\u{digits} is not a character: write four hexadecimal digits"
        ) from None
