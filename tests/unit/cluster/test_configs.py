from collections.abc import Mapping

import pytest

from support.clusters import image_with, mirrored, topic
from twinlog.cluster.changes import BrokerConfigSet, MirrorSet, TopicConfigSet
from twinlog.cluster.configs import (
    Alteration,
    Operation,
    altered,
    broker_config_set,
    broker_named,
    broker_settings,
    mirror_config_set,
    topic_config_set,
)
from twinlog.cluster.facts import DesiredState, MirrorFact
from twinlog.config.broker import BROKER
from twinlog.config.declare import Settings, Source
from twinlog.config.logs import LOG_CLEANUP_POLICY, LOG_RETENTION_MS
from twinlog.config.topic import TOPIC, topic_settings
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import BrokerId

STATIC = Settings.of(BROKER, {"log.retention.ms": "60000"})
MIRROR = MirrorFact("m", {"bootstrap.servers": "a:1"}, "source")


def edit(overrides: Mapping[str, str], *edits: Alteration) -> dict[str, str]:
    return altered(TOPIC, overrides, topic_settings(overrides, STATIC), edits)


def refusal(*edits: Alteration) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        edit({}, *edits)
    return refused.value.code


def test_values_are_set_and_deleted() -> None:
    after = edit(
        {"retention.ms": "1", "segment.ms": "2"},
        Alteration("retention.ms", Operation.DELETE),
        Alteration("segment.ms", Operation.SET, "5"),
        Alteration("max.message.bytes", Operation.DELETE),
    )
    assert after == {"segment.ms": "5"}


def test_lists_are_appended_to_and_taken_from() -> None:
    append = Alteration("cleanup.policy", Operation.APPEND, "compact")
    assert edit({}, append) == {"cleanup.policy": "delete,compact"}, "from what is in effect"
    assert edit({"cleanup.policy": "compact"}, append) == {"cleanup.policy": "compact"}
    subtract = Alteration("cleanup.policy", Operation.SUBTRACT, "delete, other")
    assert edit({"cleanup.policy": "compact,delete"}, subtract) == {"cleanup.policy": "compact"}


def test_an_impossible_edit_is_refused() -> None:
    assert refusal(Alteration("retention.ms", 9, "1")) is ErrorCode.INVALID_REQUEST
    assert refusal(Alteration("retention.ms", Operation.SET)) is ErrorCode.INVALID_REQUEST
    assert refusal(Alteration("a", Operation.SET, "1"), Alteration("a", 1)) is (
        ErrorCode.INVALID_REQUEST
    )
    for name in ("retention.ms", "no.such"):
        assert refusal(Alteration(name, Operation.APPEND, "1")) is ErrorCode.INVALID_CONFIG


def test_a_topics_overrides_are_checked() -> None:
    image = image_with(topic())
    good = topic_config_set(image, "orders", {"retention.ms": "5"}, STATIC)
    assert isinstance(good, TopicConfigSet)
    for bad in ({"retention.ms": "soon"}, {"retention.mss": "5"}):
        with pytest.raises(ApiError) as refused:
            topic_config_set(image, "orders", bad, STATIC)
        assert refused.value.code is ErrorCode.INVALID_CONFIG
    with pytest.raises(ApiError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        topic_config_set(image, "none", {}, STATIC)


def test_what_a_mirror_copies_is_altered_at_the_source_only() -> None:
    image = image_with(topic(), MirrorSet(MIRROR), mirrored("orders", "m", DesiredState.MIRRORING))
    with pytest.raises(ApiError, match=r"has retention\.ms from the source of mirror m") as refused:
        topic_config_set(image, "orders", {"retention.ms": "5"}, STATIC)
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
    topic_config_set(image, "orders", {"min.insync.replicas": "1"}, STATIC)
    image = image.with_change(mirrored("orders", "m", DesiredState.STOPPED))
    topic_config_set(image, "orders", {"retention.ms": "5"}, STATIC)


def test_dynamic_settings_of_a_broker_win_over_those_of_every_broker_and_the_file() -> None:
    image = image_with()
    one = BrokerId(1)
    assert broker_settings(STATIC, image, one) is STATIC
    image = image.with_changes(
        [
            broker_config_set(image, "", {"log.retention.ms": "70000"}, STATIC),
            broker_config_set(image, "1", {"log.retention.ms": "80000"}, STATIC),
        ]
    )
    settings = broker_settings(STATIC, image, one)
    assert settings[LOG_RETENTION_MS] == 80_000
    assert settings.source_of(LOG_RETENTION_MS) is Source.DYNAMIC_BROKER
    other = broker_settings(STATIC, image, BrokerId(2))
    assert other[LOG_RETENTION_MS] == 70_000
    assert other[LOG_CLEANUP_POLICY] == STATIC[LOG_CLEANUP_POLICY]


def test_a_setting_that_is_read_at_start_cannot_be_set_at_run_time() -> None:
    with pytest.raises(ApiError, match=r"dynamically: log\.dirs\. Set them in server") as refused:
        broker_config_set(image_with(), "1", {"log.dirs": "/x"}, STATIC)
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_a_wrong_value_of_a_broker_is_refused() -> None:
    with pytest.raises(ApiError) as refused:
        broker_config_set(image_with(), "", {"log.retention.ms": "soon"}, STATIC)
    assert refused.value.code is ErrorCode.INVALID_CONFIG


def test_settings_of_no_broker_are_refused() -> None:
    image = image_with()
    assert broker_named(image, "") is None
    assert broker_named(image, "1") == 1
    for name in ("2", "one", "-1", "\u0661"):
        with pytest.raises(ApiError, match="is no broker"):
            broker_named(image, name)
    assert broker_config_set(image, "1", {}, STATIC) == BrokerConfigSet(BrokerId(1), {})


def test_a_mirrors_config_is_checked() -> None:
    image = image_with(MirrorSet(MIRROR))
    config = {"bootstrap.servers": "b:2", "topics.include": "a.*"}
    assert mirror_config_set(image, "m", config).mirror == MirrorFact("m", config, "source")
    same = {**config, "source.cluster.id": "source"}
    assert mirror_config_set(image, "m", same).mirror.config == same
    for bad in (
        {},
        {"bootstrap.servers": "b:2", "topics.inclde": "a"},
        {**config, "source.cluster.id": "another"},
    ):
        with pytest.raises(ApiError) as refused:
            mirror_config_set(image, "m", bad)
        assert refused.value.code is ErrorCode.INVALID_CONFIG
    with pytest.raises(ApiError, match="UNKNOWN_CLUSTER_MIRROR"):
        mirror_config_set(image, "x", config)
