"""What is not taken over from the source is named as topics name it, not as brokers do."""

from twinlog.config import mirror
from twinlog.config.topic import TOPIC

OF_KAFKA_BEFORE_4 = {"message.timestamp.difference.max.ms"}


def test_every_property_that_is_excluded_by_default_is_a_setting_of_topics() -> None:
    excluded = set(mirror_default())
    known = {setting.name for setting in TOPIC.settings}
    assert excluded - known == OF_KAFKA_BEFORE_4
    assert {"message.timestamp.before.max.ms", "message.timestamp.after.max.ms"} <= excluded


def mirror_default() -> tuple[str, ...]:
    """Give what a mirror without a setting of its own leaves alone."""
    return mirror.TOPIC_PROPERTIES_EXCLUDE.default
