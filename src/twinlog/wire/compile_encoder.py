"""Writes the encoder of a message in one version as one flat Python function.

Values of fixed width wait in ``run`` until one of varying length comes; the run and that one's
length then go out by one ``struct`` call. Record batches are put in whole, and their places marked.
"""

import struct
from collections.abc import Callable
from typing import Any, Final

from twinlog.wire.primitives import encode_uvarint
from twinlog.wire.schema import Field, FieldType
from twinlog.wire.source import FIXED, ROW_MAX, Rows, Source

Encoder = Callable[[Any, list[Any], list[int]], None]
"""Puts a message's bytes into a list, and the places of record batches in it into another."""

_SMALL: Final = tuple(bytes((value,)) for value in range(128))


def compile_encoder(cls: type[Any], version: int, *, flexible: bool) -> Encoder:
    """Give the encoder of ``cls`` in ``version``."""
    source = _EncoderSource(version, flexible=flexible)
    source.message(cls, "m")
    source.flush()
    lines = ["def encode(m, out, marks):", "    add = out.append", *source.lines]
    return source.compiled("encode", lines, f"encode {cls.__name__} v{version}")


class _EncoderSource(Source):
    """Writes the lines; ``out`` names the list that they put bytes in."""

    def __init__(self, version: int, *, flexible: bool) -> None:
        super().__init__(version, flexible=flexible)
        self.run: list[tuple[str, str]] = []
        self.out = "out"
        self.names |= {"uvarint": encode_uvarint, "small": _SMALL, "pack": struct.pack}

    def put(self, expression: str) -> None:
        self.line(f"{'add' if self.out == 'out' else self.out + '.append'}({expression})")

    def flush(self) -> None:
        if self.run:
            self.put(self.packed(self.run))
            self.run = []

    def packed(self, run: list[tuple[str, str]]) -> str:
        """Give the expression that packs ``run``; it is a constant when all its values are."""
        layout = struct.Struct(">" + "".join(format_ for format_, _ in run))
        if all(value.lstrip("-").isdigit() for _, value in run):
            return repr(layout.pack(*(int(value) for _, value in run)))
        return f"{self.constant('pack', layout.pack)}({', '.join(value for _, value in run)})"

    def message(self, cls: type[Any], value: str) -> None:
        plain, tagged = self.split(cls)
        for field in plain:
            self.value(field.type_in(self.version), f"{value}.{field.name}")
        if tagged:
            self.tags(tagged, value)
        elif self.flexible:
            self.run.append(("B", "0"))

    def tags(self, tagged: list[Field], value: str) -> None:
        """Write the tagged fields that differ from their defaults; mostly none does."""
        self.flush()
        defaults = {field.name: self.constant("default", field.default) for field in tagged}
        same = " and ".join(f"{value}.{name} is {default}" for name, default in defaults.items())
        self.block(f"if {same}:")
        self.put(repr(b"\x00"))
        self.depth -= 1
        self.block("else:")
        outer, found = self.out, self.fresh("tags")
        self.line(f"{found} = []")
        for field in tagged:
            assert field.type.kind != "records", f"{field.name}: records in a tagged field"
            self.block(f"if {value}.{field.name} != {defaults[field.name]}:")
            self.out = self.fresh("sub")
            self.line(f"{self.out} = []")
            self.value(field.type_in(self.version), f"{value}.{field.name}")
            self.flush()
            self.line(f"{self.out} = b''.join({self.out})")
            self.line(f"{found} += uvarint({field.tag}), uvarint(len({self.out})), {self.out}")
            self.depth -= 1
        self.out = outer
        self.put(f"uvarint(len({found}) // 3)")
        self.line(f"{self.out}.extend({found})")
        self.depth -= 1

    def value(self, type_: FieldType, expression: str) -> None:
        if type_.kind in FIXED:
            self.run.append((FIXED[type_.kind], expression))
        elif type_.kind == "uuid":
            self.run.append(("16s", f"{expression}.bytes"))
        elif type_.kind == "message" and not type_.nullable:
            assert type_.message is not None
            self.message(type_.message, expression)
        else:
            self.variable(type_, expression)

    def variable(self, type_: FieldType, expression: str) -> None:
        """Write a value whose length varies or which may be null."""
        value = self.fresh("v")
        self.line(f"{value} = {expression}")
        if not type_.nullable:
            self.present(type_, value)
            return
        waiting = self.run
        self.block(f"if {value} is None:")
        self.run = [*waiting, self.null(type_)]
        self.flush()
        self.depth -= 1
        self.block("else:")
        self.run = [*waiting]
        self.present(type_, value)
        self.flush()
        self.depth -= 1

    def null(self, type_: FieldType) -> tuple[str, str]:
        if type_.kind == "message":
            return ("b", "-1")
        if self.flexible:
            return ("B", "0")
        return ("h" if type_.kind == "str" else "i", "-1")

    def present(self, type_: FieldType, value: str) -> None:
        if type_.kind == "message":
            assert type_.message is not None
            self.run.append(("b", "1"))
            self.message(type_.message, value)
        elif type_.kind == "array":
            self.array(type_, value)
        else:
            if type_.kind == "str":
                self.line(f"{value} = {value}.encode()")
            self.length("h" if type_.kind == "str" else "i", value)
            if type_.kind == "records":
                assert self.out == "out", "records in a tagged field"
                self.line("marks.append(len(out))")
            self.put(value)

    def array(self, type_: FieldType, value: str) -> None:
        assert type_.item is not None
        if type_.item.kind in FIXED and not type_.item.nullable:
            self.row(FIXED[type_.item.kind], value)
            return
        self.length("i", value)
        item = self.fresh("item")
        self.block(f"for {item} in {value}:")
        before = len(self.lines)
        self.value(type_.item, item)
        self.flush()
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1

    def row(self, format_: str, value: str) -> None:
        """Write an array of fixed-width items; a short one goes out with the run by one call."""
        count = self.fresh("n")
        length, written = ("B", f"{count} + 1") if self.flexible else ("i", count)
        prefix = "".join(format_ for format_, _ in self.run) + length
        rows = self.constant("rows", Rows("pack", prefix, format_))
        arguments = ", ".join([*(value for _, value in self.run), written, f"*{value}"])
        self.line(f"{count} = len({value})")
        self.block(f"if {count} < {ROW_MAX}:")
        self.put(f"{rows}[{count}]({arguments})")
        self.depth -= 1
        self.block("else:")
        self.length("i", value)
        self.put(f"pack(f'>{{{count}}}{format_}', *{value})")
        self.depth -= 1

    def length(self, format_: str, value: str) -> None:
        """Write the run with the length of ``value`` behind it."""
        if not self.flexible:
            self.run.append((format_, f"len({value})"))
            self.flush()
            return
        count = self.fresh("n")
        self.line(f"{count} = len({value}) + 1")
        if not self.run:
            self.put(f"small[{count}] if {count} < 128 else uvarint({count})")
            return
        waiting, self.run = self.run, []
        self.block(f"if {count} < 128:")
        self.put(self.packed([*waiting, ("B", count)]))
        self.depth -= 1
        self.block("else:")
        self.put(f"{self.packed(waiting)} + uvarint({count})")
        self.depth -= 1
