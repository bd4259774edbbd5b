"""Everything the broker speaks: each API, the versions it is declared in, and who answers it.

ApiVersions and docs/protocol.md come from this table; the type checker refuses a handler whose
types do not match its row.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from twinlog.broker.context import Context, SpokenApi
from twinlog.broker.handlers.api_versions import handle_api_versions
from twinlog.broker.handlers.configs import (
    handle_alter_configs,
    handle_describe_configs,
    handle_incremental_alter_configs,
    handle_list_config_resources,
)
from twinlog.broker.handlers.fetch import handle_fetch
from twinlog.broker.handlers.group_offsets import (
    handle_offset_commit,
    handle_offset_delete,
    handle_offset_fetch,
)
from twinlog.broker.handlers.groups import (
    handle_delete_groups,
    handle_describe_groups,
    handle_find_coordinator,
    handle_heartbeat,
    handle_join_group,
    handle_leave_group,
    handle_list_groups,
    handle_sync_group,
)
from twinlog.broker.handlers.metadata import (
    handle_describe_cluster,
    handle_describe_topic_partitions,
    handle_metadata,
)
from twinlog.broker.handlers.mirrors import (
    handle_create_cluster_mirror,
    handle_delete_cluster_mirror,
    handle_describe_cluster_mirrors,
    handle_list_cluster_mirrors,
    handle_pause_mirror_topics,
    handle_recover_mirror_topics,
    handle_resume_mirror_topics,
    handle_start_mirror_topics,
    handle_stop_mirror_topics,
)
from twinlog.broker.handlers.offsets import handle_list_offsets, handle_offset_for_leader_epoch
from twinlog.broker.handlers.produce import handle_produce
from twinlog.broker.handlers.replicas import handle_describe_log_dirs
from twinlog.broker.handlers.topics import (
    handle_create_partitions,
    handle_create_topics,
    handle_delete_records,
    handle_delete_topics,
)
from twinlog.broker.handlers.transactions import handle_init_producer_id
from twinlog.wire.messages.api_versions import API_VERSIONS
from twinlog.wire.messages.configs import (
    ALTER_CONFIGS,
    DESCRIBE_CONFIGS,
    INCREMENTAL_ALTER_CONFIGS,
    LIST_CONFIG_RESOURCES,
)
from twinlog.wire.messages.fetch import FETCH
from twinlog.wire.messages.group_offsets import OFFSET_COMMIT, OFFSET_DELETE, OFFSET_FETCH
from twinlog.wire.messages.groups import (
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_GROUPS,
    SYNC_GROUP,
)
from twinlog.wire.messages.metadata import DESCRIBE_CLUSTER, DESCRIBE_TOPIC_PARTITIONS, METADATA
from twinlog.wire.messages.mirrors import (
    CREATE_CLUSTER_MIRROR,
    DELETE_CLUSTER_MIRROR,
    DESCRIBE_CLUSTER_MIRRORS,
    LIST_CLUSTER_MIRRORS,
    PAUSE_MIRROR_TOPICS,
    RECOVER_MIRROR_TOPICS,
    RESUME_MIRROR_TOPICS,
    START_MIRROR_TOPICS,
    STOP_MIRROR_TOPICS,
)
from twinlog.wire.messages.offsets import LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH
from twinlog.wire.messages.produce import PRODUCE
from twinlog.wire.messages.replicas import DESCRIBE_LOG_DIRS
from twinlog.wire.messages.topics import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_RECORDS,
    DELETE_TOPICS,
)
from twinlog.wire.messages.transactions import INIT_PRODUCER_ID
from twinlog.wire.schema import Api

Request = TypeVar("Request")
Response = TypeVar("Response")
Handler = Callable[[Request, Context], Response | Awaitable[Response | None] | None]


@dataclass(frozen=True, slots=True)
class Row:
    """One API. ``advertised_min`` is below the declared range only where Kafka's own is.

    ``answers_from_image``: an answer given at once is made of the request's body and the cluster
    image alone, so that it may be kept. ``counts_errors``: the handler counts its error codes
    itself, since it is asked too often for its answers to be searched for them.
    """

    api: Api[Any, Any]
    handler: Callable[[Any, Context], Any]
    advertised_min: int
    answers_from_image: bool = False
    counts_errors: bool = False


def row(
    api: Api[Request, Response],
    handler: Handler[Request, Response],
    *,
    advertised_min: int | None = None,
    answers_from_image: bool = False,
    counts_errors: bool = False,
) -> Row:
    """Give a row; the type checker compares handler and api."""
    oldest = api.min_version if advertised_min is None else advertised_min
    return Row(api, handler, oldest, answers_from_image, counts_errors)


ROWS: Final = (
    # Older librdkafkas turn compression off unless Produce v0 is advertised (KAFKA-18659).
    row(PRODUCE, handle_produce, advertised_min=0, counts_errors=True),
    row(FETCH, handle_fetch, counts_errors=True),
    row(LIST_OFFSETS, handle_list_offsets),
    row(METADATA, handle_metadata, answers_from_image=True),
    row(OFFSET_COMMIT, handle_offset_commit),
    row(OFFSET_FETCH, handle_offset_fetch),
    row(FIND_COORDINATOR, handle_find_coordinator),
    row(JOIN_GROUP, handle_join_group),
    row(HEARTBEAT, handle_heartbeat),
    row(LEAVE_GROUP, handle_leave_group),
    row(SYNC_GROUP, handle_sync_group),
    row(DESCRIBE_GROUPS, handle_describe_groups),
    row(LIST_GROUPS, handle_list_groups),
    row(API_VERSIONS, handle_api_versions),
    row(CREATE_TOPICS, handle_create_topics),
    row(DELETE_TOPICS, handle_delete_topics),
    row(DELETE_RECORDS, handle_delete_records),
    row(INIT_PRODUCER_ID, handle_init_producer_id),
    row(OFFSET_FOR_LEADER_EPOCH, handle_offset_for_leader_epoch),
    row(DESCRIBE_CONFIGS, handle_describe_configs),
    row(ALTER_CONFIGS, handle_alter_configs),
    row(DESCRIBE_LOG_DIRS, handle_describe_log_dirs),
    row(CREATE_PARTITIONS, handle_create_partitions),
    row(DELETE_GROUPS, handle_delete_groups),
    row(INCREMENTAL_ALTER_CONFIGS, handle_incremental_alter_configs),
    row(OFFSET_DELETE, handle_offset_delete),
    row(DESCRIBE_CLUSTER, handle_describe_cluster),
    row(LIST_CONFIG_RESOURCES, handle_list_config_resources),
    row(DESCRIBE_TOPIC_PARTITIONS, handle_describe_topic_partitions),
    row(CREATE_CLUSTER_MIRROR, handle_create_cluster_mirror),
    row(START_MIRROR_TOPICS, handle_start_mirror_topics),
    row(STOP_MIRROR_TOPICS, handle_stop_mirror_topics),
    row(LIST_CLUSTER_MIRRORS, handle_list_cluster_mirrors),
    row(DESCRIBE_CLUSTER_MIRRORS, handle_describe_cluster_mirrors),
    row(PAUSE_MIRROR_TOPICS, handle_pause_mirror_topics),
    row(RESUME_MIRROR_TOPICS, handle_resume_mirror_topics),
    row(DELETE_CLUSTER_MIRROR, handle_delete_cluster_mirror),
    row(RECOVER_MIRROR_TOPICS, handle_recover_mirror_topics),
)


def spoken() -> tuple[SpokenApi, ...]:
    """Give what ApiVersions tells, in the order of the keys."""
    return tuple(
        SpokenApi(r.api.key, r.advertised_min, r.api.max_version)
        for r in sorted(ROWS, key=lambda r: r.api.key)
    )
