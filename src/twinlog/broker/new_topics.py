"""Creates topics with this broker's defaults: for clients, for itself, and for its mirrors."""

from collections.abc import Mapping
from typing import Final

from twinlog.broker.clock import Clock
from twinlog.broker.facts import Facts
from twinlog.cluster.changes import Change, TopicSet
from twinlog.cluster.configs import broker_settings
from twinlog.cluster.image import ClusterImage
from twinlog.cluster.topics import Chance, TopicDefaults, TopicWish, create_topic
from twinlog.config.broker import DEFAULT_REPLICATION_FACTOR, NODE_ID, NUM_PARTITIONS
from twinlog.config.declare import Settings
from twinlog.config.topic import topic_settings
from twinlog.model.errors import ApiError, ErrorCode, SettingsError
from twinlog.model.ids import BrokerId, TopicId, TopicName

_RING: Final = 1 << 16


class NewTopics:
    """Knows what the rules of ``cluster/topics.py`` ask of the broker: defaults and chance."""

    def __init__(self, facts: Facts, settings: Settings, clock: Clock) -> None:
        self._facts: Final = facts
        self._static: Final = settings
        self._clock: Final = clock

    @property
    def defaults(self) -> TopicDefaults:
        """What a topic gets that leaves its numbers to the broker."""
        settings = self._in_effect
        return TopicDefaults(settings[NUM_PARTITIONS], settings[DEFAULT_REPLICATION_FACTOR])

    @property
    def _in_effect(self) -> Settings:
        """The settings of the broker's file, and over them what was set at run time."""
        return broker_settings(self._static, self._facts.image, BrokerId(self._static[NODE_ID]))

    def chance(self) -> Chance:
        """Give a fresh id and a random place for the first leader."""
        return Chance(TopicId(self._clock.uuid()), int(self._clock.fraction() * _RING))

    def check_config(self, config: Mapping[str, str]) -> None:
        """Raise ApiError INVALID_CONFIG unless a topic can have these overrides."""
        try:
            topic_settings(config, self._in_effect)
        except SettingsError as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from error

    def plan(self, image: ClusterImage, wish: TopicWish) -> TopicSet:
        """Give the change that makes the topic, or raise ApiError."""
        return create_topic(image, wish, self.defaults, self.chance(), self.check_config)

    async def create(self, wish: TopicWish) -> ClusterImage:
        """Make the topic and wait until this broker serves it. Raises ApiError."""
        return await self._facts.change(lambda image: (self.plan(image, wish),))

    async def ensure(
        self, name: TopicName, partition_count: int, config: Mapping[str, str]
    ) -> None:
        """Make an internal topic unless it is there; return when it can be read and written."""

        def plan(image: ClusterImage) -> tuple[Change, ...]:
            if name in image.topics:
                return ()
            return (self.plan(image, TopicWish(name, partition_count, config=config)),)

        await self._facts.change(plan)
