"""Configs as they are told to clients: all settings of a topic, a broker or a mirror."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from twinlog.cluster.configs import broker_settings
from twinlog.cluster.facts import TopicFact
from twinlog.cluster.image import ClusterImage
from twinlog.config.declare import ConfigEntry, ConfigSynonym, Settings, Source
from twinlog.config.kinds import Kind
from twinlog.config.mirror import mirror_settings
from twinlog.config.topic import topic_settings
from twinlog.model.ids import BrokerId

FOREIGN_DOC = "A setting of Kafka that has no effect here."


@dataclass(frozen=True, slots=True)
class ConfigView:
    """The configs in one image; ``static`` are the settings of the broker's file."""

    static: Settings
    image: ClusterImage
    broker_id: BrokerId

    @property
    def broker(self) -> Settings:
        """The settings in effect on this broker."""
        return broker_settings(self.static, self.image, self.broker_id)

    def of_topic(self, topic: TopicFact, names: Collection[str] | None) -> list[ConfigEntry]:
        """Give a topic's settings, all or those named."""
        settings = topic_settings(topic.config, self.broker)
        return [
            *settings.describe(names),
            *_foreign(settings, topic.config, Source.TOPIC, names),
        ]

    def of_broker(self, names: Collection[str] | None) -> list[ConfigEntry]:
        """Give the settings of this broker, all or those named."""
        settings = self.broker
        of_kafka: dict[str, ConfigEntry] = {}
        for given, source in (
            (self.static.overrides, Source.STATIC_BROKER),
            (self.image.broker_configs.get(None, {}), Source.DYNAMIC_DEFAULT_BROKER),
            (self.image.broker_configs.get(self.broker_id, {}), Source.DYNAMIC_BROKER),
        ):
            of_kafka.update((one.name, one) for one in _foreign(settings, given, source, names))
        return [*settings.describe(names), *of_kafka.values()]

    def of_every_broker(self, names: Collection[str] | None) -> list[ConfigEntry]:
        """Give what was set for every broker at run time; what is in effect is each one's own."""
        given = self.image.broker_configs.get(None, {})
        source = Source.DYNAMIC_DEFAULT_BROKER
        settings = self.static.with_overrides(given, source=source)
        shown = [name for name in given if names is None or name in names]
        return [
            *(entry for entry in settings.describe(shown) if entry.source is source),
            *_foreign(settings, given, source, names),
        ]

    def of_mirror(self, name: str, names: Collection[str] | None) -> list[ConfigEntry]:
        """Give a mirror's settings, all or those named."""
        config = self.image.mirrors[name].config
        settings = mirror_settings(config)
        return [
            *settings.describe(names),
            *_foreign(settings, config, Source.CLUSTER_MIRROR, names),
        ]


def _foreign(
    settings: Settings,
    given: Mapping[str, str],
    source: Source,
    names: Collection[str] | None,
) -> Iterator[ConfigEntry]:
    """Give what was set of Kafka's settings that we do not have; it may be secret, so no value.

    Only a topic's is shown: there Kafka has no secrets.
    """
    for name, text in given.items():
        if name in settings.declared.by_name or (names is not None and name not in names):
            continue
        is_sensitive = source is not Source.TOPIC
        value = None if is_sensitive else text
        yield ConfigEntry(
            name=name,
            value=value,
            source=source,
            kind=Kind.STRING,
            doc=FOREIGN_DOC,
            is_read_only=source is Source.STATIC_BROKER,
            is_sensitive=is_sensitive,
            synonyms=(ConfigSynonym(name, value, source),),
        )
