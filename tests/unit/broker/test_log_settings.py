import pytest

from twinlog.broker.log_settings import log_settings, min_insync_replicas
from twinlog.config.broker import BROKER
from twinlog.config.declare import Settings
from twinlog.model.errors import SettingsError
from twinlog.storage.settings import LogSettings

PLAIN = Settings.of(BROKER, {})


def test_without_any_setting_a_log_has_the_defaults_of_storage() -> None:
    assert log_settings({}, PLAIN) == LogSettings()


def test_a_topics_override_counts_more_than_the_brokers_setting() -> None:
    broker = Settings.of(BROKER, {"log.retention.hours": "1", "log.segment.bytes": "1048576"})
    settings = log_settings({"retention.ms": "5000"}, broker)
    assert (settings.retention_ms, settings.segment_bytes) == (5_000, 1_048_576)


def test_cleanup_policy_and_timestamp_type_become_plain_values() -> None:
    settings = log_settings(
        {"cleanup.policy": "compact,delete", "message.timestamp.type": "LogAppendTime"}, PLAIN
    )
    assert settings.cleanup_policy == {"compact", "delete"}
    assert settings.is_log_append_time


def test_a_topic_can_ask_for_more_copies_than_the_broker() -> None:
    assert min_insync_replicas({}, PLAIN) == 1
    assert min_insync_replicas({"min.insync.replicas": "2"}, PLAIN) == 2


def test_an_override_that_no_topic_has_is_an_error() -> None:
    with pytest.raises(SettingsError, match="retention"):
        log_settings({"retention.msx": "1"}, PLAIN)
