"""Incremental fetch sessions (KIP-227): a reader names its partitions once, then only what changes.

How a Fetch goes through here::

    context = sessions.begin(request, uses_topic_ids=..., is_follower=..., now_ms=...)
    while True:
        for partition in context.to_read():
            context.offer(partition, answer, is_drained=...)
        ...                       # enough, or nothing came in time? else wait, and look again
    session_id, topics = context.finish()

A poll costs what changed, not what is watched: a session keeps the partitions that must be looked
at (``ready``), the rest is known to be as the reader last heard. So whoever changes what readers
may see of a partition must call ``mark_changed``; it gives the sessions to wake.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from twinlog.model.errors import ApiError, ErrorCode
from twinlog.wire.messages.fetch import (
    FetchedPartition,
    FetchedTopic,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)

NO_SESSION: Final = 0
FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
EPOCH_MAX: Final = 0x7FFF_FFFF
EVICTION_MS: Final = 120_000

TopicKey = str | UUID
PartitionKey = tuple[TopicKey, int]


@dataclass(slots=True, eq=False)
class SessionPartition:
    """A partition as a reader asked for it, and what that reader last heard of it."""

    topic: str
    topic_id: UUID
    asked: FetchPartition
    sent_high_watermark: int = -1
    sent_log_start: int = -1

    def is_news(self, answer: FetchedPartition) -> bool:
        """Tell whether the reader must hear of ``answer``."""
        return (
            answer.high_watermark != self.sent_high_watermark
            or answer.log_start_offset != self.sent_log_start
            or must_be_repeated(answer)
        )


def must_be_repeated(answer: FetchedPartition) -> bool:
    """Tell whether the answer stands until the reader reacts: records, an error, a divergence."""
    return (
        answer.error_code != ErrorCode.NONE
        or (answer.records is not None and len(answer.records) > 0)
        or answer.diverging_epoch.epoch >= 0
        or answer.preferred_read_replica >= 0
    )


@dataclass(slots=True, eq=False)
class FetchSession:
    """What one reader follows, and which of it must be looked at for its next answer.

    Invariant: a partition that is not ``ready`` is drained and as the reader last heard, or an
    answer that says how it is now is on its way. ``ready`` is a dict for its order: who was given
    records goes to the end, so that the others are not starved.
    """

    id: int
    uses_topic_ids: bool
    is_follower: bool
    created_ms: int
    used_ms: int
    isolation_level: int
    epoch: int = 1
    partitions: dict[PartitionKey, SessionPartition] = field(default_factory=dict)
    ready: dict[SessionPartition, None] = field(default_factory=dict)


class FetchContext:
    """One Fetch request on its way to its answer."""

    __slots__ = ("_answers", "is_full", "session")

    def __init__(self, session: FetchSession, *, is_full: bool) -> None:
        """Answer for ``session``; ``is_full`` when every partition must be in the answer."""
        self.session: Final = session
        self.is_full: Final = is_full
        self._answers: Final[dict[SessionPartition, FetchedPartition]] = {}

    @property
    def is_cached(self) -> bool:
        """Whether changes are marked in the session; without one, everything is looked at anew."""
        return self.session.id != NO_SESSION

    def to_read(self) -> Iterable[SessionPartition]:
        """Give the partitions to look at now, in the order in which they get records."""
        if self.is_cached:
            return tuple(self.session.ready)
        return self.session.partitions.values()

    def offer(
        self, partition: SessionPartition, answer: FetchedPartition, *, is_drained: bool
    ) -> bool:
        """Take in how a partition is now; True if that will be in the answer.

        ``is_drained`` says that the reader has all it may see. Records left out for lack of room
        make it False.
        """
        is_sent = self.is_full or partition.is_news(answer)
        if is_sent:
            self._answers[partition] = answer
        else:
            self._answers.pop(partition, None)
        if is_drained and not must_be_repeated(answer):
            self.session.ready.pop(partition, None)
        return is_sent

    def finish(self) -> tuple[int, tuple[FetchedTopic, ...]]:
        """Give session id and topics of the answer, and remember what the reader now knows."""
        ready = self.session.ready
        by_topic: dict[TopicKey, list[FetchedPartition]] = {}
        topics: list[SessionPartition] = []
        for partition, answer in self._answers.items():
            partition.sent_log_start = answer.log_start_offset
            is_error = answer.error_code != ErrorCode.NONE
            # After an error the reader shall hear how the partition is, whatever it heard before.
            partition.sent_high_watermark = -1 if is_error else answer.high_watermark
            if answer.records is not None and len(answer.records) > 0 and partition in ready:
                del ready[partition]
                ready[partition] = None
            key = _topic_key(partition.topic, partition.topic_id)
            if key not in by_topic:
                by_topic[key] = []
                topics.append(partition)
            by_topic[key].append(answer)
        return self.session.id, tuple(
            FetchedTopic(
                topic=first.topic,
                topic_id=first.topic_id,
                partitions=tuple(by_topic[_topic_key(first.topic, first.topic_id)]),
            )
            for first in topics
        )


class FetchSessions:
    """All sessions of a broker, at most ``slots`` of them."""

    def __init__(self, slots: int, random_id: Callable[[], int]) -> None:
        """Begin with none; ``random_id`` gives numbers from 1 to 2^31-1."""
        self._slots: Final = slots
        self._random_id: Final = random_id
        self._sessions: Final[dict[int, FetchSession]] = {}  # the longest unused first
        self._watchers: Final[dict[PartitionKey, dict[FetchSession, SessionPartition]]] = {}
        self.evictions = 0

    def __len__(self) -> int:
        """Give how many sessions there are."""
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        """The number of partitions in all sessions together."""
        return sum(len(session.partitions) for session in self._sessions.values())

    def begin(
        self, request: FetchRequest, *, uses_topic_ids: bool, is_follower: bool, now_ms: int
    ) -> FetchContext:
        """Find or make the session of a request, and bring it up to date with the request.

        Raises ApiError FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH or
        FETCH_SESSION_TOPIC_ID_ERROR; the reader then begins anew with a full request.
        """
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._close(request.session_id)
            new = FetchSession(
                NO_SESSION, uses_topic_ids, is_follower, now_ms, now_ms, request.isolation_level
            )
            _add_all(new, request.topics)
            if request.session_epoch == INITIAL_EPOCH and new.partitions:
                self._open(new, now_ms)
            return FetchContext(new, is_full=True)
        session = self._find(request, uses_topic_ids=uses_topic_ids)
        session.epoch = session.epoch + 1 if session.epoch < EPOCH_MAX else 1
        session.used_ms = now_ms
        self._sessions[session.id] = self._sessions.pop(session.id)
        for key in _add_all(session, request.topics):
            self._watchers.setdefault(key, {})[session] = session.partitions[key]
        self._forget(session, request.forgotten_topics)
        if session.isolation_level != request.isolation_level:
            # What was drained for the one may not be for the other.
            session.isolation_level = request.isolation_level
            session.ready = dict.fromkeys(session.partitions.values())
        if not session.partitions:
            self._close(session.id)
            session.id = NO_SESSION  # which tells the reader that it is over
        return FetchContext(session, is_full=False)

    def mark_changed(self, topic: str, topic_id: UUID, partition: int) -> tuple[FetchSession, ...]:
        """Note that readers may see something else of a partition; give the sessions to wake.

        To be called when its high watermark, stable offset, log start, leader or existence changes,
        and for a session's follower also when its log end does.
        """
        if not self._watchers:
            return ()  # told at every append
        by_name = self._watchers.get((topic, partition))
        by_id = self._watchers.get((topic_id, partition))
        if by_name is None and by_id is None:
            return ()
        watchers = {**(by_name or {}), **(by_id or {})}
        for session, watched in watchers.items():
            session.ready[watched] = None
        return tuple(watchers)

    def _find(self, request: FetchRequest, *, uses_topic_ids: bool) -> FetchSession:
        session = self._sessions.get(request.session_id)
        if session is None:
            raise ApiError(
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"no fetch session {request.session_id}"
            )
        if session.epoch != request.session_epoch:
            raise ApiError(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                f"fetch session {session.id} is at epoch {session.epoch}, "
                f"not {request.session_epoch}",
            )
        if session.uses_topic_ids != uses_topic_ids:
            raise ApiError(
                ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
                f"fetch session {session.id} names its topics by "
                f"{'id' if session.uses_topic_ids else 'name'}",
            )
        return session

    def _forget(self, session: FetchSession, topics: Iterable[ForgottenTopic]) -> None:
        for topic in topics:
            for index in topic.partitions:
                key = (_topic_key(topic.topic, topic.topic_id), index)
                partition = session.partitions.pop(key, None)
                if partition is not None:
                    session.ready.pop(partition, None)
                    self._unwatch(session, key)

    def _open(self, session: FetchSession, now_ms: int) -> None:
        """Give the session an id if there is a slot for it; without one it is used once."""
        if len(self._sessions) >= self._slots and not self._evict_for(session, now_ms):
            return
        while session.id == NO_SESSION or session.id in self._sessions:
            session.id = self._random_id()
        self._sessions[session.id] = session
        for key, partition in session.partitions.items():
            self._watchers.setdefault(key, {})[session] = partition

    def _evict_for(self, new: FetchSession, now_ms: int) -> bool:
        """Close a session that matters less than ``new``, by Kafka's rules; False if none does."""
        victim = next(iter(self._sessions.values()), None)
        if victim is None:
            return False  # no slots at all
        if now_ms - victim.used_ms <= EVICTION_MS:
            victim = min(self._sessions.values(), key=_weight)
            is_old = now_ms - victim.created_ms > EVICTION_MS
            outranks = new.is_follower and not victim.is_follower
            if not outranks and not (is_old and _weight(victim) < _weight(new)):
                return False
        self._close(victim.id)
        self.evictions += 1
        return True

    def _close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            for key in session.partitions:
                self._unwatch(session, key)

    def _unwatch(self, session: FetchSession, key: PartitionKey) -> None:
        watchers = self._watchers[key]
        del watchers[session]
        if not watchers:
            del self._watchers[key]


def _weight(session: FetchSession) -> tuple[bool, int]:
    """Order sessions by what it costs to lose them: followers and large ones most."""
    return session.is_follower, len(session.partitions)


def _topic_key(topic: str, topic_id: UUID) -> TopicKey:
    """Give the one of the two that the request's version carries."""
    return topic or topic_id


def _add_all(session: FetchSession, topics: Iterable[FetchTopic]) -> list[PartitionKey]:
    """Put what a request asks for into its session, ready to be looked at; give what is new."""
    new: list[PartitionKey] = []
    for topic in topics:
        topic_key = _topic_key(topic.topic, topic.topic_id)
        for asked in topic.partitions:
            key = (topic_key, asked.partition)
            partition = session.partitions.get(key)
            if partition is None:
                partition = SessionPartition(topic.topic, topic.topic_id, asked)
                session.partitions[key] = partition
                new.append(key)
            else:
                partition.asked = asked
            session.ready[partition] = None
    return new
