from support.clusters import image_with, topic
from twinlog.broker.config_view import ConfigView
from twinlog.cluster.changes import BrokerConfigSet, MirrorSet, TopicConfigSet
from twinlog.cluster.facts import MirrorFact
from twinlog.cluster.image import ClusterImage
from twinlog.config.broker import BROKER
from twinlog.config.declare import ConfigEntry, Settings, Source
from twinlog.model.ids import BrokerId, TopicName

ORDERS = TopicName("orders")


def view(image: ClusterImage) -> ConfigView:
    return ConfigView(Settings.of(BROKER, {"log.retention.ms": "9"}), image, BrokerId(1))


def told(entries: list[ConfigEntry]) -> dict[str, tuple[str | None, Source]]:
    return {entry.name: (entry.value, entry.source) for entry in entries}


def test_a_topics_setting_comes_from_itself_the_brokers_or_the_file() -> None:
    image = image_with(topic(), TopicConfigSet(ORDERS, {"segment.ms": "5"}))
    found = told(view(image).of_topic(image.topics[ORDERS], None))
    assert found["segment.ms"] == ("5", Source.TOPIC)
    assert found["retention.ms"] == ("9", Source.STATIC_BROKER)
    image = image.with_change(BrokerConfigSet(None, {"log.retention.ms": "8"}))
    found = told(view(image).of_topic(image.topics[ORDERS], None))
    assert found["retention.ms"] == ("8", Source.DYNAMIC_DEFAULT_BROKER)


def test_a_setting_of_kafka_that_we_do_not_have_is_shown_as_it_was_given() -> None:
    image = image_with(topic(), TopicConfigSet(ORDERS, {"remote.storage.enable": "true"}))
    found = told(view(image).of_topic(image.topics[ORDERS], None))
    assert found["remote.storage.enable"] == ("true", Source.TOPIC)
    assert view(image).of_topic(image.topics[ORDERS], ["retention.bytes"])[1:] == []


def test_what_was_set_for_every_broker_is_told_without_the_rest() -> None:
    image = image_with(BrokerConfigSet(None, {"log.retention.ms": "8"}))
    every = Source.DYNAMIC_DEFAULT_BROKER
    assert told(view(image).of_every_broker(None)) == {"log.retention.ms": ("8", every)}
    assert view(image).of_every_broker(["log.dirs"]) == []


def test_a_brokers_secrets_are_not_told() -> None:
    static = Settings.of(BROKER, {"ssl.keystore.password": "abc"})
    entries = ConfigView(static, image_with(), BrokerId(1)).of_broker(["ssl.keystore.password"])
    assert [(entry.value, entry.is_sensitive) for entry in entries] == [(None, True)]


def test_what_has_no_effect_here_is_told_from_where_it_was_set_last() -> None:
    name = "log.cleaner.threads"
    static = Settings.of(BROKER, {name: "1"})
    image = image_with()
    for of, source in (
        (None, Source.DYNAMIC_DEFAULT_BROKER),
        (BrokerId(1), Source.DYNAMIC_BROKER),
    ):
        image = image.with_change(BrokerConfigSet(of, {name: "2"}))
        found = ConfigView(static, image, BrokerId(1)).of_broker([name])
        assert [(one.source, one.is_read_only) for one in found] == [(source, False)]


def test_a_mirrors_settings_are_told() -> None:
    image = image_with(MirrorSet(MirrorFact("m", {"bootstrap.servers": "a:1"}, "source")))
    found = told(view(image).of_mirror("m", None))
    assert found["bootstrap.servers"] == ("a:1", Source.CLUSTER_MIRROR)
    assert found["topics.exclude"][1] is Source.DEFAULT
