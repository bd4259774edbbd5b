"""A declaration and a version become an encoder and a decoder, compiled once and kept.

Each is one flat Python function, made with ``exec``: arrays and nested messages are loops inside
it, neighbouring fixed-width fields share one ``struct``, and record batches are never copied: the
decoder gives a ``memoryview`` into the frame, the encoder a list of parts with the batches in it.

Unknown tagged fields are skipped. Everything else that does not fit is a WireError which names
the message, the version and the byte.
"""

import struct
from collections.abc import Callable
from typing import Any, Final, TypeVar

from twinlog.model.errors import WireError
from twinlog.wire.primitives import Buffer, Sized, decode_uvarint, encode_uvarint, uuid_of
from twinlog.wire.schema import Api, Field, FieldType, fields_of

T = TypeVar("T")
Parts = list[Buffer | Sized]

_FIXED: Final = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
}


def encode_request(api: Api[Any, Any], message: Any, version: int) -> Parts:
    """Give the body of a request as buffers in order; a field that ``version`` lacks is left out.

    Raises WireError when a value does not fit its field.
    """
    return encode_parts(message, version, flexible=api.is_flexible(version))


def encode_response(api: Api[Any, Any], message: Any, version: int) -> Parts:
    """Give the body of a response; as ``encode_request``."""
    return encode_parts(message, version, flexible=api.is_flexible(version))


def decode_request(api: Api[T, Any], frame: Buffer, version: int, position: int = 0) -> T:
    """Read the body of a request from ``position`` of ``frame`` to its end.

    Raises WireError when the bytes are not such a message or something follows it.
    """
    return decode_whole(api.request, frame, version, flexible=api.is_flexible(version), at=position)


def decode_response(api: Api[Any, T], frame: Buffer, version: int, position: int = 0) -> T:
    """Read the body of a response; as ``decode_request``."""
    return decode_whole(
        api.response, frame, version, flexible=api.is_flexible(version), at=position
    )


def encode_parts(message: Any, version: int, *, flexible: bool) -> Parts:
    """Give any message as buffers: small fields joined, record batches as they are."""
    out: list[Any] = []
    marks: list[int] = []
    try:
        encoder(type(message), version, flexible=flexible)(message, out, marks)
    except (struct.error, AttributeError, TypeError, ValueError) as error:
        name = type(message).__name__
        raise WireError(f"{name} v{version} cannot be encoded: {error}") from error
    if not marks:
        return [b"".join(out)]
    parts: Parts = []
    start = 0
    for mark in marks:
        parts.append(b"".join(out[start:mark]))
        parts.append(out[mark])
        start = mark + 1
    if start < len(out):
        parts.append(b"".join(out[start:]))
    return parts


def encode_bytes(message: Any, version: int, *, flexible: bool) -> bytes:
    """Give a message without file regions as one piece of bytes."""
    return b"".join(encode_parts(message, version, flexible=flexible))  # type: ignore[arg-type]


def decode_whole(cls: type[T], frame: Buffer, version: int, *, flexible: bool, at: int = 0) -> T:
    """Read one message that fills ``frame`` from byte ``at`` on."""
    message, end = decode_from(cls, frame, version, flexible=flexible, at=at)
    if end != len(frame):
        raise WireError(f"{cls.__name__} v{version} ends at byte {end} of {len(frame)}")
    return message


def decode_from(
    cls: type[T], frame: Buffer, version: int, *, flexible: bool, at: int = 0
) -> tuple[T, int]:
    """Read one message from byte ``at`` on; give it and the position after it."""
    try:
        message, end = decoder(cls, version, flexible=flexible)(frame, at, len(frame))
    except (struct.error, IndexError, ValueError, WireError) as error:
        name = f"{cls.__name__} v{version}"
        raise WireError(f"{name} of {len(frame)} bytes cannot be read: {error}") from error
    return message, end


Encoder = Callable[[Any, list[Any], list[int]], None]
Decoder = Callable[[Any, int, int], tuple[Any, int]]


_ENCODERS: Final[dict[tuple[type[Any], int, bool], Encoder]] = {}
_DECODERS: Final[dict[tuple[type[Any], int, bool], Decoder]] = {}


def encoder(cls: type[Any], version: int, *, flexible: bool) -> Encoder:
    """Give the encoder of ``cls`` in ``version``, compiled at the first call."""
    found = _ENCODERS.get((cls, version, flexible))
    if found is None:
        writer = _EncoderSource(version, flexible=flexible)
        source = writer.function(cls)
        exec(compile(source, f"<encode {cls.__name__} v{version}>", "exec"), writer.names)
        found = _ENCODERS[cls, version, flexible] = writer.names["encode"]
    return found


def decoder(cls: type[Any], version: int, *, flexible: bool) -> Decoder:
    """Give the decoder of ``cls`` in ``version``, compiled at the first call."""
    found = _DECODERS.get((cls, version, flexible))
    if found is None:
        writer = _DecoderSource(version, flexible=flexible)
        source = writer.function(cls)
        exec(compile(source, f"<decode {cls.__name__} v{version}>", "exec"), writer.names)
        found = _DECODERS[cls, version, flexible] = writer.names["decode"]
    return found


class _Source:
    """Lines of a function that is being written, and the names it refers to."""

    def __init__(self, version: int, *, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.names: dict[str, Any] = {}
        self.lines: list[str] = []
        self.depth = 1
        self._count = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def fresh(self, stem: str) -> str:
        self._count += 1
        return f"{stem}{self._count}"

    def constant(self, stem: str, value: Any) -> str:
        name = self.fresh(stem)
        self.names[name] = value
        return name

    def split(self, cls: type[Any]) -> tuple[list[Field], list[Field]]:
        """Give the plain and the tagged fields of this version; tags in rising order."""
        present = [f for f in fields_of(cls) if f.is_in(self.version)]
        tagged = [f for f in present if f.tag is not None]
        assert self.flexible or not tagged, f"{cls.__name__} v{self.version} has tags, no flexible"
        return [f for f in present if f.tag is None], sorted(tagged, key=lambda f: f.tag or 0)


class _EncoderSource(_Source):
    """Writes an encoder: fixed-width values wait in ``run`` until a variable one flushes them."""

    def __init__(self, version: int, *, flexible: bool) -> None:
        super().__init__(version, flexible=flexible)
        self.run: list[tuple[str, str]] = []
        self.names["uvarint"] = encode_uvarint
        self.out = "out"

    def function(self, cls: type[Any]) -> str:
        self.message(cls, "m")
        self.flush()
        body = "\n".join(self.lines) or "    pass"
        return f"def encode(m, out, marks):\n    add = out.append\n{body}\n"

    def add(self, expression: str) -> None:
        self.flush()
        self.line(f"{'add' if self.out == 'out' else self.out + '.append'}({expression})")

    def flush(self) -> None:
        if not self.run:
            return
        packer = self.constant("pack", struct.Struct(">" + "".join(f for f, _ in self.run)).pack)
        arguments = ", ".join(e for _, e in self.run)
        self.run = []
        self.line(f"{'add' if self.out == 'out' else self.out + '.append'}({packer}({arguments}))")

    def message(self, cls: type[Any], value: str) -> None:
        plain, tagged = self.split(cls)
        for field in plain:
            self.value(field.type_in(self.version), f"{value}.{field.name}")
        if self.flexible:
            self.tags(tagged, value)

    def tags(self, tagged: list[Field], value: str) -> None:
        if not tagged:
            self.run.append(("B", "0"))
            return
        self.flush()
        outer, found = self.out, self.fresh("tags")
        self.line(f"{found} = []")
        for field in tagged:
            default = self.constant("default", field.default)
            self.line(f"if {value}.{field.name} != {default}:")
            self.depth += 1
            self.out = self.fresh("sub")
            self.line(f"{self.out} = []")
            self.value(field.type_in(self.version), f"{value}.{field.name}")
            self.flush()
            self.line(f"{self.out} = b''.join({self.out})")
            self.line(f"{found} += uvarint({field.tag}), uvarint(len({self.out})), {self.out}")
            self.depth -= 1
        self.out = outer
        self.add(f"uvarint(len({found}) // 3)")
        self.line(f"{self.out}.extend({found})")

    def value(self, type_: FieldType, expression: str) -> None:
        if type_.kind in _FIXED:
            self.run.append((_FIXED[type_.kind], expression))
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
        self.flush()
        self.line(f"{value} = {expression}")
        if type_.nullable:
            self.line(f"if {value} is None:")
            self.depth += 1
            self.null(type_)
            self.depth -= 1
            self.line("else:")
            self.depth += 1
        self.present(type_, value)
        self.flush()
        if type_.nullable:
            self.depth -= 1

    def null(self, type_: FieldType) -> None:
        if type_.kind == "message":
            self.run.append(("b", "-1"))
        elif self.flexible:
            self.run.append(("B", "0"))
        else:
            self.run.append(("h" if type_.kind == "str" else "i", "-1"))
        self.flush()

    def present(self, type_: FieldType, value: str) -> None:
        if type_.kind == "message":
            assert type_.message is not None
            self.run.append(("b", "1"))
            self.message(type_.message, value)
            return
        if type_.kind == "str":
            self.line(f"{value} = {value}.encode()")
        self.length("h" if type_.kind == "str" else "i", value)
        if type_.kind == "array":
            assert type_.item is not None
            self.flush()
            item = self.fresh("item")
            self.line(f"for {item} in {value}:")
            self.depth += 1
            before = len(self.lines)
            self.value(type_.item, item)
            self.flush()
            if len(self.lines) == before:
                self.line("pass")
            self.depth -= 1
            return
        if type_.kind == "records":
            self.flush()
            self.line("marks.append(len(out))")
        self.add(value)

    def length(self, format_: str, value: str) -> None:
        if not self.flexible:
            self.run.append((format_, f"len({value})"))
            return
        count = self.fresh("n")
        self.flush()
        self.line(f"{count} = len({value}) + 1")
        small = self.constant("small", tuple(bytes((i,)) for i in range(128)))
        self.add(f"{small}[{count}] if {count} < 128 else uvarint({count})")


class _DecoderSource(_Source):
    """Writes a decoder: neighbouring fixed-width fields are read by one ``unpack_from``."""

    def __init__(self, version: int, *, flexible: bool) -> None:
        super().__init__(version, flexible=flexible)
        self.run: list[tuple[str, str]] = []
        self.uuids: list[str] = []
        self.names |= {"uvarint": decode_uvarint, "uuid_of": uuid_of, "WireError": WireError}
        for name in ("h", "i"):
            self.names[f"read_{name}"] = struct.Struct(f">{name}").unpack_from

    def function(self, cls: type[Any]) -> str:
        target = self.message(cls)
        self.flush()
        body = "\n".join(self.lines)
        return f"def decode(buf, pos, end):\n{body}\n    return {target}, pos\n"

    def flush(self) -> None:
        if not self.run:
            return
        layout = struct.Struct(">" + "".join(f for f, _ in self.run))
        reader = self.constant("unpack", layout.unpack_from)
        targets = ", ".join(t for _, t in self.run)
        self.run = []
        self.line(f"{targets}, = {reader}(buf, pos)")
        self.line(f"pos += {layout.size}")
        for name in self.uuids:
            self.line(f"{name} = uuid_of({name})")
        self.uuids = []

    def message(self, cls: type[Any]) -> str:
        """Read a message into a new local; give the local's name."""
        plain, tagged = self.split(cls)
        arguments = [f"{f.name}={self.value(f.type_in(self.version))}" for f in plain]
        if self.flexible:
            self.flush()
            arguments += [f"{f.name}={local}" for f, local in self.tags(tagged)]
        self.flush()
        made = self.fresh("made")
        maker = self.constant("Make", cls)
        self.line(f"{made} = {maker}({', '.join(arguments)})")
        return made

    def tags(self, tagged: list[Field]) -> list[tuple[Field, str]]:
        found = [(field, self.fresh("tagged")) for field in tagged]
        for field, local in found:
            self.line(f"{local} = {self.constant('default', field.default)}")
        count, number, size, after = (self.fresh(s) for s in ("count", "number", "size", "after"))
        self.uvarint(count)
        self.line(f"while {count}:")
        self.depth += 1
        self.line(f"{count} -= 1")
        self.uvarint(number)
        self.uvarint(size)
        self.line(f"{after} = pos + {size}")
        self.line(
            f"if {after} > end: raise WireError(f'tagged field past the end at byte {{pos}}')"
        )
        for field, local in found:
            self.line(f"if {number} == {field.tag}:")
            self.depth += 1
            value = self.value(field.type_in(self.version))
            self.flush()
            self.line(f"{local} = {value}")
            self.depth -= 1
        self.line(f"pos = {after}")
        self.depth -= 1
        return found

    def uvarint(self, target: str) -> None:
        self.line(f"{target} = buf[pos]; pos += 1")
        self.line(f"if {target} >= 128: {target}, pos = uvarint(buf, pos - 1)")

    def value(self, type_: FieldType) -> str:
        """Read a value into a new local; give the local's name."""
        target = self.fresh("v")
        if type_.kind in _FIXED:
            self.run.append((_FIXED[type_.kind], target))
            return target
        if type_.kind == "uuid":
            self.run.append(("16s", target))
            self.uuids.append(target)
            return target
        if type_.kind == "message" and not type_.nullable:
            assert type_.message is not None
            return self.message(type_.message)
        self.flush()
        self.variable(type_, target)
        return target

    def variable(self, type_: FieldType, target: str) -> None:
        size = self.fresh("n")
        if type_.kind == "message":
            self.line(f"{size} = buf[pos]; pos += 1")
            self.line(f"if {size} == 255: {target} = None")
        elif self.flexible:
            self.uvarint(size)
            self.line(f"{size} -= 1")
            self.line(f"if {size} < 0: {target} = {self.null_value(type_)}")
        else:
            kind = "h" if type_.kind == "str" else "i"
            self.line(f"{size}, = read_{kind}(buf, pos); pos += {2 if kind == 'h' else 4}")
            self.line(f"if {size} < 0: {target} = {self.null_value(type_)}")
        self.line("else:")
        self.depth += 1
        self.present(type_, target, size)
        self.depth -= 1

    def null_value(self, type_: FieldType) -> str:
        """Give what null reads as: None, or the type's zero where a peer may not send null.

        Old and new clients alike send a null array where the schema says it is not nullable;
        Kafka refuses them, we read nothing in it.
        """
        if type_.nullable:
            return "None"
        return {"str": "''", "bytes": "b''", "array": "()"}[type_.kind]

    def present(self, type_: FieldType, target: str, size: str) -> None:
        if type_.kind == "message":
            assert type_.message is not None
            made = self.message(type_.message)
            self.line(f"{target} = {made}")
            return
        self.line(
            f"if {size} > end - pos: "
            f"raise WireError(f'{type_.kind} of {{{size}}} at byte {{pos}} of {{end}}')"
        )
        if type_.kind == "array":
            assert type_.item is not None
            self.line(f"{target} = []")
            self.line(f"for _ in range({size}):")
            self.depth += 1
            item = self.value(type_.item)
            self.flush()
            self.line(f"{target}.append({item})")
            self.depth -= 1
            self.line(f"{target} = tuple({target})")
            return
        part = f"buf[pos:pos + {size}]"
        reading = {
            "str": f"str({part}, 'utf-8')",
            "bytes": f"bytes({part})",
            "records": f"memoryview(buf)[pos:pos + {size}]",
        }
        self.line(f"{target} = {reading[type_.kind]}")
        self.line(f"pos += {size}")
