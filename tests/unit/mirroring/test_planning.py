"""Which partitions go into the next fetch, and that the source knows of every one of them."""

from contextlib import suppress
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from twinlog.mirroring import planning as module
from twinlog.mirroring.effects import FetchFrom
from twinlog.mirroring.planning import FetchPlan, PlannedFetch
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import (
    NO_TOPIC_ID,
    BrokerId,
    LeaderEpoch,
    Offset,
    TopicId,
    TopicName,
    TopicPartition,
)
from twinlog.replication.fetch_sessions import FetchContext, FetchSessions, SessionPartition
from twinlog.wire.messages.fetch import (
    FetchedPartition,
    FetchedTopic,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)

T_ID = TopicId(UUID(int=42))
SESSION = 7


def of(partition: int, topic: str = "t") -> TopicPartition:
    return TopicPartition(TopicName(topic), partition)


def order(offset: int, turn: int = 1) -> FetchFrom:
    return FetchFrom(BrokerId(1), LeaderEpoch(0), Offset(offset), LeaderEpoch(0), turn)


def no_id(_: TopicName) -> TopicId:
    return NO_TOPIC_ID


def one_id(_: TopicName) -> TopicId:
    return T_ID


def planned(count: int) -> FetchPlan:
    plan = FetchPlan()
    for partition in range(count):
        plan.put(of(partition), order(0))
    return plan


def in_session(count: int) -> FetchPlan:
    """Give a plan whose source knows all of it, and has told that each ends at 9."""
    plan = planned(count)
    plan.next(one_id)
    for partition in range(count):
        plan.heard(of(partition), T_ID, Offset(9), Offset(0))
    assert plan.answered(SESSION, 100) == []
    return plan


def asked(request: PlannedFetch) -> list[int]:
    return [one.partition for one, _ in request.asked]


def forgotten(request: PlannedFetch) -> list[tuple[int, UUID]]:
    return [(one.partition, topic_id) for one, topic_id in request.forgotten]


def test_a_partition_that_gave_records_goes_behind_the_others() -> None:
    plan = planned(3)
    plan.move_back(of(0))
    plan.put(of(0), order(5))
    first = plan.next(no_id)
    assert asked(first) == [1, 2, 0]
    assert dict(first.asked)[of(0)].offset == 5


def test_a_long_plan_is_served_in_turns_without_a_session() -> None:
    plan = planned(5)
    turns = []
    for _ in range(3):
        turns.append(asked(plan.next(no_id, 2)))
        plan.answered(0, 0)
    assert turns == [[0, 1], [2, 3], [4, 0]]


def test_a_long_plan_is_told_piece_by_piece_within_a_session() -> None:
    plan = planned(5)
    turns = []
    for _ in range(4):
        request = plan.next(no_id, 2)
        turns.append(asked(request))
        for one, _order in request.asked:
            plan.heard(one, NO_TOPIC_ID, Offset(9), Offset(0))
        plan.answered(SESSION, 0)
    assert turns == [[0, 1], [2, 3], [4], []]


def test_what_is_dropped_is_fetched_no_more() -> None:
    plan = planned(2)
    plan.drop(of(0))
    plan.drop(of(9))
    plan.move_back(of(0))
    assert asked(plan.next(no_id)) == [1]
    assert [one.partition for one, _ in plan.orders] == [1]
    assert len(plan) == 1


def test_after_the_full_request_only_changes_are_told() -> None:
    plan = in_session(3)
    plan.put(of(0), order(0))  # the same again
    plan.put(of(1), order(9))
    plan.drop(of(2))
    plan.put(of(3), order(0))
    request = plan.next(one_id)
    assert (request.session_id, request.session_epoch, request.is_full) == (SESSION, 1, False)
    assert asked(request) == [1, 3]
    assert forgotten(request) == [(2, T_ID)]
    for partition in (1, 3):
        plan.heard(of(partition), T_ID, Offset(9), Offset(0))
    plan.answered(SESSION, 200)
    request = plan.next(one_id)
    assert (asked(request), forgotten(request), request.session_epoch) == ([], [], 2)


def test_what_is_dropped_and_put_again_is_not_forgotten() -> None:
    plan = in_session(1)
    plan.drop(of(0))
    plan.put(of(0), order(0, turn=2))
    request = plan.next(one_id)
    assert (asked(request), forgotten(request)) == ([0], [])


def test_another_topic_of_the_same_name_is_asked_for_and_the_old_one_forgotten() -> None:
    plan = in_session(2)
    other = TopicId(UUID(int=43))
    plan.put(of(0), order(5))
    request = plan.next(lambda _: other)
    assert asked(request) == [0]
    assert forgotten(request) == [(0, T_ID)]
    assert plan.heard(of(0), T_ID, Offset(9), Offset(0)) is None
    assert plan.heard(of(0), other, Offset(9), Offset(0)) == order(5)
    assert (plan.name_of(other), plan.name_of(NO_TOPIC_ID)) == ("t", None)


def test_a_topic_without_an_id_makes_all_be_named_in_a_new_session() -> None:
    plan = in_session(1)
    plan.put(of(0, "u"), order(0))
    request = plan.next(lambda topic: T_ID if topic == "t" else NO_TOPIC_ID)
    assert request.is_full
    assert request.session_id == SESSION  # to be closed
    assert not request.uses_ids
    assert len(request.asked) == 2


def test_an_answer_to_an_order_that_no_longer_stands_is_passed_over() -> None:
    plan = planned(2)
    plan.next(no_id)
    plan.put(of(0), order(7))
    plan.drop(of(1))
    for partition in (0, 1, 5):
        assert plan.heard(of(partition), NO_TOPIC_ID, Offset(9), Offset(0)) is None


def test_a_new_turn_hears_what_the_source_does_not_tell_again() -> None:
    plan = in_session(2)
    plan.put(of(0), order(0, turn=2))
    assert plan.unchanged_at_ms(of(0)) is None
    plan.next(one_id)
    assert plan.answered(SESSION, 300) == [(of(0), order(0, turn=2), Offset(9), Offset(0))]
    plan.next(one_id)
    assert plan.answered(SESSION, 400) == []
    assert plan.unchanged_at_ms(of(0)) == 400


def test_an_answer_that_is_put_off_tells_of_nothing_that_it_is_as_before() -> None:
    plan = in_session(2)
    plan.put(of(1), order(9, turn=2))
    plan.next(one_id)
    plan.put_off(SESSION)
    assert (plan.unchanged_at_ms(of(0)), plan.unchanged_at_ms(of(1))) == (100, None)
    request = plan.next(one_id)
    assert (request.session_epoch, asked(request)) == (2, [])
    assert plan.answered(SESSION, 300) == [(of(1), order(9, turn=2), Offset(9), Offset(0))]
    assert (plan.unchanged_at_ms(of(0)), plan.unchanged_at_ms(of(1))) == (300, 300)


def test_what_is_put_off_before_the_source_told_of_it_is_told_within_the_session() -> None:
    plan = in_session(1)
    plan.put(of(1), order(0))
    plan.next(one_id)
    plan.put_off(SESSION)
    assert not plan.next(one_id).is_full
    assert plan.heard(of(1), T_ID, Offset(4), Offset(0)) == order(0)


def test_a_full_request_that_is_put_off_without_a_session_is_made_again() -> None:
    plan = planned(2)
    plan.next(one_id)
    plan.put_off(0)
    request = plan.next(one_id)
    assert (request.is_full, asked(request)) == (True, [0, 1])


def test_what_a_source_never_told_of_is_asked_for_in_a_full_request() -> None:
    plan = planned(1)
    plan.next(one_id)
    assert plan.answered(SESSION, 100) == []
    assert plan.next(one_id).is_full


def test_after_an_error_nothing_is_taken_for_unchanged() -> None:
    plan = in_session(2)
    plan.next(one_id)
    plan.heard(of(0), T_ID, Offset(-1), Offset(-1))
    plan.answered(SESSION, 500)
    assert plan.unchanged_at_ms(of(0)) is None
    assert plan.unchanged_at_ms(of(1)) == 500
    assert plan.unchanged_at_ms(of(8)) is None


@pytest.mark.parametrize("session_id", [0, SESSION + 1])
def test_a_session_that_is_over_or_another_begins_anew(session_id: int) -> None:
    plan = in_session(2)
    plan.next(one_id)
    plan.answered(session_id, 0)
    request = plan.next(one_id)
    assert (request.session_id, request.is_full, asked(request)) == (0, True, [0, 1])


def test_what_a_lost_session_told_by_leaving_it_out_stays_told() -> None:
    plan = in_session(3)
    plan.next(one_id)
    plan.answered(SESSION, 400)
    for _ in range(2):
        plan.lose_session(is_known=False)
        plan.next(one_id)
    assert plan.unchanged_at_ms(of(0)) == 400
    plan.put(of(1), order(10))
    plan.drop(of(2))
    assert plan.unchanged_at_ms(of(1)) is plan.unchanged_at_ms(of(2)) is None
    plan.heard(of(0), T_ID, Offset(9), Offset(0))
    plan.answered(SESSION, 500)
    assert plan.unchanged_at_ms(of(0)) == 500


@pytest.mark.parametrize(("is_known", "closed"), [(True, SESSION), (False, 0)])
def test_a_lost_session_is_closed_where_it_may_still_stand(*, is_known: bool, closed: int) -> None:
    plan = in_session(2)
    plan.lose_session(is_known=is_known)
    request = plan.next(one_id)
    assert (request.session_id, request.is_full) == (closed, True)


def test_epochs_begin_again_at_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EPOCH_MAX", 2)
    plan = in_session(1)
    epochs = []
    for _ in range(4):
        epochs.append(plan.next(one_id).session_epoch)
        plan.answered(SESSION, 0)
    assert epochs == [1, 2, 1, 2]


def test_what_is_held_back_is_forgotten_by_the_source_and_asked_for_again_later() -> None:
    plan = in_session(3)
    plan.hold({of(0), of(1)})
    plan.put(of(1), order(5))
    request = plan.next(one_id)
    assert (asked(request), forgotten(request)) == ([], [(0, T_ID), (1, T_ID)])
    plan.answered(SESSION, 200)
    assert [plan.unchanged_at_ms(of(number)) for number in range(3)] == [100, None, 200]
    assert not plan.asks_nothing
    plan.hold({of(1)})
    assert asked(plan.next(one_id)) == [0]
    plan.heard(of(0), T_ID, Offset(9), Offset(0))
    plan.answered(SESSION, 300)
    plan.hold(frozenset())
    request = plan.next(one_id)
    assert [(one.partition, wanted.offset) for one, wanted in request.asked] == [(1, 5)]


def test_what_is_held_and_let_go_between_two_requests_stays_in_the_session() -> None:
    plan = in_session(2)
    plan.hold({of(0)})
    plan.hold(frozenset())
    request = plan.next(one_id)
    assert (asked(request), forgotten(request)) == ([0], [])


def test_what_gave_records_last_is_asked_for_last_when_it_is_let_go() -> None:
    plan = in_session(4)
    everything = frozenset(of(partition) for partition in range(4))
    plan.move_back(of(0))
    plan.move_back(of(2))
    plan.hold(everything)
    assert forgotten(plan.next(one_id)) == [(1, T_ID), (3, T_ID), (0, T_ID), (2, T_ID)]
    plan.answered(SESSION, 200)
    plan.hold(frozenset())
    assert asked(plan.next(one_id)) == [1, 3, 0, 2]


def test_a_full_request_leaves_out_what_is_held_back_which_keeps_its_place() -> None:
    plan = planned(3)
    plan.hold({of(0), of(9)})
    assert asked(plan.next(no_id)) == [1, 2]
    plan.hold({of(0), of(1), of(2)})
    assert plan.asks_nothing
    plan.hold(frozenset())
    plan.lose_session(is_known=False)
    assert asked(plan.next(no_id)) == [0, 1, 2]


def test_what_is_held_back_can_be_dropped() -> None:
    plan = in_session(2)
    plan.hold({of(0)})
    plan.drop(of(0))
    request = plan.next(one_id)
    assert (asked(request), forgotten(request)) == ([], [(0, T_ID)])
    plan.hold(frozenset())
    assert asked(plan.next(one_id)) == []


class SourceKnowsThePlan(RuleBasedStateMachine):
    """After any run of orders, answers, losses and evictions the source has what is planned.

    The source is the one that we are: what a twinlog broker keeps of a reader's session.
    """

    partitions = st.tuples(st.sampled_from(["t", "u"]), st.integers(0, 3))

    def __init__(self) -> None:
        super().__init__()
        self.plan = FetchPlan()
        self.orders: dict[TopicPartition, FetchFrom] = {}
        self.ids = {"t": UUID(int=1), "u": UUID(int=2)}
        self.next_id = 3
        self.chosen_id = 0
        self.sessions = FetchSessions(2, self._choose)
        self.ends: dict[tuple[UUID | str, int], int] = {}
        self.turn = 0
        self.heard_in: dict[TopicPartition, int] = {}
        self.told: dict[TopicPartition, int] = {}
        self.held: set[TopicPartition] = set()

    def _choose(self) -> int:
        self.chosen_id += 1
        return self.chosen_id

    def id_of(self, topic: TopicName) -> TopicId:
        return TopicId(self.ids[topic])

    @rule(which=partitions, offset=st.integers(0, 3), is_new_turn=st.booleans())
    def put(self, which: tuple[str, int], offset: int, *, is_new_turn: bool) -> None:
        one = of(which[1], which[0])
        before = self.orders.get(one)
        if is_new_turn or before is None:
            self.turn += 1
            wanted = order(offset, self.turn)
        else:
            wanted = replace(before, offset=Offset(offset))
        self.orders[one] = wanted
        self.plan.put(one, wanted)

    @rule(which=partitions)
    def drop(self, which: tuple[str, int]) -> None:
        one = of(which[1], which[0])
        self.orders.pop(one, None)
        self.plan.drop(one)

    @rule(topic=st.sampled_from(["t", "u"]), has_id=st.booleans())
    def recreate(self, topic: str, *, has_id: bool) -> None:
        self.ids[topic] = UUID(int=self.next_id if has_id else 0)
        self.next_id += 1

    @rule(which=partitions)
    def grow(self, which: tuple[str, int]) -> None:
        topic, partition = which
        for name in (topic, self.ids[topic]):
            self.ends[name, partition] = self.ends.get((name, partition), 0) + 1
        self.sessions.mark_changed(topic, self.ids[topic], partition)

    @rule(held=st.sets(partitions))
    def hold(self, held: set[tuple[str, int]]) -> None:
        self.held = {of(partition, topic) for topic, partition in held}
        self.plan.hold(frozenset(self.held))

    @rule()
    def evict(self) -> None:
        self.sessions = FetchSessions(2, self._choose)

    @rule()
    def put_off(self) -> None:
        planned_now = self.plan.next(self.id_of, 3)
        request, uses_ids = self.request(planned_now)
        try:
            context = self.sessions.begin(
                request, uses_topic_ids=uses_ids, is_follower=False, now_ms=0
            )
        except ApiError as error:
            is_known = error.code != ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            self.plan.lose_session(is_known=is_known)
            return
        # Kafka knows a session that it was asked to begin only once it has answered in full.
        self.plan.put_off(0 if planned_now.is_full else context.session.id)

    @rule()
    def lose_the_answer(self) -> None:
        request, uses_ids = self.request(self.plan.next(self.id_of, 3))
        with suppress(ApiError):
            self.sessions.begin(request, uses_topic_ids=uses_ids, is_follower=False, now_ms=0)
        self.plan.lose_session(is_known=True)

    @rule(has_error=st.booleans())
    def fetch(self, *, has_error: bool) -> None:
        planned_now = self.plan.next(self.id_of, 3)
        request, uses_ids = self.request(planned_now)
        try:
            context = self.sessions.begin(
                request, uses_topic_ids=uses_ids, is_follower=False, now_ms=0
            )
        except ApiError as error:
            assert not planned_now.is_full
            is_known = error.code != ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            self.plan.lose_session(is_known=is_known)
            return
        self.check_view(context)
        for partition in context.to_read():
            self.answer_one(context, partition, has_error=has_error)
        session_id, topics = context.finish()
        self.take(session_id, topics)

    def answer_one(
        self, context: FetchContext, partition: SessionPartition, *, has_error: bool
    ) -> None:
        index = partition.asked.partition
        end = self.ends.get((partition.topic or partition.topic_id, index), 0)
        is_failing = has_error and index == 0
        answer = FetchedPartition(
            partition_index=index,
            error_code=6 if is_failing else 0,
            high_watermark=-1 if is_failing else end,
            log_start_offset=-1 if is_failing else 0,
        )
        context.offer(partition, answer, is_drained=True)

    def take(self, session_id: int, topics: tuple[FetchedTopic, ...]) -> None:
        for topic in topics:
            topic_id = TopicId(topic.topic_id)
            name = TopicName(topic.topic) or self.plan.name_of(topic_id)
            assert name is not None
            for partition in topic.partitions:
                one = TopicPartition(name, partition.partition_index)
                end = Offset(partition.high_watermark)
                found = self.plan.heard(one, topic_id, end, Offset(0))
                self.told[one] = end
                if one in self.plan._changed:
                    assert found is None, "the source has an older order than that"
                    continue
                assert found == self.orders[one]
                self.heard_in[one] = found.turn
        for one, found, end, _ in self.plan.answered(session_id, 0):
            assert found == self.orders[one]
            assert end == self.told[one]
            self.heard_in[one] = found.turn

    def request(self, now: PlannedFetch) -> tuple[FetchRequest, bool]:
        def topic_of(one: TopicPartition, topic_id: UUID) -> dict[str, object]:
            return {"topic_id": topic_id} if now.uses_ids else {"topic": one.topic}

        topics = tuple(
            FetchTopic(
                **topic_of(one, self.ids[one.topic]),  # type: ignore[arg-type]
                partitions=(
                    FetchPartition(
                        partition=one.partition,
                        fetch_offset=wanted.offset,
                        partition_max_bytes=1,
                    ),
                ),
            )
            for one, wanted in now.asked
        )
        gone = tuple(
            ForgottenTopic(**topic_of(one, topic_id), partitions=(one.partition,))  # type: ignore[arg-type]
            for one, topic_id in now.forgotten
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            session_id=now.session_id,
            session_epoch=now.session_epoch,
            topics=topics,
            forgotten_topics=gone,
        )
        return request, now.uses_ids

    def check_view(self, context: FetchContext) -> None:
        """Compare what the source has with the orders, but for those still to be told."""
        view: dict[TopicPartition, int] = {}
        for (key, index), partition in context.session.partitions.items():
            name = key if isinstance(key, str) else self.plan.name_of(TopicId(key))
            assert name is not None, f"the source has partition {index} of {key}"
            assert of(index, name) not in view, f"the source has {of(index, name)} twice"
            view[of(index, name)] = partition.asked.fetch_offset
        pending = {*self.plan._changed, *self.held}
        assert not view.keys() & self.held, "the source is asked for what is held back"
        told = {one: wanted.offset for one, wanted in self.orders.items() if one not in pending}
        assert {one: at for one, at in view.items() if one not in pending} == told

    @invariant()
    def all_orders_stand(self) -> None:
        assert dict(self.plan.orders) == self.orders

    def teardown(self) -> None:
        for topic in self.ids:
            if self.ids[topic].int == 0:
                self.recreate(topic, has_id=True)
        self.hold(set())
        for one, wanted in list(self.orders.items()):
            self.put((one.topic, one.partition), (wanted.offset + 1) % 4, is_new_turn=True)
        for _ in range(8):
            self.fetch(has_error=False)
        heard = {one: self.heard_in.get(one) for one in self.orders}
        assert heard == {one: wanted.turn for one, wanted in self.orders.items()}


TestSourceKnowsThePlan = pytest.mark.slow(SourceKnowsThePlan.TestCase)
TestSourceKnowsThePlan.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
