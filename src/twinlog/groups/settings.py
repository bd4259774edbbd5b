"""What an operator can set about groups."""

from dataclasses import dataclass


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
