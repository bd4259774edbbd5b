"""Every declared api, for tests and pages that walk them all."""

from typing import Any, Final

from twinlog.wire.messages import (
    acls,
    api_versions,
    configs,
    fetch,
    group_offsets,
    groups,
    metadata,
    mirror_states,
    mirrors,
    offsets,
    produce,
    replicas,
    sasl,
    topics,
    transactions,
)
from twinlog.wire.schema import Api

_FAMILIES: Final = (
    produce,
    fetch,
    offsets,
    metadata,
    group_offsets,
    groups,
    api_versions,
    topics,
    transactions,
    configs,
    replicas,
    acls,
    sasl,
    mirror_states,
    mirrors,
)

APIS: Final[tuple[Api[Any, Any], ...]] = tuple(
    sorted(
        (row for family in _FAMILIES for row in vars(family).values() if isinstance(row, Api)),
        key=lambda row: row.key,
    )
)
