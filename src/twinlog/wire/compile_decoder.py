"""Writes the decoder of a message in one version as one flat Python function.

A message is made bare and its fields are filled in as they are read, neighbouring fixed-width
ones and the length of what follows by one ``struct`` call. No length is believed: what it counts
must fit in the bytes that are left.
"""

import struct
from collections.abc import Callable
from typing import Any

from twinlog.model.errors import WireError
from twinlog.wire.primitives import decode_uvarint, uuid_of
from twinlog.wire.schema import Field, FieldType, fields_of
from twinlog.wire.source import FIXED, ROW_MAX, Rows, Source, smallest_size

Decoder = Callable[[Any, int, int], tuple[Any, int]]
"""Reads a message from a buffer between two positions; gives it and the position after it."""


def compile_decoder(cls: type[Any], version: int, *, flexible: bool) -> Decoder:
    """Give the decoder of ``cls`` in ``version``."""
    source = _DecoderSource(version, flexible=flexible)
    source.message(cls, "made")
    source.flush()
    lines = ["def decode(buf, pos, end):"]
    if source.has_records:
        lines.append("    view = memoryview(buf)")
    lines += [*source.lines, "    return made, pos"]
    return source.compiled("decode", lines, f"decode {cls.__name__} v{version}")


def _misfit(kind: str, length: int, position: int, end: int) -> WireError:
    """Tell of a length that cannot be, found before byte ``position``."""
    return WireError(f"{kind} of length {length} at byte {position} of {end}")


class _DecoderSource(Source):
    """Writes the lines; fields in ``run`` are not read yet."""

    def __init__(self, version: int, *, flexible: bool) -> None:
        super().__init__(version, flexible=flexible)
        self.run: list[tuple[str, str]] = []
        self.uuids: list[str] = []
        self.has_records = False
        self.names |= {
            "uvarint": decode_uvarint,
            "uuid_of": uuid_of,
            "misfit": _misfit,
            "new": object.__new__,
            "unpack": struct.unpack_from,
        }

    def flush(self) -> None:
        """Read what waits in ``run``."""
        if not self.run:
            return
        layout = struct.Struct(">" + "".join(format_ for format_, _ in self.run))
        targets = ", ".join(target for _, target in self.run)
        if [format_ for format_, _ in self.run] == ["B"]:
            self.line(f"{targets} = buf[pos]")
        else:
            self.line(f"{targets}, = {self.constant('unpack', layout.unpack_from)}(buf, pos)")
        self.line(f"pos += {layout.size}")
        self.run = []
        for target in self.uuids:
            self.line(f"{target} = uuid_of({target})")
        self.uuids = []

    def message(self, cls: type[Any], target: str) -> None:
        """Make a message, and fill in its fields."""
        plain, tagged = self.split(cls)
        self.line(f"{target} = new({self.constant('Kind', cls)})")
        for field in fields_of(cls):
            if field not in plain:
                default = self.constant("default", field.default)
                self.line(f"{target}.{field.name} = {default}")
        for field in plain:
            self.value(field.type_in(self.version), f"{target}.{field.name}")
        if self.flexible:
            self.tags(tagged, target)

    def tags(self, tagged: list[Field], target: str) -> None:
        """Read the tagged fields that are known, and step over the others."""
        count, number, size, stop = (self.fresh(s) for s in ("count", "number", "size", "stop"))
        self.run.append(("B", count))
        self.flush()
        self.block(f"if {count}:")
        self.line(f"if {count} >= 128: {count}, pos = uvarint(buf, pos - 1)")
        self.block(f"for _ in range({count}):")
        self.line(f"{number}, pos = uvarint(buf, pos)")
        self.line(f"{size}, pos = uvarint(buf, pos)")
        self.line(f"{stop} = pos + {size}")
        self.line(f"if {stop} > end: raise misfit('tagged field', {size}, pos, end)")
        for field in tagged:
            self.block(f"if {number} == {field.tag}:")
            self.value(field.type_in(self.version), f"{target}.{field.name}")
            self.flush()
            self.line(f"if pos != {stop}: raise misfit('tag {field.tag}', {size}, pos, end)")
            self.depth -= 1
        self.line(f"pos = {stop}")
        self.depth -= 2

    def value(self, type_: FieldType, target: str) -> None:
        """Read a value into ``target``, or let it wait in ``run``."""
        if type_.kind in FIXED:
            self.run.append((FIXED[type_.kind], target))
        elif type_.kind == "uuid":
            self.run.append(("16s", target))
            self.uuids.append(target)
        elif type_.kind != "message":
            self.variable(type_, target)
        elif type_.nullable:
            self.nullable_message(type_, target)
        else:
            self.plain_message(type_, target)

    def plain_message(self, type_: FieldType, target: str) -> None:
        assert type_.message is not None
        made = self.fresh("made") if "." in target else target
        self.message(type_.message, made)
        if made != target:
            self.line(f"{target} = {made}")

    def nullable_message(self, type_: FieldType, target: str) -> None:
        there = self.fresh("there")
        self.run.append(("b", there))
        self.flush()
        self.line(f"if {there} == -1: {target} = None")
        self.line(f"elif {there} != 1: raise misfit('message', {there}, pos, end)")
        self.block("else:")
        self.plain_message(type_, target)
        self.flush()
        self.depth -= 1

    def variable(self, type_: FieldType, target: str) -> None:
        """Read a length and as much as it says."""
        size, stop = self.fresh("n"), self.fresh("stop")
        null = self.null_value(type_)
        if self.flexible:
            self.run.append(("B", size))
            self.flush()
            self.line(f"if {size} >= 128: {size}, pos = uvarint(buf, pos - 1)")
            self.line(f"{size} -= 1")
        else:
            self.run.append(("h" if type_.kind == "str" else "i", size))
            self.flush()
        self.block(f"if {size} >= 0:")
        self.present(type_, target, size, stop)
        self.depth -= 1
        if not self.flexible:
            self.line(f"elif {size} != -1: raise misfit('{type_.kind}', {size}, pos, end)")
        self.line(f"else: {target} = {null}")

    def null_value(self, type_: FieldType) -> str:
        """Give what null reads as: None, or the type's zero where a peer may not send null.

        Old clients send a null array where the schema says it is not nullable; Kafka refuses
        them, we read nothing in it.
        """
        if type_.nullable:
            return "None"
        return {"str": "''", "bytes": "b''", "array": "()"}[type_.kind]

    def present(self, type_: FieldType, target: str, size: str, stop: str) -> None:
        if type_.kind == "array":
            self.array(type_, target, size, stop)
            return
        self.line(f"{stop} = pos + {size}")
        self.line(f"if {stop} > end: raise misfit('{type_.kind}', {size}, pos, end)")
        reading = {
            "str": f"str(buf[pos:{stop}], 'utf-8')",
            "bytes": f"bytes(buf[pos:{stop}])",
            "records": f"view[pos:{stop}]",
        }
        self.has_records |= type_.kind == "records"
        self.line(f"{target} = {reading[type_.kind]}")
        self.line(f"pos = {stop}")

    def array(self, type_: FieldType, target: str, size: str, stop: str) -> None:
        assert type_.item is not None
        item_bytes = smallest_size(type_.item, self.version, flexible=self.flexible)
        self.line(f"{stop} = pos + {size} * {max(item_bytes, 1)}")
        self.line(f"if {stop} > end: raise misfit('array', {size}, pos, end)")
        if type_.item.kind in FIXED:
            format_ = FIXED[type_.item.kind]
            rows = self.constant("rows", Rows("unpack_from", "", format_))
            self.line(f"if {size} < {ROW_MAX}: {target} = {rows}[{size}](buf, pos)")
            self.line(f"else: {target} = unpack(f'>{{{size}}}{format_}', buf, pos)")
            self.line(f"pos = {stop}")
            return
        items, item = self.fresh("items"), self.fresh("item")
        self.line(f"{items} = []")
        self.block(f"for _ in range({size}):")
        self.value(type_.item, item)
        self.flush()
        self.line(f"{items}.append({item})")
        self.depth -= 1
        self.line(f"{target} = tuple({items})")
