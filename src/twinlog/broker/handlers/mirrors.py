"""CreateClusterMirror, Start/Stop/Pause/Resume/RecoverMirrorTopics, List/Describe/Delete: v0.

Differs from the proposal: patterns are resolved here, against the source for a start and against
the mirror's own topics for everything else; a stop is taken in every state and needs no source;
what an operator asked for is noted at once and carried out by the partitions' leaders.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final

from twinlog.broker.context import Broker, Context
from twinlog.broker.mirrors.asked_topics import (
    Results,
    ask_topics,
    check_decided_at,
    stop_topics,
)
from twinlog.broker.mirrors.audit import audited
from twinlog.broker.mirrors.choosing import choose_topics
from twinlog.broker.mirrors.descriptions import (
    describe_mirror,
    forget_partitions,
    keys_of,
    known_partitions,
    state_of,
)
from twinlog.broker.mirrors.letting_go import LettingGo
from twinlog.broker.mirrors.own_topics import start_rule
from twinlog.broker.mirrors.source import (
    SourceCluster,
    checked_settings,
    identify,
    topic_excluder,
)
from twinlog.broker.mirrors.source_reads import seen_topics
from twinlog.cluster.changes import Change
from twinlog.cluster.facts import DesiredState, MirrorFact
from twinlog.cluster.image import ClusterImage
from twinlog.cluster.mirrors import (
    check_mirror_name,
    create_mirror,
    delete_mirror,
    find_mirror,
    pause_topic,
    resume_topic,
    with_started_patterns,
)
from twinlog.config import mirror as keys
from twinlog.mirroring.states import MirrorState
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import TopicName, TopicPartition
from twinlog.network.exchange import PeerUnavailable
from twinlog.wire.messages.mirrors import (
    CreateClusterMirrorRequest,
    CreateClusterMirrorResponse,
    DeleteClusterMirrorRequest,
    DeleteClusterMirrorResponse,
    DescribeClusterMirrorsRequest,
    DescribeClusterMirrorsResponse,
    DescribedMirror,
    ListClusterMirrorsRequest,
    ListClusterMirrorsResponse,
    ListedMirror,
    MirrorTopicResult,
    MirrorTopicsResponse,
    PauseMirrorTopicsRequest,
    RecoverMirrorTopicsRequest,
    ResumeMirrorTopicsRequest,
    StartMirrorTopicsRequest,
    StopMirrorTopicsRequest,
)

BOOTSTRAP: Final = keys.BOOTSTRAP_SERVERS.name
LISTED_BY_DEFAULT: Final = (DesiredState.MIRRORING.name, DesiredState.PAUSED.name)


@audited("create")
async def handle_create_cluster_mirror(
    request: CreateClusterMirrorRequest, context: Context
) -> CreateClusterMirrorResponse:
    """Check the config, reach the source, learn its cluster id; only then is there a mirror."""
    broker, name = context.broker, request.mirror_name
    config = {entry.name: entry.value for entry in request.config if entry.value is not None}
    try:
        check_mirror_name(name)
        if name in broker.facts.image.mirrors:
            create_mirror(broker.facts.image, MirrorFact(name, config, ""))
        settings = checked_settings(config)
        cluster_id = await identify(name, settings, broker.broker_id, broker.clock.fraction())
        fact = MirrorFact(name, config, cluster_id)
        await broker.facts.change(lambda image: create_mirror(image, fact))
    except ApiError as error:
        return CreateClusterMirrorResponse(error_code=error.code, error_message=error.why)
    return CreateClusterMirrorResponse()


@audited("delete")
async def handle_delete_cluster_mirror(
    request: DeleteClusterMirrorRequest, context: Context
) -> DeleteClusterMirrorResponse:
    """Delete a mirror of which every partition is STOPPED."""
    broker, name = context.broker, request.mirror_name
    try:
        find_mirror(broker.facts.image, name)
        looked_at: int = broker.facts.image_revision
        if request.state_offset >= 0:
            looked_at = min(looked_at, request.state_offset)
        known = await known_partitions(broker)
        for topic in broker.facts.image.topics_of_mirror(name):
            for of in keys_of(name, topic):
                state = state_of(known, of)
                if state not in (MirrorState.STOPPED, MirrorState.UNKNOWN):
                    raise ApiError(
                        ErrorCode.INVALID_CLUSTER_MIRROR_STATE,
                        f"partition {topic.name}-{of.partition} of mirror {name} is "
                        f"{state.name}; a mirror is deleted when all its partitions are STOPPED",
                    )

        def decide(image: ClusterImage) -> tuple[Change, ...]:
            for topic in image.topics_of_mirror(name):
                check_decided_at(broker, topic.name, looked_at)
            return delete_mirror(image, name)

        await broker.facts.change(decide)
    except ApiError as error:
        return DeleteClusterMirrorResponse(error_code=error.code, error_message=error.why)
    await forget_partitions(broker, name)
    return DeleteClusterMirrorResponse()


@audited("start")
async def handle_start_mirror_topics(
    request: StartMirrorTopicsRequest, context: Context
) -> MirrorTopicsResponse:
    """Start the named topics and those that the patterns match at the source."""
    broker, name = context.broker, request.mirror_name
    try:
        mirror = find_mirror(broker.facts.image, name)
        names = [topic.topic_name for topic in request.topics]
        _check_patterns([*names, *request.include_patterns, *request.exclude_patterns])
        filters = with_started_patterns(
            mirror, [*names, *request.include_patterns], request.exclude_patterns
        ).mirror
        results = await _start(broker, filters, request)
    except ApiError as error:
        return MirrorTopicsResponse(error_code=error.code, error_message=error.why)
    broker.mirrors.nudge(name)
    return _response(results)


def _kept(request: StartMirrorTopicsRequest, results: Results) -> list[str]:
    """Give what a start adds to the filters: what it refused must not be begun by them later."""
    failed = {topic for topic, error in results.items() if error is not None}
    denied = {topic for topic in failed if _is_denied(results[topic])}
    names = [one.topic_name for one in request.topics]
    return [
        *(one for one in names if TopicName(one) not in failed),
        *(one for one in request.include_patterns if TopicName(one) not in failed - denied),
    ]


def _is_denied(error: ApiError | None) -> bool:
    """Tell whether it may be begun as soon as it is permitted at the source."""
    return error is not None and error.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def _start(broker: Broker, mirror: MirrorFact, request: StartMirrorTopicsRequest) -> Results:
    """Resolve names and patterns at the source, then start what is there."""
    names, patterns = [t.topic_name for t in request.topics], request.include_patterns
    settings = checked_settings(mirror.config)
    seed, cluster_id = broker.clock.fraction(), mirror.source_cluster_id
    source = SourceCluster(mirror.name, settings, broker.broker_id, seed, cluster_id)
    try:
        seen = seen_topics(await source.peers.refresh(None))
        choice = await choose_topics(source, seen, names, patterns, topic_excluder(settings))
    except PeerUnavailable as error:
        raise ApiError(
            ErrorCode.BROKER_NOT_AVAILABLE,
            f"the source of mirror {mirror.name} cannot be reached: {error}",
        ) from error
    finally:
        await source.close()
    excluded: tuple[str, ...] = settings[keys.TOPIC_PROPERTIES_EXCLUDE]
    chosen = [topic.name for topic in choice.topics]
    letting_go = await LettingGo.look(broker, mirror.name, chosen)
    rule = start_rule(broker, mirror.name, choice.topics, choice.overrides, frozenset(excluded))

    def keep_filters(image: ClusterImage, started: Results) -> Iterable[Change]:
        # With the start itself: a look by the filters of before would stop the topic again.
        kept = _kept(request, {**choice.refused, **started})
        yield with_started_patterns(find_mirror(image, mirror.name), kept, request.exclude_patterns)

    started = await ask_topics(
        broker, chosen, letting_go.rule(rule), also=keep_filters, decided_at=request.state_offset
    )
    return {**choice.refused, **started}


@audited("stop")
async def handle_stop_mirror_topics(
    request: StopMirrorTopicsRequest, context: Context
) -> MirrorTopicsResponse:
    """Ask for topics to be STOPPED, in whatever state they are; the source is not asked."""
    broker, name = context.broker, request.mirror_name
    names = [topic.topic_name for topic in request.topics]
    try:
        _check_patterns([*names, *request.patterns])
        chosen = _own(broker.facts.image, name, names, request.patterns)
        results = await stop_topics(
            broker,
            name,
            chosen,
            patterns=request.patterns or names,
            decided_at=request.state_offset,
        )
    except ApiError as error:
        return MirrorTopicsResponse(error_code=error.code, error_message=error.why)
    return _response(results)


@audited("pause")
async def handle_pause_mirror_topics(
    request: PauseMirrorTopicsRequest, context: Context
) -> MirrorTopicsResponse:
    """Ask for topics to be PAUSED: they stay read-only and fetch no more."""
    return await _ask(context.broker, request, pause_topic)


@audited("resume")
async def handle_resume_mirror_topics(
    request: ResumeMirrorTopicsRequest, context: Context
) -> MirrorTopicsResponse:
    """Ask for paused topics to be MIRRORING again."""
    return await _ask(context.broker, request, resume_topic)


async def _ask(
    broker: Broker,
    request: PauseMirrorTopicsRequest | ResumeMirrorTopicsRequest,
    rule: Callable[[ClusterImage, str, str], tuple[Change, ...]],
) -> MirrorTopicsResponse:
    mirror, names = request.mirror_name, [topic.topic_name for topic in request.topics]
    try:
        chosen = _own(broker.facts.image, mirror, names, ())
        results = await ask_topics(
            broker,
            chosen,
            lambda image, name: rule(image, mirror, name),
            decided_at=request.state_offset,
        )
    except ApiError as error:
        return MirrorTopicsResponse(error_code=error.code, error_message=error.why)
    return _response(results)


@audited("recover")
async def handle_recover_mirror_topics(
    request: RecoverMirrorTopicsRequest, context: Context
) -> MirrorTopicsResponse:
    """Let FAILED partitions of the topics try again, whatever their attempts."""
    broker, mirror = context.broker, request.mirror_name
    try:
        names = [topic.topic_name for topic in request.topics]
        chosen = _own(broker.facts.image, mirror, names, ())
        known = await known_partitions(broker)
    except ApiError as error:
        return MirrorTopicsResponse(error_code=error.code, error_message=error.why)
    results: Results = {}
    wanted: list[TopicPartition] = []
    for name in chosen:
        topic = broker.facts.image.topics.get(name)
        if topic is None or topic.mirror is None or topic.mirror.mirror != mirror:
            why = f"topic {name} does not belong to mirror {mirror}"
            results[name] = ApiError(ErrorCode.TOPIC_NOT_IN_CLUSTER_MIRROR, why)
            continue
        results[name] = None
        wanted += [
            TopicPartition(name, of.partition)
            for of in keys_of(mirror, topic)
            if state_of(known, of) == MirrorState.FAILED
        ]
    broker.mirrors.recover(wanted)
    return _response(results)


def handle_list_cluster_mirrors(
    request: ListClusterMirrorsRequest, context: Context
) -> ListClusterMirrorsResponse:
    """List mirrors with the topics that are asked to be in one of the states."""
    image = context.broker.facts.image
    states = request.desired_state_filter or LISTED_BY_DEFAULT
    for state in states:
        if state not in DesiredState.__members__:
            why = f"{state!r} is none of {', '.join(DesiredState.__members__)}"
            code = ErrorCode.INVALID_REQUEST
            return ListClusterMirrorsResponse(error_code=code, error_message=why)
    mirrors = []
    for name in sorted(image.mirrors):
        fact = image.mirrors[name]
        if request.mirror_name_filter and name not in request.mirror_name_filter:
            continue
        wanted_ids = request.source_cluster_id_filter
        if wanted_ids and fact.source_cluster_id not in wanted_ids:
            continue
        topics = sorted(
            topic.name
            for topic in image.topics_of_mirror(name)
            if topic.mirror is not None and topic.mirror.desired_state.name in states
        )
        mirrors.append(
            ListedMirror(
                mirror_name=name,
                source_bootstrap=fact.config.get(BOOTSTRAP, ""),
                source_cluster_id=fact.source_cluster_id,
                topic_count=len(topics),
                topic_names=tuple(topics) if request.include_topic_names else None,
                state_offset=context.broker.facts.image_revision,
            )
        )
    return ListClusterMirrorsResponse(mirrors=tuple(mirrors))


async def handle_describe_cluster_mirrors(
    request: DescribeClusterMirrorsRequest, context: Context
) -> DescribeClusterMirrorsResponse:
    """Describe mirrors: each partition's state, offsets, error and last mirror epoch."""
    image = context.broker.facts.image
    names = sorted(image.mirrors if request.mirror_names is None else request.mirror_names)
    try:
        known = await known_partitions(context.broker)
    except ApiError as error:
        return DescribeClusterMirrorsResponse(error_code=error.code, error_message=error.why)
    described = []
    for name in names:
        fact = image.mirrors.get(name)
        if fact is None:
            why = f"there is no mirror {name}"
            code = ErrorCode.UNKNOWN_CLUSTER_MIRROR
            described.append(DescribedMirror(error_code=code, error_message=why, mirror_name=name))
        elif request.cluster_id is None or request.cluster_id == fact.source_cluster_id:
            described.append(describe_mirror(context.broker, fact, request.topics, known))
    return DescribeClusterMirrorsResponse(mirrors=tuple(described))


# Names and patterns


def _own(
    image: ClusterImage, mirror: str, names: Iterable[str], patterns: Iterable[str]
) -> list[TopicName]:
    """Give the named topics, and those of the mirror that a pattern matches."""
    find_mirror(image, mirror)
    matches = _matcher(patterns)
    matched = (topic.name for topic in image.topics_of_mirror(mirror) if matches(topic.name))
    return list(dict.fromkeys([*map(TopicName, names), *sorted(matched)]))


def _check_patterns(patterns: Iterable[str]) -> None:
    """Raise ApiError unless all can stand in topics.include and topics.exclude, where they go."""
    for pattern in patterns:
        if "," in pattern:
            raise ApiError(
                ErrorCode.INVALID_REGULAR_EXPRESSION,
                f"{pattern!r} has a comma, which separates patterns: give each by itself, and "
                "write x{1,3} as xx?x?",
            )
        try:
            re.compile(pattern)
        except re.error as error:
            raise ApiError(
                ErrorCode.INVALID_REGULAR_EXPRESSION,
                f"{pattern!r} is not a regular expression: {error}",
            ) from error


def _matcher(patterns: Iterable[str]) -> Callable[[str], bool]:
    return keys.matcher(tuple(patterns), ())


def _response(results: Results) -> MirrorTopicsResponse:
    return MirrorTopicsResponse(
        topics=tuple(
            MirrorTopicResult(topic_name=name)
            if error is None
            else MirrorTopicResult(topic_name=name, error_code=error.code, error_message=error.why)
            for name, error in sorted(results.items())
        )
    )
