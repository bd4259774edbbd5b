"""Our messages as those of kio, which writes them with code and schemas of its own."""

import datetime
from dataclasses import fields
from importlib import import_module
from io import BytesIO
from typing import Any, Final, get_args
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map
from kio.serial import entity_reader, entity_writer

from support.messages import Declared

OUR_NAMES: Final = {"forgotten_topics_data": "forgotten_topics", "responses": "topics"}
"""Fields of Fetch that are called otherwise here; all other names are the same."""

_NO_UUID: Final = UUID(int=0)


def kio_class(declared: Declared, version: int) -> type[Any] | None:
    """Give kio's class of a message, or None where kio does not have that version."""
    name = api_key_map.get(declared.api.key)
    if name is None:
        return None
    try:
        module = import_module(f"kio.schema.{name}.v{version}.{declared.side}")
    except ModuleNotFoundError:
        return None
    title = "".join(word.title() for word in name.split("_"))
    found: type[Any] = getattr(module, f"{title}{declared.side.title()}")
    return found


def twin_of(message: Any, kind: type[Any]) -> Any:
    """Make the kio entity of class ``kind`` that says what ``message`` says."""
    values = {}
    for entry in fields(kind):
        names = (entry.name, f"{entry.name}_ms", OUR_NAMES.get(entry.name, ""))
        name = next(name for name in names if hasattr(message, name))
        values[entry.name] = _value_of(
            getattr(message, name), entry.type, entry.metadata.get("kafka_type")
        )
    return kind(**values)


def bytes_of(entity: Any) -> bytes:
    """Write a kio entity."""
    buffer = BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def read(kind: type[Any], frame: bytes) -> Any:
    """Read a kio entity from the whole of ``frame``."""
    entity, size = entity_reader(kind)(frame, 0)
    assert size == len(frame)
    return entity


def _value_of(value: Any, kind: Any, kafka_type: str | None) -> Any:
    if value is None:
        return None
    if isinstance(value, tuple):
        item = next(arg for arg in _options(kind) if get_args(arg))
        return tuple(_value_of(one, get_args(item)[0], kafka_type) for one in value)
    if kafka_type is None:
        entity = next(arg for arg in _options(kind) if hasattr(arg, "__dataclass_fields__"))
        return twin_of(value, entity)
    if kafka_type == "error_code":
        return ErrorCode(value)
    if kafka_type.startswith("timedelta"):
        return datetime.timedelta(milliseconds=value)
    if kafka_type.startswith("datetime"):
        return _time_of(value)
    return None if value == _NO_UUID else value


def _options(kind: Any) -> tuple[Any, ...]:
    """Give what a union is of, or the one type itself."""
    return (kind,) if get_args(kind)[1:] == (Ellipsis,) else get_args(kind) or (kind,)


def _time_of(milliseconds: int) -> datetime.datetime | None:
    if milliseconds == -1:
        return None
    start = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return start + datetime.timedelta(milliseconds=milliseconds)
