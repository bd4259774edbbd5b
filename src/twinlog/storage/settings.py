"""What a log must know of its topic's settings, as plain values."""

from dataclasses import dataclass
from typing import Final

FOREVER: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Settings of one log under Kafka's own names, with Kafka's own defaults.

    Retention of -1 means without limit. ``compression_type`` is a topic's ``compression.type``.
    """

    segment_bytes: int = 1 << 30
    segment_ms: int = 604_800_000
    retention_ms: int = 604_800_000
    retention_bytes: int = -1
    max_message_bytes: int = 1_048_588
    index_interval_bytes: int = 4_096
    index_bytes_max: int = 10 << 20
    flush_messages: int = FOREVER
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    is_log_append_time: bool = False
    message_timestamp_before_max_ms: int = FOREVER
    message_timestamp_after_max_ms: int = 3_600_000
    compression_type: str = "producer"
    producer_id_expiration_ms: int = 86_400_000
    file_delete_delay_ms: int = 60_000

    @property
    def is_compacted(self) -> bool:
        """Whether records of a key may replace each other, so that each needs a key."""
        return "compact" in self.cleanup_policy

    @property
    def is_deleted_by_age_and_size(self) -> bool:
        """Whether old segments go."""
        return "delete" in self.cleanup_policy
