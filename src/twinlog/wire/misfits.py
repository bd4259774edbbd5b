"""Finds the value in a message that does not fit its field, to be named when encoding fails."""

from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from twinlog.wire.schema import FieldType, fields_of

_BITS: Final = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint16": 16, "uint32": 32}
_CLASSES: Final = {"bool": bool, "float64": float, "str": str, "bytes": bytes, "uuid": UUID}
_OLD_STRING_BYTES_MAX: Final = 32_767


def find_misfit(message: Any, version: int, *, flexible: bool) -> str:
    """Give path, value and type of the first field that cannot be encoded, or an empty text."""
    return next(_misfits_of(message, type(message).__name__, version, flexible=flexible), "")


def _misfits_of(message: Any, path: str, version: int, *, flexible: bool) -> Iterator[str]:
    for field in fields_of(type(message)):
        if field.is_in(version):
            value = getattr(message, field.name)
            here = f"{path}.{field.name}"
            yield from _misfits(field.type_in(version), value, here, version, flexible=flexible)


def _misfits(
    type_: FieldType, value: Any, path: str, version: int, *, flexible: bool
) -> Iterator[str]:
    if value is None and type_.nullable:
        return
    if type_.kind == "message" and isinstance(value, type_.message or type(None)):
        yield from _misfits_of(value, path, version, flexible=flexible)
    elif type_.kind == "array" and isinstance(value, tuple | list) and type_.item is not None:
        for index, item in enumerate(value):
            yield from _misfits(type_.item, item, f"{path}[{index}]", version, flexible=flexible)
    elif not _fits(type_.kind, value, flexible=flexible):
        yield f"{path} is {value!r:.60}, not of type {type_.kind}"


def _fits(kind: str, value: Any, *, flexible: bool) -> bool:
    """Tell whether a plain value can be written as ``kind``."""
    if kind in _BITS:
        low = 0 if kind.startswith("u") else -(1 << _BITS[kind] - 1)
        return isinstance(value, int) and low <= value < low + (1 << _BITS[kind])
    if kind == "str" and isinstance(value, str):
        try:
            size = len(value.encode())
        except UnicodeEncodeError:
            return False
        return flexible or size <= _OLD_STRING_BYTES_MAX
    if kind == "records":
        return hasattr(value, "__len__")
    return isinstance(value, _CLASSES.get(kind, ()))
