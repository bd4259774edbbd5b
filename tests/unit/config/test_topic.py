"""Topic settings, their broker-level synonyms and Kafka's defaults."""

import pytest

from twinlog.config import topic
from twinlog.config.broker import BROKER
from twinlog.config.declare import Settings, Source
from twinlog.config.topic import TOPIC, topic_settings
from twinlog.model.errors import SettingsError

BARE = Settings.of(BROKER)


def test_every_default_is_a_value_that_could_be_given() -> None:
    for setting in TOPIC.settings:
        text = setting.format(setting.default)
        assert not text or setting.parse(text) == setting.default, setting.name


@pytest.mark.parametrize(
    ("broker", "name", "value"),
    [
        ({}, "max.message.bytes", 1_048_588),
        ({"message.max.bytes": "200000000"}, "max.message.bytes", 200_000_000),
        ({"log.retention.hours": "1"}, "retention.ms", 3_600_000),
        ({"log.roll.hours": "1"}, "segment.ms", 3_600_000),
        ({"log.segment.delete.delay.ms": "1"}, "file.delete.delay.ms", 1),
        ({"log.flush.interval.ms": "9"}, "flush.ms", 9),
        ({"log.index.size.max.bytes": "100"}, "segment.index.bytes", 100),
        ({"log.cleanup.policy": "compact,delete"}, "cleanup.policy", ("compact", "delete")),
        ({"log.cleaner.min.cleanable.ratio": "0.1"}, "min.cleanable.dirty.ratio", 0.1),
        ({"min.insync.replicas": "2"}, "min.insync.replicas", 2),
        ({"compression.type": "zstd"}, "compression.type", "zstd"),
        ({"unclean.leader.election.enable": "true"}, "unclean.leader.election.enable", True),
    ],
    ids=str,
)
def test_a_topic_inherits_what_its_broker_says(
    broker: dict[str, str], name: str, value: object
) -> None:
    settings = topic_settings({}, Settings.of(BROKER, broker))
    assert settings.get_by_name(name) == value


def test_an_override_wins_and_is_told_as_the_topics_own() -> None:
    settings = topic_settings({"retention.ms": "60000"}, BARE)
    assert settings[topic.RETENTION_MS] == 60_000
    assert settings.source_of(topic.RETENTION_MS) is Source.TOPIC


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("retention.ms", "-2"),
        ("cleanup.policy", "shrink"),
        ("compression.type", "lzo"),
        ("min.cleanable.dirty.ratio", "2"),
        ("message.timestamp.type", "createtime"),
        ("leader.replication.throttled.replicas", "0"),
        ("nonsense", "1"),
    ],
)
def test_overrides_that_cannot_be_are_refused(name: str, text: str) -> None:
    with pytest.raises(SettingsError, match=name):
        topic_settings({name: text}, BARE)


def test_what_older_kafkas_allowed_is_taken_since_a_mirror_may_bring_it() -> None:
    settings = topic_settings({"segment.bytes": "1000", "message.format.version": "2.1"}, BARE)
    assert settings[topic.SEGMENT_BYTES] == 1_000
    assert settings.ignored == ("message.format.version",)


def test_compaction_lags_must_fit_together() -> None:
    with pytest.raises(SettingsError, match=r"min.compaction.lag.ms=9 is above .*=5"):
        topic_settings({"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "5"}, BARE)
