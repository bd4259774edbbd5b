"""Hypothesis strategies made from the declarations, and every message to try them on."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from twinlog.wire.messages.every import APIS
from twinlog.wire.schema import Api, Field, FieldType, fields_of

_BITS: Final = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_ERROR_CODES: Final = [-1, 0, 1, 35, 87, 100]
_LATEST_MS: Final = 1 << 41


@dataclass(frozen=True)
class Declared:
    """One message of an api, and the versions it is declared in."""

    api: Api[Any, Any]
    message: type[Any]
    side: str

    def versions(self) -> Iterator[tuple[int, bool]]:
        """Give each version, and whether it is flexible."""
        for version in range(self.api.min_version, self.api.max_version + 1):
            yield version, self.api.is_flexible(version)


EVERY_MESSAGE: Final = [
    Declared(api, message, side)
    for api in APIS
    for message, side in ((api.request, "request"), (api.response, "response"))
]


def examples(count: int) -> settings:
    """Try ``count`` messages; what is big or slow to make is no fault of the message's."""
    return settings(
        max_examples=count,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def label_of(declared: Declared) -> str:
    """Name a message in the list of tests."""
    return f"{declared.api.key.name.lower()}-{declared.side}"


def messages_of(message: type[Any]) -> st.SearchStrategy[Any]:
    """Give messages with any value in every field, whatever versions the fields are of."""
    values = {field.name: _values_of_field(field) for field in fields_of(message)}
    return st.builds(message, **values)


def as_of(message: Any, version: int) -> Any:
    """Give the message as it comes out of ``version``: with defaults where that has no field."""
    changes = {}
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        changes[field.name] = (
            _as_of(field.type_in(version), value, version)
            if field.is_in(version)
            else field.default
        )
    return replace(message, **changes)


def _as_of(type_: FieldType, value: Any, version: int) -> Any:
    if value is None:
        return None if type_.nullable else {"str": "", "array": ()}[type_.kind]
    if type_.kind == "message":
        return as_of(value, version)
    if type_.kind == "array":
        assert type_.item is not None
        return tuple(_as_of(type_.item, item, version) for item in value)
    return value


def _values_of_field(field: Field) -> st.SearchStrategy[Any]:
    if field.name.endswith("error_code"):
        return st.sampled_from(_ERROR_CODES)
    if field.name.endswith("_ms") and field.type.kind == "int64":
        return st.integers(-1, _LATEST_MS)  # the oracles have years up to 9999
    values = _values_of(field.type)
    if field.tag is not None:
        values = st.just(field.default) | values
    return st.none() | values if field.type.nullable else values


def _values_of(type_: FieldType) -> st.SearchStrategy[Any]:
    if type_.kind in _BITS:
        limit = 1 << _BITS[type_.kind] - 1
        return st.integers(-limit, limit - 1)
    if type_.kind == "message":
        assert type_.message is not None
        return messages_of(type_.message)
    if type_.kind == "array":
        assert type_.item is not None
        items = _values_of(type_.item)
        some = st.lists(items, max_size=2).map(tuple)
        # Above 126 items a compact length takes a second byte.
        return (
            some if type_.item.kind == "message" else some | items.map(lambda item: (item,) * 130)
        )
    return {
        "bool": st.booleans(),
        "str": st.text(max_size=3) | st.just("lång" * 40),
        "bytes": st.binary(max_size=3) | st.just(b"x" * 200),
        "records": st.binary(max_size=3) | st.just(b"x" * 20_000),
        "uuid": st.uuids(),
    }[type_.kind]
