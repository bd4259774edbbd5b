"""What an operator can set about groups."""

from dataclasses import dataclass
from typing import Final

from twinlog.config import coordinators
from twinlog.config.declare import Settings

MINUTE_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The ``group.*`` and ``offsets.*`` settings of a broker; the defaults are Kafka's."""

    session_timeout_ms_min: int = 6_000
    session_timeout_ms_max: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    members_max: int = 0x7FFF_FFFF
    offset_metadata_bytes_max: int = 4_096
    record_bytes_max: int = 1_000_000
    """A group's record must fit into ``max.message.bytes`` of the topic."""
    offsets_retention_ms: int = 7 * 24 * 3_600_000
    offsets_retention_check_interval_ms: int = 600_000


def group_settings(settings: Settings) -> GroupSettings:
    """Give what the group coordinator must know of the broker's settings."""
    return GroupSettings(
        session_timeout_ms_min=settings[coordinators.GROUP_MIN_SESSION_TIMEOUT_MS],
        session_timeout_ms_max=settings[coordinators.GROUP_MAX_SESSION_TIMEOUT_MS],
        initial_rebalance_delay_ms=settings[coordinators.GROUP_INITIAL_REBALANCE_DELAY_MS],
        members_max=settings[coordinators.GROUP_MAX_SIZE],
        offset_metadata_bytes_max=settings[coordinators.OFFSET_METADATA_MAX_BYTES],
        offsets_retention_ms=settings[coordinators.OFFSETS_RETENTION_MINUTES] * MINUTE_MS,
        offsets_retention_check_interval_ms=settings[
            coordinators.OFFSETS_RETENTION_CHECK_INTERVAL_MS
        ],
    )
