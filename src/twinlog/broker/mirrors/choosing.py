"""Chooses at a source the topics that names and patterns mean, with what they are begun with."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from twinlog.broker.mirrors.source import NEVER_MIRRORED, SourceCluster
from twinlog.broker.mirrors.source_reads import (
    Overrides,
    Refusals,
    tell_hidden_from_gone,
    told_overrides,
)
from twinlog.config.mirror import matcher
from twinlog.mirroring.topic_sync import SeenTopic
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import TopicName


@dataclass(frozen=True, slots=True)
class Choice:
    """The topics to begin, with the settings they have at the source; the others, and why not."""

    topics: tuple[SeenTopic, ...]
    overrides: Overrides
    refused: Refusals


async def choose_topics(
    source: SourceCluster,
    seen: Mapping[TopicName, SeenTopic],
    names: Iterable[str],
    patterns: Iterable[str],
    is_excluded: Callable[[str], bool],
) -> Choice:
    """Choose among the topics that were seen. Raises PeerUnavailable and ApiError.

    A topic whose settings are not told is not begun: with others it could lose records here.
    """
    chosen: dict[TopicName, SeenTopic] = {}
    refused: Refusals = {}
    unseen: list[TopicName] = []
    patterns = tuple(patterns)
    spelt_out = [name for name in map(TopicName, patterns) if name in seen and is_excluded(name)]
    for name in [*map(TopicName, names), *spelt_out]:
        if is_excluded(name):
            why = _why_excluded(name)
            refused[name] = ApiError(ErrorCode.INVALID_REQUEST, why)
        elif name in seen:
            chosen[name] = seen[name]
        else:
            unseen.append(name)
    matches = matcher(patterns, ())
    for name in sorted(seen):
        if matches(name) and not is_excluded(name):
            chosen[name] = seen[name]
    refused |= await _unseen(source, seen, unseen)
    overrides, untold = await told_overrides(source, chosen)
    topics = tuple(topic for name, topic in chosen.items() if name not in untold)
    return Choice(topics, overrides, {**refused, **untold})


def _why_excluded(name: TopicName) -> str:
    if name in NEVER_MIRRORED:
        return f"topic {name} is internal: each cluster keeps its own, and none is mirrored"
    return (
        f"topic {name} matches topics.exclude of the mirror. A stop puts there what it was given: "
        "start it by the same pattern, or alter topics.exclude (kafka-configs.sh --entity-type "
        "cluster-mirrors)"
    )


async def _unseen(
    source: SourceCluster, seen: Mapping[TopicName, SeenTopic], names: Iterable[TopicName]
) -> Refusals:
    suspects = {name: f"there is no topic {name} at the source" for name in names}
    _, hidden = await tell_hidden_from_gone(source, suspects, seen)
    return {
        name: ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, hidden[name])
        if name in hidden
        else ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, why)
        for name, why in suspects.items()
    }
