"""Edits of the configs of topics, brokers and mirrors: the rules, giving changes or ApiError."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Final

from twinlog.cluster.changes import BrokerConfigSet, MirrorSet, TopicConfigSet
from twinlog.cluster.facts import TopicFact
from twinlog.cluster.image import ClusterImage
from twinlog.cluster.mirrors import find_mirror
from twinlog.cluster.topics import find_topic
from twinlog.config.declare import Setting, Settings, SettingSet, Source, Update
from twinlog.config.kinds import Kind
from twinlog.config.mirror import (
    BOOTSTRAP_SERVERS,
    SOURCE_CLUSTER_ID,
    TOPIC_PROPERTIES_EXCLUDE,
    mirror_settings,
)
from twinlog.config.topic import topic_settings
from twinlog.model.errors import ApiError, ErrorCode, SettingsError
from twinlog.model.ids import BrokerId

EVERY_BROKER: Final = ""


class ResourceKind(IntEnum):
    """What has configs, with Kafka's numbers; that of mirrors is the next free one (KIP-1279)."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32
    CLUSTER_MIRROR = 64


class Operation(IntEnum):
    """What IncrementalAlterConfigs does with a value (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class Alteration:
    """One edit of one setting."""

    name: str
    operation: int
    value: str | None = None


def altered(
    declared: SettingSet,
    overrides: Mapping[str, str],
    effective: Settings,
    alterations: Iterable[Alteration],
) -> dict[str, str]:
    """Give the overrides after the edits, or raise ApiError. What comes out is still to be checked.

    A list that is not overridden is appended to, or taken from, as it is in effect.
    """
    after = dict(overrides)
    seen: set[str] = set()
    for edit in alterations:
        if edit.name in seen:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"{edit.name} is altered twice in one request."
            )
        seen.add(edit.name)
        if edit.operation == Operation.DELETE:
            after.pop(edit.name, None)
        elif edit.value is None:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{edit.name} is given no value.")
        elif edit.operation == Operation.SET:
            after[edit.name] = edit.value
        elif edit.operation in (Operation.APPEND, Operation.SUBTRACT):
            after[edit.name] = _edited_list(declared, after, effective, edit)
        else:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"{edit.name}: no operation {edit.operation} is known."
            )
    return after


def topic_config_set(
    image: ClusterImage, name: str, config: Mapping[str, str], broker: Settings
) -> TopicConfigSet:
    """Give a topic's new overrides, all of them, or raise ApiError."""
    topic = find_topic(image, name)
    _checked(lambda: topic_settings(config, broker))
    _check_mirror_allows(image, topic, config)
    return TopicConfigSet(topic.name, dict(config))


def broker_config_set(
    image: ClusterImage, name: str, config: Mapping[str, str], static: Settings
) -> BrokerConfigSet:
    """Give the dynamic settings of a broker, or of every broker (name ""), or raise ApiError."""
    broker_id = broker_named(image, name)
    read_only = sorted(key for key in config if not _is_dynamic(static.declared, key, broker_id))
    if read_only:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Cannot update these configs dynamically: {', '.join(read_only)}. "
            "Set them in server.properties and restart the broker.",
        )
    source = Source.DYNAMIC_DEFAULT_BROKER if broker_id is None else Source.DYNAMIC_BROKER
    _checked(lambda: static.with_overrides(config, source=source))
    return BrokerConfigSet(broker_id, dict(config))


def mirror_config_set(image: ClusterImage, name: str, config: Mapping[str, str]) -> MirrorSet:
    """Give a mirror with another config, or raise ApiError."""
    mirror = find_mirror(image, name)
    if not config.get(BOOTSTRAP_SERVERS.name):
        raise ApiError(ErrorCode.INVALID_CONFIG, f"Mirror {name} needs {BOOTSTRAP_SERVERS.name}.")
    _checked(lambda: mirror_settings(config))
    source, known = config.get(SOURCE_CLUSTER_ID.name), mirror.source_cluster_id
    if source and known and source != known:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Mirror {name} is of cluster {known}, not of {source}: a mirror of "
            "another cluster is another mirror.",
        )
    return MirrorSet(replace(mirror, config=dict(config)))


def broker_named(image: ClusterImage, name: str) -> BrokerId | None:
    """Give the broker a config resource names; None for every broker. Raises ApiError."""
    if name == EVERY_BROKER:
        return None
    if name.isascii() and name.isdecimal() and int(name) in image.brokers:
        return BrokerId(int(name))
    raise ApiError(ErrorCode.INVALID_REQUEST, f"{name[:100]!r} is no broker of this cluster.")


def broker_settings(static: Settings, image: ClusterImage, broker: BrokerId) -> Settings:
    """Give the settings in effect on a broker: its file's, and over them what was set since."""
    settings = static
    for of, source in ((None, Source.DYNAMIC_DEFAULT_BROKER), (broker, Source.DYNAMIC_BROKER)):
        overrides = image.broker_configs.get(of)
        if overrides:
            settings = settings.with_overrides(overrides, source=source)
    return settings


def _edited_list(
    declared: SettingSet, overrides: Mapping[str, str], effective: Settings, edit: Alteration
) -> str:
    setting = declared.find(edit.name)
    if setting is None or setting.kind is not Kind.LIST:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"{edit.name} is no list, so nothing can be appended to it or taken from it.",
        )
    now = overrides.get(edit.name)
    entries = _words(_effective_text(setting, effective) if now is None else now)
    named = _words(edit.value or "")
    if edit.operation == Operation.APPEND:
        return ",".join([*entries, *(word for word in named if word not in entries)])
    return ",".join(word for word in entries if word not in named)


def _effective_text(setting: Setting[Any], effective: Settings) -> str:
    return setting.format(effective[setting]) or ""


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _is_dynamic(declared: SettingSet, name: str, broker: BrokerId | None) -> bool:
    setting = declared.find(name)
    if setting is None:
        return declared.is_foreign(name)  # taken and stored, without effect, as in the file
    if setting.update is Update.PER_BROKER:
        return broker is not None
    return setting.update is Update.CLUSTER_WIDE


def _check_mirror_allows(image: ClusterImage, topic: TopicFact, config: Mapping[str, str]) -> None:
    """Raise ApiError when an edit touches what a mirror copies from the source."""
    mirror_name = topic.read_only_for
    if mirror_name is None:
        return
    own = mirror_settings(find_mirror(image, mirror_name).config)[TOPIC_PROPERTIES_EXCLUDE]
    touched = sorted(
        key
        for key in topic.config.keys() | config.keys()
        if topic.config.get(key) != config.get(key) and key not in own
    )
    if touched:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"Topic {topic.name} has {', '.join(touched)} from the source of mirror "
            f"{mirror_name}. Alter it there, or add it to the mirror's "
            f"{TOPIC_PROPERTIES_EXCLUDE.name}, or stop the mirror for this topic.",
        )


def _checked(make: Callable[[], object]) -> None:
    """Raise ApiError INVALID_CONFIG, with the reason, when the settings cannot be."""
    try:
        make()
    except SettingsError as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from error
