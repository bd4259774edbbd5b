"""A function in the making: the lines of its source, and the objects those lines refer to."""

import struct
from collections.abc import Callable
from typing import Any, Final

from twinlog.wire.schema import Field, FieldType, fields_of

FIXED: Final = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
}
"""The kinds whose values always take the same room, as ``struct`` calls them."""

ROW_MAX: Final = 127
"""Arrays of fixed-width items shorter than this are packed by a ``struct`` that is kept."""


class Source:
    """What the encoder's and the decoder's writer share."""

    def __init__(self, version: int, *, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.names: dict[str, Any] = {}
        self.lines: list[str] = []
        self.depth = 1
        self._count = 0

    def line(self, text: str) -> None:
        """Add a line at the current depth."""
        self.lines.append("    " * self.depth + text)

    def block(self, head: str) -> None:
        """Open an indented block; ``depth`` goes down again where it ends."""
        self.line(head)
        self.depth += 1

    def fresh(self, stem: str) -> str:
        """Give a name not used before."""
        self._count += 1
        return f"{stem}{self._count}"

    def constant(self, stem: str, value: Any) -> str:
        """Give a new name that stands for ``value``."""
        name = self.fresh(stem)
        self.names[name] = value
        return name

    def split(self, cls: type[Any]) -> tuple[list[Field], list[Field]]:
        """Give the plain and the tagged fields of this version; tags in rising order."""
        present = [f for f in fields_of(cls) if f.is_in(self.version)]
        tagged = [f for f in present if f.tag is not None]
        assert self.flexible or not tagged, f"{cls.__name__} v{self.version} has tags, no flexible"
        return [f for f in present if f.tag is None], sorted(tagged, key=lambda f: f.tag or 0)

    def compiled(self, name: str, lines: list[str], label: str) -> Callable[..., Any]:
        """Compile the function of this name that ``lines`` define."""
        exec(compile("\n".join(lines), f"<{label}>", "exec"), self.names)
        made: Callable[..., Any] = self.names[name]
        return made


class Rows(dict[int, Callable[..., Any]]):
    """Packers or unpackers for a run of fields with ``count`` items behind it, kept by count."""

    def __init__(self, method: str, prefix: str, item: str) -> None:
        super().__init__()
        self._method = method
        self._prefix = prefix
        self._item = item

    def __missing__(self, count: int) -> Callable[..., Any]:
        """Make the one for ``count``; the compiled code asks for small counts only."""
        assert count < ROW_MAX, f"a row of {count}"
        made: Callable[..., Any] = getattr(
            struct.Struct(f">{self._prefix}{count}{self._item}"), self._method
        )
        self[count] = made
        return made


def smallest_size(type_: FieldType, version: int, *, flexible: bool) -> int:
    """Give the fewest bytes a value can take: so many items at most fit in what is left."""
    if type_.kind in FIXED:
        return struct.calcsize(f">{FIXED[type_.kind]}")
    if type_.kind == "uuid":
        return 16
    if type_.kind == "message" and not type_.nullable:
        assert type_.message is not None
        plain = [f for f in fields_of(type_.message) if f.is_in(version) and f.tag is None]
        sizes = (smallest_size(f.type_in(version), version, flexible=flexible) for f in plain)
        return sum(sizes) + (1 if flexible else 0)
    if type_.kind == "message" or flexible:
        return 1
    return 2 if type_.kind == "str" else 4
