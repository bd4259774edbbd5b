"""What is told of mirrors for later: each change of a partition's state, each thing asked for.

Values of settings are never told here, since some are secrets; their names are.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, Final, Protocol, TypeVar

from twinlog.broker.context import Context
from twinlog.broker.partitions import Partition
from twinlog.mirroring.partition import PartitionMirror
from twinlog.mirroring.states import MirrorState
from twinlog.model.errors import ApiError, ErrorCode, error_name
from twinlog.telemetry.audit import state_change_logger
from twinlog.wire.messages import mirrors

log = state_change_logger()

TOPICS_TOLD_MAX: Final = 20
UNFINISHED: Final = "not finished: its client has gone, or the broker stops; it may be done"
_S = MirrorState
_CAUSES: Final[Mapping[tuple[MirrorState | None, MirrorState], str]] = {
    (None, _S.LOG_ALIGNMENT): "asked to be MIRRORING",
    (None, _S.EPOCH_FENCING): "the source's leader epoch has come close to the one here",
    (None, _S.ULE_RECOVERY): "the source has elected an unclean leader: both logs had parted",
    (None, _S.PAUSING): "asked to be PAUSED",
    (None, _S.PAUSED): "nothing is fetched any more",
    (None, _S.STOPPING): "asked to be STOPPED",
    (None, _S.STOPPED): "the stop is done",
    (_S.LOG_ALIGNMENT, _S.MIRRORING): "both logs are aligned",
    (_S.EPOCH_FENCING, _S.MIRRORING): "the leader epoch here was raised",
    (_S.ULE_RECOVERY, _S.MIRRORING): "every replica has cut off what the source does not have",
    (_S.PAUSED, _S.MIRRORING): "asked to be MIRRORING",
}
"""Why a partition came into a state: from a certain one, or from whatever it was (None)."""

Answer = TypeVar("Answer")


class Asked(Protocol):
    """A request about one mirror."""

    @property
    def mirror_name(self) -> str:
        """Which mirror."""
        ...


Request = TypeVar("Request", bound=Asked)


def tell_taken_up(mirror: str, partition: Partition, machine: PartitionMirror) -> None:
    """Tell that this broker goes on with a partition, in the state that was durable."""
    fields = {"state": machine.state.name, **_fields(partition, machine)}
    log.info("mirror partition taken up", extra={**_of(mirror, partition), **fields})


def tell_state(
    mirror: str, partition: Partition, before: MirrorState, machine: PartitionMirror
) -> None:
    """Tell a change of state that is durable by now."""
    fields = {
        **_of(mirror, partition),
        "from": before.name,
        "to": machine.state.name,
        "cause": cause_of(before, machine.state, machine.standing.error),
        **_fields(partition, machine),
    }
    last = machine.last_mirror_epoch
    if last is not None:
        fields |= {"last_mirror_epoch": last.epoch, "last_mirror_offset": last.log_end}
    log.info("mirror partition changed state", extra=fields)


def cause_of(before: MirrorState, now: MirrorState, error: str | None) -> str:
    """Say why a partition came into a state."""
    if now == MirrorState.FAILED:
        return error or "unknown"
    if before == MirrorState.FAILED and now != MirrorState.STOPPING:
        return "tried again" + (f" after: {error}" if error else "")
    return _CAUSES.get((before, now)) or _CAUSES.get((None, now), "")


def _of(mirror: str, partition: Partition) -> dict[str, Any]:
    of = partition.of
    return {"mirror": mirror, "topic": of.topic, "partition": of.partition}


def _fields(partition: Partition, machine: PartitionMirror) -> dict[str, Any]:
    return {
        "state_epoch": machine.standing.state_epoch,
        "leader_epoch": partition.leader_epoch,
        "log_start": partition.log.start,
        "log_end": partition.log.end,
        "source_offset": machine.lag.source_offset,
    }


def audited(
    verb: str,
) -> Callable[
    [Callable[[Request, Context], Awaitable[Answer]]],
    Callable[[Request, Context], Awaitable[Answer]],
]:
    """Tell of each request who asked for what of which mirror, and what came of it."""

    def wrapped(
        handle: Callable[[Request, Context], Awaitable[Answer]],
    ) -> Callable[[Request, Context], Awaitable[Answer]]:
        @wraps(handle)
        async def handled(request: Request, context: Context) -> Answer:
            asked = {"mirror": request.mirror_name, **_asked(request)}
            with told_if_unfinished(verb, context, asked):
                answer = await handle(request, context)
            tell_asked(verb, context, {**asked, **_outcome(answer)})
            return answer

        return handled

    return wrapped


@contextmanager
def told_if_unfinished(verb: str, context: Context, asked: Mapping[str, Any]) -> Iterator[None]:
    """Tell who asked for something also if nobody is left to be answered.

    A client that goes ends its request, and what it asked for may have come true by then.
    """
    try:
        yield
    except BaseException:
        tell_asked(verb, context, {**asked, "error": UNFINISHED})
        raise


def tell_asked(verb: str, context: Context, asked: Mapping[str, Any]) -> None:
    """Tell who asked for something."""
    who = {
        "principal": context.peer.principal,
        "client_id": context.client_id,
        "address": str(context.peer),
    }
    log.info("mirror was asked", extra={"verb": verb, **asked, **who})


def tell_altered(
    mirror: str, settings: Sequence[str], error: BaseException | None, context: Context
) -> None:
    """Tell who gave other values to which settings of a mirror."""
    asked = {"mirror": mirror, "settings": _some(settings)}
    if error is not None:
        asked["error"] = error_name(error.code) if isinstance(error, ApiError) else UNFINISHED
    tell_asked("alter", context, asked)


def tell_by_itself(verb: str, mirror: str, topics: Sequence[str], why: str) -> None:
    """Tell what a mirror has asked of its topics without an operator."""
    fields = {"verb": verb, "mirror": mirror, "topics": _some(topics), "why": why}
    log.info("mirror asked by itself", extra=fields)


def _asked(request: Asked) -> dict[str, Any]:
    """Give what a request names: topics, patterns, settings."""
    found: dict[str, Any] = {}
    match request:
        case mirrors.CreateClusterMirrorRequest():
            found["settings"] = _some([entry.name for entry in request.config])
        case mirrors.StartMirrorTopicsRequest():
            patterns = [*request.include_patterns]
            patterns += [f"not {pattern}" for pattern in request.exclude_patterns]
            found["patterns"] = _some(patterns)
        case mirrors.StopMirrorTopicsRequest():
            found["patterns"] = _some(request.patterns)
        case _:
            pass
    decided_at: int = getattr(request, "state_offset", -1)
    if decided_at >= 0:
        found["decided_at"] = decided_at
    return found


def _outcome(answer: Any) -> dict[str, Any]:
    """Give what came of a request: for which topics it was done, and which were refused."""
    found: dict[str, Any] = {}
    if isinstance(answer, mirrors.MirrorTopicsResponse):
        done = [topic.topic_name for topic in answer.topics if not topic.error_code]
        refused = [
            f"{topic.topic_name}: {error_name(topic.error_code)}"
            for topic in answer.topics
            if topic.error_code
        ]
        found["topics"] = _some(done)
        if refused:
            found["refused"] = _some(refused)
    if answer.error_code != ErrorCode.NONE:
        found["error"] = error_name(answer.error_code)
    return found


def _some(words: Sequence[str]) -> str:
    """Give the first few, and how many more there are."""
    more = len(words) - TOPICS_TOLD_MAX
    told = ", ".join(words[:TOPICS_TOLD_MAX])
    return f"{told} and {more} more" if more > 0 else told
