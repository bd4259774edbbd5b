"""Our messages as those of kafka-python, which makes its classes from Kafka's own schemas."""

from importlib import import_module
from types import SimpleNamespace
from typing import Any, Final

from support.messages import Declared
from twinlog.wire.schema import fields_of

_MODULES: Final = (
    "kafka.protocol.producer",
    "kafka.protocol.consumer",
    "kafka.protocol.metadata",
    "kafka.protocol.admin",
    "kafka.protocol.sasl",
)
_OUR_NAMES: Final = {
    "FetchRequest": {"forgotten_topics_data": "forgotten_topics"},
    "FetchResponse": {"responses": "topics"},
    "MetadataResponse": {"authorized_operations": "cluster_authorized_operations"},
    "MetadataTopic": {"authorized_operations": "topic_authorized_operations"},
    "DescribeClusterResponse": {"authorized_operations": "cluster_authorized_operations"},
}
"""Fields that are called otherwise here: twice by us, thrice by kafka-python."""


def kafka_python_class(declared: Declared, version: int) -> Any:
    """Give kafka-python's class of a message, or None where it does not have that version."""
    for module in map(import_module, _MODULES):
        found = getattr(module, declared.message.__name__, None)
        if found is not None and version <= found.max_version:
            return found
    return None


def bytes_of(message: Any, kind: Any, version: int) -> bytes:
    """Write what ``message`` says by kafka-python's class ``kind``."""
    values = _values_of(message, kind._struct, version)
    written: bytes = kind(version=version, **values).encode()
    return written


def _values_of(message: Any, struct: Any, version: int) -> dict[str, Any]:
    names = _OUR_NAMES.get(type(message).__name__, {})
    ours = {field.name: field for field in fields_of(type(message))}
    values = {}
    for theirs in struct.fields.values():
        if theirs.for_version_q(version):
            field = ours[names.get(theirs.name, theirs.name)]
            value = getattr(message, field.name)
            if field.tag is None or value != field.default:
                values[theirs.name] = _value_of(value, theirs, version)
    return values


def _value_of(value: Any, field: Any, version: int) -> Any:
    if value is None:
        return None
    if field.is_struct_array():
        return [SimpleNamespace(**_values_of(item, field, version)) for item in value]
    if field.is_struct():
        return SimpleNamespace(**_values_of(value, field, version))
    if field.type_str == "bitfield":
        return {bit for bit in range(32) if value >> bit & 1}
    return list(value) if isinstance(value, tuple) else value
