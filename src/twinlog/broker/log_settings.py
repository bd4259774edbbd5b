"""Turns a topic's settings into what its logs must know."""

from collections.abc import Mapping

from twinlog.config import topic
from twinlog.config.coordinators import PRODUCER_ID_EXPIRATION_MS
from twinlog.config.declare import Settings
from twinlog.config.topic import topic_settings
from twinlog.storage.settings import LogSettings


def log_settings(overrides: Mapping[str, str], broker: Settings) -> LogSettings:
    """Give the settings of the logs of a topic with these overrides.

    Raises SettingsError for an override that should never have been accepted.
    """
    settings = topic_settings(overrides, broker)
    cleanup_policy: tuple[str, ...] = settings[topic.CLEANUP_POLICY]
    return LogSettings(
        segment_bytes=settings[topic.SEGMENT_BYTES],
        segment_ms=settings[topic.SEGMENT_MS],
        retention_ms=settings[topic.RETENTION_MS],
        retention_bytes=settings[topic.RETENTION_BYTES],
        max_message_bytes=settings[topic.MAX_MESSAGE_BYTES],
        index_interval_bytes=settings[topic.INDEX_INTERVAL_BYTES],
        index_bytes_max=settings[topic.SEGMENT_INDEX_BYTES],
        flush_messages=settings[topic.FLUSH_MESSAGES],
        cleanup_policy=frozenset(cleanup_policy),
        is_log_append_time=settings[topic.MESSAGE_TIMESTAMP_TYPE] == "LogAppendTime",
        message_timestamp_before_max_ms=settings[topic.MESSAGE_TIMESTAMP_BEFORE_MAX_MS],
        message_timestamp_after_max_ms=settings[topic.MESSAGE_TIMESTAMP_AFTER_MAX_MS],
        compression_type=settings[topic.COMPRESSION_TYPE],
        producer_id_expiration_ms=broker[PRODUCER_ID_EXPIRATION_MS],
        file_delete_delay_ms=settings[topic.FILE_DELETE_DELAY_MS],
    )


def min_insync_replicas(overrides: Mapping[str, str], broker: Settings) -> int:
    """Give how many copies acks=all asks for."""
    return topic_settings(overrides, broker)[topic.MIN_INSYNC_REPLICAS]
