"""DescribeConfigs: v1-4. IncrementalAlterConfigs, ListConfigResources: v0-1. AlterConfigs: v0-2.

Differs from Kafka: resources are topics, brokers and mirrors (type 64, KIP-1279); loggers, client
metrics and groups have no configs here. Of a mirrored topic, only what its mirror does not copy
from the source can be altered. The configs of another broker can be altered, but are described by
that broker only.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from twinlog.broker.config_view import ConfigView
from twinlog.broker.context import Broker, Context
from twinlog.broker.mirrors.audit import tell_altered
from twinlog.broker.mirrors.source import checked_settings
from twinlog.cluster.changes import BrokerConfigSet, Change
from twinlog.cluster.configs import (
    EVERY_BROKER,
    Alteration,
    ResourceKind,
    altered,
    broker_config_set,
    broker_named,
    mirror_config_set,
    topic_config_set,
)
from twinlog.cluster.image import ClusterImage
from twinlog.cluster.mirrors import find_mirror
from twinlog.cluster.topics import check_topic_name, find_topic
from twinlog.config.declare import ConfigEntry
from twinlog.config.mirror import MIRROR, mirror_settings
from twinlog.config.topic import TOPIC, topic_settings
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.wire.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlteredResource,
    ConfigResource,
    ConfigSynonym,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedConfig,
    DescribedResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    ResourceToDescribe,
)

LISTED_KINDS: Final = (ResourceKind.TOPIC, ResourceKind.BROKER, ResourceKind.CLUSTER_MIRROR)


def handle_describe_configs(
    request: DescribeConfigsRequest, context: Context
) -> DescribeConfigsResponse:
    """Tell the settings of each resource, and where their values come from."""
    broker = context.broker
    view = ConfigView(broker.settings, broker.facts.image, broker.broker_id)
    return DescribeConfigsResponse(
        results=tuple(_described(asked, request, view) for asked in request.resources)
    )


def _described(
    asked: ResourceToDescribe, request: DescribeConfigsRequest, view: ConfigView
) -> DescribedResource:
    kind, name = asked.resource_type, asked.resource_name
    try:
        entries = _entries(asked, view)
    except ApiError as error:
        return DescribedResource(
            error_code=error.code,
            error_message=error.why,
            resource_type=kind,
            resource_name=name,
            configs=(),
        )
    return DescribedResource(
        resource_type=kind,
        resource_name=name,
        configs=tuple(_config(entry, request) for entry in entries),
    )


def _entries(asked: ResourceToDescribe, view: ConfigView) -> list[ConfigEntry]:
    name = asked.resource_name
    keys = None if asked.configuration_keys is None else frozenset(asked.configuration_keys)
    match asked.resource_type:
        case ResourceKind.TOPIC:
            check_topic_name(name)
            return view.of_topic(find_topic(view.image, name), keys)
        case ResourceKind.BROKER:
            of = broker_named(view.image, name)
            if of is None:
                return view.of_every_broker(keys)
            if of != view.broker_id:
                raise ApiError(ErrorCode.INVALID_REQUEST, f"Ask broker {of} for its own configs.")
            return view.of_broker(keys)
        case ResourceKind.CLUSTER_MIRROR:
            return view.of_mirror(find_mirror(view.image, name).name, keys)
        case kind:
            raise _no_configs(kind)


def _no_configs(kind: int) -> ApiError:
    try:
        called = ResourceKind(kind).name
    except ValueError:
        called = str(kind)
    return ApiError(ErrorCode.INVALID_REQUEST, f"Resources of type {called} have no configs here.")


def _config(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribedConfig:
    return DescribedConfig(
        name=entry.name,
        value=entry.value,
        read_only=entry.is_read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=tuple(
            ConfigSynonym(name=s.name, value=s.value, source=s.source) for s in entry.synonyms
        )
        if request.include_synonyms
        else (),
        config_type=entry.kind,
        documentation=entry.doc if request.include_documentation else None,
    )


@dataclass(frozen=True, slots=True)
class Wish:
    """The new configs of one resource: either edits of those it has, or all of them anew."""

    kind: int
    name: str
    edits: tuple[Alteration, ...] | None
    all_anew: dict[str, str] | None


async def handle_incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, context: Context
) -> IncrementalAlterConfigsResponse:
    """Edit the configs of each resource, or only tell whether that could be."""
    wishes = [
        Wish(
            resource.resource_type,
            resource.resource_name,
            tuple(Alteration(c.name, c.config_operation, c.value) for c in resource.configs),
            None,
        )
        for resource in request.resources
    ]
    responses = await _alter(wishes, context, validate_only=request.validate_only)
    return IncrementalAlterConfigsResponse(responses=responses)


async def handle_alter_configs(
    request: AlterConfigsRequest, context: Context
) -> AlterConfigsResponse:
    """Give each resource other configs; those it had and that are not named are gone."""
    wishes = [
        Wish(
            resource.resource_type,
            resource.resource_name,
            None,
            {c.name: c.value for c in resource.configs if c.value is not None},
        )
        for resource in request.resources
    ]
    responses = await _alter(wishes, context, validate_only=request.validate_only)
    return AlterConfigsResponse(responses=responses)


async def _alter(
    wishes: list[Wish], context: Context, *, validate_only: bool
) -> tuple[AlteredResource, ...]:
    """Change all resources together; each comes true or is refused alone."""
    broker = context.broker
    errors: dict[int, ApiError] = {}
    counts = Counter((wish.kind, wish.name) for wish in wishes)

    def decide(image: ClusterImage) -> list[Change]:
        errors.clear()
        changes: list[Change] = []
        for index, wish in enumerate(wishes):
            try:
                if counts[wish.kind, wish.name] > 1:
                    raise ApiError(ErrorCode.INVALID_REQUEST, "Each resource is altered once.")
                changes.append(_change(wish, image, broker))
            except ApiError as error:
                errors[index] = error
        return changes

    if validate_only:
        decide(broker.facts.image)
    else:
        try:
            await broker.facts.change(decide)
        except ApiError as error:  # of the store: none of them came true
            errors = dict.fromkeys(range(len(wishes)), error)
        except BaseException as error:  # the client has gone: they may come true all the same
            _tell_mirrors(wishes, dict.fromkeys(range(len(wishes)), error), context)
            raise
        _tell_mirrors(wishes, errors, context)
    return tuple(_altered(wish, errors.get(index)) for index, wish in enumerate(wishes))


def _tell_mirrors(
    wishes: list[Wish], errors: Mapping[int, BaseException], context: Context
) -> None:
    for index, wish in enumerate(wishes):
        if wish.kind == ResourceKind.CLUSTER_MIRROR:
            tell_altered(wish.name, _named(wish), errors.get(index), context)


def _named(wish: Wish) -> list[str]:
    """Give the names of the settings that were asked to be other ones."""
    return [edit.name for edit in wish.edits or ()] or list(wish.all_anew or ())


def _altered(wish: Wish, error: ApiError | None) -> AlteredResource:
    return AlteredResource(
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else error.why,
        resource_type=wish.kind,
        resource_name=wish.name,
    )


def _change(wish: Wish, image: ClusterImage, broker: Broker) -> Change:
    planners: dict[int, Callable[[Wish, ClusterImage, Broker], Change]] = {
        ResourceKind.TOPIC: _change_of_topic,
        ResourceKind.BROKER: _change_of_broker,
        ResourceKind.CLUSTER_MIRROR: _change_of_mirror,
    }
    planner = planners.get(wish.kind)
    if planner is None:
        raise _no_configs(wish.kind)
    return planner(wish, image, broker)


def _change_of_topic(wish: Wish, image: ClusterImage, broker: Broker) -> Change:
    check_topic_name(wish.name)
    now = find_topic(image, wish.name).config
    static = ConfigView(broker.settings, image, broker.broker_id).broker
    if wish.edits is not None:
        after = altered(TOPIC, now, topic_settings(now, static), wish.edits)
    else:
        after = wish.all_anew or {}
    return topic_config_set(image, wish.name, after, static)


def _change_of_broker(wish: Wish, image: ClusterImage, broker: Broker) -> BrokerConfigSet:
    now = image.broker_configs.get(broker_named(image, wish.name), {})
    if wish.edits is not None:
        effective = ConfigView(broker.settings, image, broker.broker_id).broker
        after = altered(broker.settings.declared, now, effective, wish.edits)
    else:
        after = wish.all_anew or {}
    return broker_config_set(image, wish.name, after, broker.settings)


def _change_of_mirror(wish: Wish, image: ClusterImage, _: Broker) -> Change:
    now = find_mirror(image, wish.name).config
    if wish.edits is not None:
        after = altered(MIRROR, now, mirror_settings(now), wish.edits)
    else:
        after = wish.all_anew or {}
    change = mirror_config_set(image, wish.name, after)
    checked_settings(after)  # also what only a mirror at work can judge, as its rules for ACLs
    return change


def handle_list_config_resources(
    request: ListConfigResourcesRequest, context: Context
) -> ListConfigResourcesResponse:
    """Tell what has configs, by type; v0 asks for client metrics, of which there are none."""
    image = context.broker.facts.image
    if context.api_version == 0:
        return ListConfigResourcesResponse(config_resources=())
    unknown = [kind for kind in request.resource_types if kind not in set(ResourceKind)]
    if unknown:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"No resource type {unknown[0]} is known.")
    names: dict[int, Iterable[str]] = {
        ResourceKind.TOPIC: image.topics,
        ResourceKind.BROKER: [EVERY_BROKER, *(str(broker) for broker in image.brokers)],
        ResourceKind.CLUSTER_MIRROR: image.mirrors,
    }
    return ListConfigResourcesResponse(
        config_resources=tuple(
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in request.resource_types or LISTED_KINDS
            for name in sorted(names.get(kind, ()))
        )
    )
