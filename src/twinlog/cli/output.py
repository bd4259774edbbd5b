"""One table and one JSON writer for every verb."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TextIO
from uuid import UUID

CUT: Final = "..."


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading and width in characters; only names are cut to it."""

    heading: str
    width: int = 0
    is_name: bool = False


def cut_left(text: str, width: int) -> str:
    """Shorten ``text`` to ``width`` characters; its end, which tells names apart, stays."""
    if len(text) <= width:
        return text
    return CUT + text[len(text) - width + len(CUT) :]


def cut_right(text: str, width: int) -> str:
    """Shorten ``text`` to ``width`` characters; its beginning stays."""
    return text if len(text) <= width else text[: width - len(CUT)] + CUT


def write_table(columns: Sequence[Column], rows: Sequence[Sequence[object]], out: TextIO) -> None:
    """Write a heading and rows; None is ``-``, a name that is too long is cut on the left."""
    out.write(_line(columns, [column.heading for column in columns]))
    for row in rows:
        out.write(_line(columns, ["-" if cell is None else str(cell) for cell in row]))


def fitted(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> list[Column]:
    """Give columns as wide as their longest cell."""
    widths = [len(heading) for heading in headings]
    for row in rows:
        for index, cell in enumerate(row):
            widths[index] = max(widths[index], len("-" if cell is None else str(cell)))
    return [Column(heading, width) for heading, width in zip(headings, widths, strict=True)]


def write_json(value: Sequence[Mapping[str, Any]] | Mapping[str, Any], out: TextIO) -> None:
    """Write one JSON document and a line end."""
    json.dump(value, out, ensure_ascii=False, indent=2)
    out.write("\n")


def base64_of(topic_id: UUID) -> str:
    """Give a topic's id as Kafka prints it."""
    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def _line(columns: Sequence[Column], cells: Sequence[str]) -> str:
    padded = (
        (cut_left(cell, column.width) if column.is_name else cell).ljust(column.width)
        for column, cell in zip(columns, cells, strict=True)
    )
    return " ".join(padded).rstrip() + "\n"
