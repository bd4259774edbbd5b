"""Makes docs/protocol.md from the table of APIs and the words of their handlers."""

import sys
from collections.abc import Iterable
from typing import Final

from twinlog.broker.api_table import ROWS, Row

_INTRODUCTION: Final = """\
# Protocol

Made from `src/twinlog/broker/api_table.py` by `twinlog docs protocol`; do not edit. Versions are
those that ApiVersions tells. A request in a version that is not listed closes the connection, as in
Kafka; ApiVersions itself is answered in its oldest form.

| Key | Request | Versions | Flexible from | Answered in |
| --- | --- | --- | --- | --- |
"""


def protocol_page() -> str:
    """Give the page: a table of requests, then what each family says of itself."""
    rows = sorted(ROWS, key=lambda row: row.api.key)
    lines = "".join(_line(row) for row in rows)
    return _INTRODUCTION + lines + "".join(_families(rows))


def _line(row: Row) -> str:
    api = row.api
    versions = f"{row.advertised_min}-{api.max_version}"
    if row.advertised_min != api.min_version:
        versions += f" (answered from {api.min_version} on)"
    is_flexible = api.flexible_since <= api.max_version
    flexible = str(api.flexible_since) if is_flexible else ""
    name = api.request.__name__.removesuffix("Request")
    return f"| {int(api.key)} | {name} | {versions} | {flexible} | {_family_of(row)} |\n"


def _families(rows: Iterable[Row]) -> Iterable[str]:
    modules = dict.fromkeys(row.handler.__module__ for row in rows)
    for module in sorted(modules):
        about = (sys.modules[module].__doc__ or "").strip()
        yield f"\n## {module.rpartition('.')[2]}\n\n{about}\n"


def _family_of(row: Row) -> str:
    return row.handler.__module__.rpartition(".")[2]
