"""The language messages are declared in: ``@message``, ``since``, ``until``, ``tag``, ``Api``.

A message is a class whose annotated fields stand in wire order::

    @message
    class FetchPartition:
        partition: Int32
        current_leader_epoch: Annotated[Int32, since(9)] = -1
        fetch_offset: Int64

Field types: ``bool``, the integers of ``wire.primitives``, ``Float64``, ``str``, ``bytes``,
``UUID``, ``RecordBytes``, another message, ``tuple[T, ...]`` of any of these, and each of them
``| None`` where the protocol allows null (with ``null_since`` where only later versions do). A
field without a default gets its type's zero at run time, as in Kafka; the type checker still asks
for it.
"""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)
from uuid import UUID

from twinlog.wire.api_keys import ApiKey

T = TypeVar("T")
Request = TypeVar("Request")
Response = TypeVar("Response")

ANY_VERSION: Final = 32_767


@dataclass(frozen=True, slots=True)
class Since:
    """The field exists from this version on."""

    version: int


@dataclass(frozen=True, slots=True)
class Until:
    """The field exists up to and including this version."""

    version: int


@dataclass(frozen=True, slots=True)
class Tag:
    """The field is a tagged one, with this number."""

    number: int


@dataclass(frozen=True, slots=True)
class NullSince:
    """The field may be null from this version on; before it, null does not fit."""

    version: int


def since(version: int) -> Since:
    """Mark a field that exists from ``version`` on."""
    return Since(version)


def until(version: int) -> Until:
    """Mark a field that exists up to and including ``version``."""
    return Until(version)


def tag(number: int) -> Tag:
    """Mark a tagged field; it is written only when it differs from its default."""
    return Tag(number)


def null_since(version: int) -> NullSince:
    """Mark a field that may be null from ``version`` on only."""
    return NullSince(version)


@dataclass(frozen=True, slots=True)
class FieldType:
    """What a field holds: a ``kind``, and for arrays and messages what is inside.

    ``kind`` is one of bool, int8 ... float64, str, bytes, uuid, records, array, message.
    """

    kind: str
    nullable: bool = False
    item: "FieldType | None" = None
    message: type[Any] | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message, as the codec compiler sees it."""

    name: str
    type: FieldType
    default: Any
    since: int
    until: int
    tag: int | None
    null_since: int = 0

    def type_in(self, version: int) -> FieldType:
        """Give what the field holds in ``version``: null may not fit yet."""
        return self.type if version >= self.null_since else replace(self.type, nullable=False)

    def is_in(self, version: int) -> bool:
        """Tell whether the field exists in ``version``."""
        return self.since <= version <= self.until


@dataclass(frozen=True, slots=True)
class Api(Generic[Request, Response]):
    """A request, its response, and the versions in which both are declared (ends inclusive)."""

    key: ApiKey
    request: type[Request]
    response: type[Response]
    min_version: int
    max_version: int
    flexible_since: int = ANY_VERSION

    def is_flexible(self, version: int) -> bool:
        """Tell whether compact types and tagged fields are used in ``version`` (KIP-482)."""
        return version >= self.flexible_since


_ZEROES: Final[dict[str, Any]] = {
    "bool": False,
    "float64": 0.0,
    "str": "",
    "bytes": b"",
    "uuid": UUID(int=0),
    "records": None,
    "array": (),
}


@overload
def message(cls: type[T]) -> type[T]: ...
@overload
def message() -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(kw_only_default=True, frozen_default=True)
def message(cls: type[T] | None = None) -> type[T] | Callable[[type[T]], type[T]]:
    """Make a class a message: frozen to the type checker, plain and slotted at run time.

    Frozen dataclasses take three times as long to build, and messages are built by the thousand.
    """

    def decorate(cls: type[T]) -> type[T]:
        hints = get_type_hints(cls, include_extras=True)
        for name, hint in hints.items():
            if name not in cls.__dict__:
                setattr(cls, name, _zero(_field_type(hint)))
        # One of these for all messages, where a dataclass would compile its own: there are some
        # two hundred messages, and a broker is to start in half a second.
        for shared in (_repr, _eq, _hash):
            setattr(cls, f"_{shared.__name__}__", shared)
        cls.__doc__ = cls.__doc__ or cls.__name__
        return dataclass(slots=True, repr=False, eq=False)(cls)

    return decorate if cls is None else decorate(cls)


def _repr(self: Any) -> str:
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
    return f"{type(self).__name__}({values})"


def _eq(self: Any, other: Any) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    values_of = _reader(self.__slots__)
    return values_of(self) == values_of(other)


def _hash(self: Any) -> int:
    return hash(_reader(self.__slots__)(self))


@cache
def _reader(names: tuple[str, ...]) -> Callable[[Any], Any]:
    """Give what reads all fields at once: some messages are keys of dicts, by the thousand."""
    return attrgetter(*names) if names else lambda _: ()


def fields_of(cls: type[Any]) -> tuple[Field, ...]:
    """Give a message's fields in wire order."""
    hints = get_type_hints(cls, include_extras=True)
    found = []
    for entry in fields(cls):
        marks = _marks(hints[entry.name])
        found.append(
            Field(
                name=entry.name,
                type=_field_type(hints[entry.name]),
                default=None if entry.default is MISSING else entry.default,
                since=next((m.version for m in marks if isinstance(m, Since)), 0),
                until=next((m.version for m in marks if isinstance(m, Until)), ANY_VERSION),
                tag=next((m.number for m in marks if isinstance(m, Tag)), None),
                null_since=next((m.version for m in marks if isinstance(m, NullSince)), 0),
            )
        )
    return tuple(found)


def _marks(hint: Any) -> tuple[Any, ...]:
    """Give what stands beside the type in ``Annotated[type, ...]``."""
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()


def _zero(type_: FieldType) -> Any:
    if type_.nullable and type_.kind != "records":
        return None
    if type_.kind == "message":
        assert type_.message is not None
        return type_.message()
    return _ZEROES.get(type_.kind, 0)


def _field_type(hint: Any) -> FieldType:
    """Turn a type annotation into a FieldType."""
    name = next((mark for mark in _marks(hint) if isinstance(mark, str)), None)
    if name is not None:
        return FieldType(name, nullable=name == "records")
    if get_origin(hint) is Annotated:
        return _field_type(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        inner = [arg for arg in get_args(hint) if arg is not NoneType]
        assert len(inner) == 1, f"a field is one type or null: {hint}"
        plain = _field_type(inner[0])
        return FieldType(plain.kind, nullable=True, item=plain.item, message=plain.message)
    if get_origin(hint) is tuple:
        return FieldType("array", item=_field_type(get_args(hint)[0]))
    plain_kinds = {bool: "bool", str: "str", bytes: "bytes", UUID: "uuid"}
    if hint in plain_kinds:
        return FieldType(plain_kinds[hint])
    assert hasattr(hint, "__dataclass_fields__"), f"no field type: {hint}"
    return FieldType("message", message=hint)
