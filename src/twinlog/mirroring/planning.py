"""Which partitions a source is asked for next, and what it knows of them by now (KIP-227)."""

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from itertools import islice
from typing import Final

from twinlog.mirroring.effects import FetchFrom
from twinlog.model.ids import NO_OFFSET, NO_TOPIC_ID, Offset, TopicId, TopicName, TopicPartition

PARTITIONS_PER_FETCH_MAX: Final = 10_000
NO_SESSION: Final = 0
FULL_EPOCH: Final = 0
EPOCH_MAX: Final = 0x7FFF_FFFF

IdOf = Callable[[TopicName], TopicId]


@dataclass(frozen=True, slots=True)
class PlannedFetch:
    """One request: everything in the full one, then only what has changed since the one before."""

    session_id: int
    session_epoch: int
    asked: list[tuple[TopicPartition, FetchFrom]]
    forgotten: list[tuple[TopicPartition, TopicId]]
    uses_ids: bool
    """Whether topics are named by their ids."""

    @property
    def is_full(self) -> bool:
        """Whether the source forgets what it knew before."""
        return self.session_epoch == FULL_EPOCH


@dataclass(slots=True)
class _Sent:
    """A partition as the source knows it, and what the source last told of it."""

    order: FetchFrom
    topic_id: TopicId
    high_watermark: Offset = NO_OFFSET
    log_start: Offset = NO_OFFSET


class FetchPlan:
    """The standing fetch orders of one fetcher, and the session with its source.

    One request is under way at a time: ``next``, then for an answer ``heard`` of each partition in
    it and ``answered``, or else ``put_off`` or ``lose_session``. A source without sessions is asked
    for everything each time; it fills its answer in the order of the request and may end it early,
    so a partition that gave records goes behind those that did not: every partition comes to stand
    first.

    What is held back (a throttle is over its rate) keeps its order and its place, and the source
    forgets it until it is let go.

    Invariant: once a session stands, ``_changed`` and ``_forgotten`` are all that sets the orders
    apart from ``_sent``, which is what the source has; held partitions are in neither.
    """

    __slots__ = (
        "_changed",
        "_epoch",
        "_forgotten",
        "_heard_ms",
        "_held",
        "_names",
        "_orders",
        "_sent",
        "_session_id",
        "_unanswered",
        "_unchanged_before",
        "_uses_ids",
    )

    def __init__(self) -> None:
        self._orders: dict[TopicPartition, FetchFrom] = {}
        self._session_id = NO_SESSION
        self._epoch = FULL_EPOCH
        self._uses_ids = False
        self._sent: dict[TopicPartition, _Sent] = {}
        self._names: dict[TopicId, TopicName] = {}
        self._changed: dict[TopicPartition, None] = {}
        self._forgotten: dict[TopicPartition, None] = {}
        self._unanswered: dict[TopicPartition, None] = {}
        """Sent in a turn of theirs from which nothing was heard yet."""
        self._heard_ms = -1
        self._unchanged_before: dict[TopicPartition, int] = {}
        """When the source last had nothing new of what is in no request, or in no answer, now."""
        self._held: Set[TopicPartition] = frozenset()

    def __len__(self) -> int:
        """Give how many partitions are fetched."""
        return len(self._orders)

    @property
    def orders(self) -> list[tuple[TopicPartition, FetchFrom]]:
        """Everything that is fetched."""
        return list(self._orders.items())

    # Orders

    def put(self, of: TopicPartition, order: FetchFrom) -> None:
        """Fetch a partition as ``order`` says from now on; it keeps its place if it has one."""
        if self._orders.get(of) == order:
            return
        self._orders[of] = order
        self._unchanged_before.pop(of, None)
        if of in self._held:
            return
        self._changed[of] = None
        self._forgotten.pop(of, None)

    def drop(self, of: TopicPartition) -> None:
        """Fetch a partition no more."""
        self._orders.pop(of, None)
        self._changed.pop(of, None)
        self._unanswered.pop(of, None)
        self._unchanged_before.pop(of, None)
        if of in self._sent:
            self._forgotten[of] = None

    def move_back(self, of: TopicPartition) -> None:
        """Let a partition stand last in the next full request."""
        order = self._orders.pop(of, None)
        if order is not None:
            self._orders[of] = order

    def hold(self, held: Set[TopicPartition]) -> None:
        """Leave these partitions out of the requests, and those held before in them again."""
        if held is self._held or held == self._held:
            return
        before, self._held = self._held, held
        # In the order of the plan: who gave records last comes last, so that all have their turn.
        for of in self._orders:
            if of in before and of not in held:
                self._changed[of] = None
                self._forgotten.pop(of, None)
            elif of in held and of not in before:
                self._note_unchanged([of])
                self._changed.pop(of, None)
                self._unanswered.pop(of, None)
                if of in self._sent:
                    self._forgotten[of] = None

    @property
    def asks_nothing(self) -> bool:
        """Whether everything that is fetched is held back."""
        return all(of in self._held for of in self._orders)

    # Requests

    def next(self, id_of: IdOf, limit: int = PARTITIONS_PER_FETCH_MAX) -> PlannedFetch:
        """Give the next request; ``id_of`` gives NO_TOPIC_ID for what must be named by its name."""
        if self._epoch != FULL_EPOCH:
            some = list(islice(self._changed, limit))
            if not self._uses_ids or _all_have_ids(some, id_of):
                return self._increment(some, id_of)
        wanted = [of for of in self._orders if of not in self._held] if self._held else self._orders
        some = list(islice(wanted, limit))
        self._uses_ids = _all_have_ids(some, id_of)
        if len(some) < len(wanted):
            for of in some:
                self.move_back(of)
        self._epoch = FULL_EPOCH
        self._note_unchanged(self._sent)
        self._sent, self._names, self._unanswered = {}, {}, {}
        self._forgotten.clear()
        self._changed = dict.fromkeys(wanted)
        return self._request(some, [], id_of)

    def _increment(self, some: list[TopicPartition], id_of: IdOf) -> PlannedFetch:
        forgotten = [(of, self._sent.pop(of).topic_id) for of in self._forgotten]
        self._forgotten.clear()
        if self._uses_ids:
            for of in some:
                sent = self._sent.get(of)
                if sent is not None and sent.topic_id != id_of(of.topic):
                    # The same name, another topic: to the source they have nothing in common.
                    forgotten.append((of, self._sent.pop(of).topic_id))
        return self._request(some, forgotten, id_of)

    def _request(
        self,
        some: list[TopicPartition],
        forgotten: list[tuple[TopicPartition, TopicId]],
        id_of: IdOf,
    ) -> PlannedFetch:
        asked = [(of, self._orders[of]) for of in some]
        for of, order in asked:
            del self._changed[of]
            self._send(of, order, id_of(of.topic) if self._uses_ids else NO_TOPIC_ID)
        return PlannedFetch(self._session_id, self._epoch, asked, forgotten, self._uses_ids)

    def _send(self, of: TopicPartition, order: FetchFrom, topic_id: TopicId) -> None:
        sent = self._sent.get(of)
        if sent is None:
            self._sent[of] = _Sent(order, topic_id)
            self._names[topic_id] = of.topic
            self._unanswered[of] = None
            return
        if sent.order.turn != order.turn:
            self._unanswered[of] = None
        sent.order = order

    # Answers

    def name_of(self, topic_id: TopicId) -> TopicName | None:
        """Give the topic that was asked for by this id."""
        return self._names.get(topic_id) if topic_id != NO_TOPIC_ID else None

    def heard(
        self, of: TopicPartition, topic_id: TopicId, high_watermark: Offset, log_start: Offset
    ) -> FetchFrom | None:
        """Note what an answer tells of a partition; give the order it answers, if that stands.

        A high watermark below 0 stands for an error: after it the source tells everything anew.
        """
        sent = self._sent.get(of)
        if sent is None or sent.topic_id != topic_id:
            return None
        sent.high_watermark, sent.log_start = high_watermark, log_start
        if self._orders.get(of) is not sent.order:
            return None
        self._unanswered.pop(of, None)
        return sent.order

    def answered(
        self, session_id: int, now_ms: int
    ) -> list[tuple[TopicPartition, FetchFrom, Offset, Offset]]:
        """End a request; give what was left out of the answer though its order is a new one.

        Those are as the source last told: they have that high watermark and log start.
        """
        self._heard_ms = now_ms
        self._go_on(session_id)
        left_out = []
        for of in tuple(self._unanswered):
            sent = self._sent[of]
            if sent.high_watermark < 0:
                self._epoch = FULL_EPOCH  # it must have told of it: have it tell all again
            elif self._orders.get(of) is sent.order:
                del self._unanswered[of]
                left_out.append((of, sent.order, sent.high_watermark, sent.log_start))
        return left_out

    def put_off(self, session_id: int) -> None:
        """End a request that the source did not look into: of nothing is it known to be as before.

        A source whose quota is used up answers so. The session knows what it was told even then.
        """
        self._go_on(session_id)

    def _go_on(self, session_id: int) -> None:
        is_full = self._epoch == FULL_EPOCH
        if session_id == NO_SESSION or (not is_full and session_id != self._session_id):
            self._session_id, self._epoch = NO_SESSION, FULL_EPOCH
        else:
            self._session_id = session_id
            self._epoch = self._epoch + 1 if self._epoch < EPOCH_MAX else FULL_EPOCH + 1

    def lose_session(self, *, is_known: bool) -> None:
        """Begin with a full request again; the source closes the session if it knows it still."""
        self._epoch = FULL_EPOCH
        if not is_known:
            self._session_id = NO_SESSION

    def unchanged_at_ms(self, of: TopicPartition) -> int | None:
        """Tell when the source last had nothing new of a partition; None while that is open."""
        sent = self._sent.get(of)
        is_told = sent is not None and sent.high_watermark >= 0 and of not in self._unanswered
        if is_told and sent is not None and sent.order is self._orders.get(of):
            return self._heard_ms
        return self._unchanged_before.get(of)

    def _note_unchanged(self, some: Iterable[TopicPartition]) -> None:
        """Keep what a session told by leaving it out, before it is asked for no more, or anew."""
        for of in some:
            at_ms = self.unchanged_at_ms(of)
            if at_ms is not None:
                self._unchanged_before[of] = at_ms


def _all_have_ids(some: list[TopicPartition], id_of: IdOf) -> bool:
    return all(id_of(topic) != NO_TOPIC_ID for topic in {of.topic for of in some})
