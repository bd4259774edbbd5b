import itertools
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinlog.model.errors import ApiError, ErrorCode
from twinlog.replication.fetch_sessions import (
    EPOCH_MAX,
    EVICTION_MS,
    FetchContext,
    FetchSessions,
    SessionPartition,
)
from twinlog.wire.messages.fetch import (
    EpochEndOffset,
    FetchedPartition,
    FetchedTopic,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)

NO_ID = UUID(int=0)
RECORD_BYTES = 10


def ids() -> Iterable[int]:
    return itertools.count(101)


def new_sessions(slots: int = 10) -> FetchSessions:
    return FetchSessions(slots, iter(ids()).__next__)


def wants(topic: str, *positions: tuple[int, int]) -> FetchTopic:
    return FetchTopic(
        topic=topic,
        partitions=tuple(
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1_000)
            for index, offset in positions
        ),
    )


def request(
    session_id: int = 0,
    epoch: int = 0,
    topics: Sequence[FetchTopic] = (),
    forgotten: Sequence[ForgottenTopic] = (),
    isolation_level: int = 0,
) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        session_id=session_id,
        session_epoch=epoch,
        topics=tuple(topics),
        forgotten_topics=tuple(forgotten),
        isolation_level=isolation_level,
    )


def begin(sessions: FetchSessions, asked: FetchRequest, now_ms: int = 0) -> FetchContext:
    return sessions.begin(asked, uses_topic_ids=False, is_follower=False, now_ms=now_ms)


@dataclass
class Log:
    """A partition that is only numbers: every record has ten bytes."""

    end: int = 0
    start: int = 0
    error: int = 0

    def answer(self, asked: FetchPartition, room: int) -> FetchedPartition:
        if self.error or not self.start <= asked.fetch_offset <= self.end:
            code = self.error or ErrorCode.OFFSET_OUT_OF_RANGE
            return FetchedPartition(
                partition_index=asked.partition, error_code=code, high_watermark=-1
            )
        count = min(self.end - asked.fetch_offset, room // RECORD_BYTES)
        return FetchedPartition(
            partition_index=asked.partition,
            high_watermark=self.end,
            log_start_offset=self.start,
            records=bytes(count * RECORD_BYTES),
        )


@dataclass
class Cluster:
    """Logs behind sessions, read as a broker does."""

    sessions: FetchSessions = field(default_factory=new_sessions)
    logs: dict[tuple[str, int], Log] = field(default_factory=dict)
    looks: int = 0

    def log(self, topic: str, index: int) -> Log:
        return self.logs.setdefault((topic, index), Log())

    def change(self, topic: str, index: int, **fields: int) -> int:
        log = self.log(topic, index)
        for name, value in fields.items():
            setattr(log, name, value)
        return len(self.sessions.mark_changed(topic, NO_ID, index))

    def look(self, context: FetchContext, bytes_max: int = 1 << 20) -> int:
        room = bytes_max
        for partition in context.to_read():
            self.looks += 1
            answer = self.log(partition.topic, partition.asked.partition).answer(
                partition.asked, room
            )
            taken = len(answer.records or b"")
            room -= taken
            left = answer.high_watermark - partition.asked.fetch_offset - taken // RECORD_BYTES
            context.offer(partition, answer, is_drained=left <= 0)
        return bytes_max - room

    def fetch(
        self, asked: FetchRequest, bytes_max: int = 1 << 20
    ) -> tuple[int, dict[tuple[str, int], FetchedPartition]]:
        context = begin(self.sessions, asked)
        self.look(context, bytes_max)
        session_id, topics = context.finish()
        return session_id, flat(topics)


def flat(topics: Iterable[FetchedTopic]) -> dict[tuple[str, int], FetchedPartition]:
    return {(t.topic, p.partition_index): p for t in topics for p in t.partitions}


def test_a_request_without_a_session_is_answered_in_full_every_time() -> None:
    cluster = Cluster()
    asked = request(0, -1, [wants("a", (0, 0), (1, 0))])
    for _ in range(2):
        session_id, answers = cluster.fetch(asked)
        assert session_id == 0
        assert set(answers) == {("a", 0), ("a", 1)}
    assert len(cluster.sessions) == 0


def test_a_session_answers_with_what_changed() -> None:
    cluster = Cluster()
    session_id, answers = cluster.fetch(
        request(0, 0, [wants("a", (0, 0), (1, 0)), wants("b", (0, 0))])
    )
    assert (session_id, len(answers)) == (101, 3)
    assert cluster.fetch(request(101, 1)) == (101, {})
    assert cluster.change("a", 1, end=3) == 1
    _, answers = cluster.fetch(request(101, 2))
    assert set(answers) == {("a", 1)}
    assert len(answers["a", 1].records or b"") == 30


def test_records_the_reader_did_not_take_are_given_again() -> None:
    cluster = Cluster()
    cluster.change("a", 0, end=3)
    cluster.fetch(request(0, 0, [wants("a", (0, 0))]))
    for epoch in (1, 2):
        _, answers = cluster.fetch(request(101, epoch))
        assert len(answers["a", 0].records or b"") == 30
    assert cluster.fetch(request(101, 3, [wants("a", (0, 3))]))[1] == {}
    assert cluster.fetch(request(101, 4))[1] == {}


def test_a_moved_log_start_is_told_without_records() -> None:
    cluster = Cluster()
    cluster.change("a", 0, end=5)
    cluster.fetch(request(0, 0, [wants("a", (0, 5))]))
    cluster.change("a", 0, start=4)
    _, answers = cluster.fetch(request(101, 1))
    assert answers["a", 0].log_start_offset == 4
    assert cluster.fetch(request(101, 2))[1] == {}


def test_an_error_is_repeated_and_after_it_the_reader_hears_how_things_are() -> None:
    cluster = Cluster()
    cluster.fetch(request(0, 0, [wants("a", (0, 0))]))
    cluster.change("a", 0, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    for epoch in (1, 2):
        _, answers = cluster.fetch(request(101, epoch))
        assert answers["a", 0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    cluster.change("a", 0, error=0)
    _, answers = cluster.fetch(request(101, 3))
    assert answers["a", 0].error_code == 0
    assert cluster.fetch(request(101, 4))[1] == {}


def test_an_error_that_tells_the_high_watermark_does_not_count_as_telling_it() -> None:
    sessions = new_sessions()
    context = begin(sessions, request(0, 0, [wants("a", (0, 9))]))
    (partition,) = context.to_read()
    out_of_range = FetchedPartition(
        partition_index=0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE, high_watermark=5
    )
    context.offer(partition, out_of_range, is_drained=True)
    session_id, _ = context.finish()
    context = begin(sessions, request(session_id, 1, [wants("a", (0, 5))]))
    (partition,) = context.to_read()
    fine = FetchedPartition(partition_index=0, high_watermark=5)
    assert context.offer(partition, fine, is_drained=True)


def test_a_divergence_is_repeated_until_the_reader_reacts() -> None:
    sessions = new_sessions()
    context = begin(sessions, request(0, 0, [wants("a", (0, 0))]))
    for _ in range(2):
        (partition,) = context.to_read()
        diverging = FetchedPartition(
            partition_index=0,
            high_watermark=0,
            diverging_epoch=EpochEndOffset(epoch=1, end_offset=2),
        )
        assert context.offer(partition, diverging, is_drained=True)
        session_id, _ = context.finish()
        context = begin(sessions, request(session_id, context.session.epoch))


def test_partitions_come_and_go() -> None:
    cluster = Cluster()
    cluster.fetch(request(0, 0, [wants("a", (0, 0), (1, 0))]))
    forgotten = ForgottenTopic(topic="a", partitions=(0, 7))
    _, answers = cluster.fetch(request(101, 1, [wants("b", (0, 0))], [forgotten]))
    assert set(answers) == {("b", 0)}, "a new one is always answered"
    assert cluster.change("a", 0, end=1) == 0
    cluster.change("a", 1, end=1)
    assert set(cluster.fetch(request(101, 2))[1]) == {("a", 1)}
    assert cluster.sessions.partition_count == 2


def test_a_session_without_partitions_is_over() -> None:
    cluster = Cluster()
    cluster.fetch(request(0, 0, [wants("a", (0, 0))]))
    forget = request(101, 1, (), [ForgottenTopic(topic="a", partitions=(0,))])
    assert cluster.fetch(forget) == (0, {})
    assert len(cluster.sessions) == 0
    assert cluster.fetch(request(0, 0)) == (0, {}), "nothing to follow, no session"


def test_who_was_given_records_goes_behind_who_was_not() -> None:
    cluster = Cluster()
    for index in range(3):
        cluster.change("a", index, end=100)
    cluster.fetch(request(0, 0, [wants("a", (0, 0), (1, 0), (2, 0))]), 40)
    served = []
    for epoch in range(1, 7):
        _, answers = cluster.fetch(request(101, epoch), 40)
        served += [index for (_, index), answer in answers.items() if answer.records]
    assert served == [1, 2, 0, 1, 2, 0]


def test_what_changes_while_the_answer_waits_is_in_it() -> None:
    cluster = Cluster()
    cluster.fetch(request(0, 0, [wants("a", (0, 0), (1, 0))]))
    context = begin(cluster.sessions, request(101, 1))
    assert cluster.look(context) == 0
    looks = cluster.looks
    cluster.change("a", 1, end=2)
    assert cluster.look(context) == 20
    assert cluster.looks == looks + 1, "only the changed one was looked at"
    assert set(flat(context.finish()[1])) == {("a", 1)}


def test_what_changes_before_the_first_answer_of_a_session_is_not_lost() -> None:
    cluster = Cluster()
    context = begin(cluster.sessions, request(0, 0, [wants("a", (0, 0))]))
    cluster.look(context)
    cluster.change("a", 0, end=1)
    context.finish()
    assert set(cluster.fetch(request(101, 1))[1]) == {("a", 0)}


def test_topics_by_id_are_followed_by_id() -> None:
    sessions = new_sessions()
    topic_id = UUID(int=5)
    asked = FetchTopic(topic_id=topic_id, partitions=wants("", (0, 0)).partitions)
    context = sessions.begin(
        request(0, 0, [asked]), uses_topic_ids=True, is_follower=False, now_ms=0
    )
    (partition,) = context.to_read()
    context.offer(partition, Log().answer(partition.asked, 0), is_drained=True)
    session_id, topics = context.finish()
    assert topics[0].topic_id == topic_id
    assert len(sessions.mark_changed("a", topic_id, 0)) == 1
    assert sessions.mark_changed("a", UUID(int=6), 0) == ()
    with pytest.raises(ApiError) as refused:
        begin(sessions, request(session_id, 1))
    assert refused.value.code is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_unknown_sessions_and_wrong_epochs_are_refused() -> None:
    cluster = Cluster()
    cluster.fetch(request(0, 0, [wants("a", (0, 0))]))
    for session_id, epoch, code in [
        (7, 1, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (0, 1, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (101, 2, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
    ]:
        with pytest.raises(ApiError) as refused:
            begin(cluster.sessions, request(session_id, epoch))
        assert refused.value.code is code
    cluster.fetch(request(101, 1))


def test_a_session_is_closed_by_its_reader() -> None:
    cluster = Cluster()
    cluster.fetch(request(0, 0, [wants("a", (0, 0))]))
    cluster.fetch(request(101, -1, [wants("a", (0, 0))]))
    assert len(cluster.sessions) == 0
    assert cluster.change("a", 0, end=1) == 0


def test_a_reader_that_begins_anew_leaves_no_old_session() -> None:
    cluster = Cluster()
    cluster.fetch(request(0, 0, [wants("a", (0, 0))]))
    assert cluster.fetch(request(101, 0, [wants("a", (0, 0))]))[0] == 102
    assert len(cluster.sessions) == 1


def test_the_epoch_after_the_last_is_one() -> None:
    cluster = Cluster()
    cluster.fetch(request(0, 0, [wants("a", (0, 0))]))
    context = begin(cluster.sessions, request(101, 1))
    context.session.epoch = EPOCH_MAX
    cluster.fetch(request(101, EPOCH_MAX))
    cluster.fetch(request(101, 1))


def test_another_isolation_level_has_everything_looked_at_again() -> None:
    cluster = Cluster()
    cluster.fetch(request(0, 0, [wants("a", (0, 0), (1, 0))]))
    context = begin(cluster.sessions, request(101, 1, isolation_level=1))
    assert len(list(context.to_read())) == 2


class TestEviction:
    def test_without_a_slot_a_reader_is_served_in_full(self) -> None:
        sessions = new_sessions(slots=1)
        asked = request(0, 0, [wants("a", (0, 0))])
        assert begin(sessions, asked).is_cached
        assert not begin(sessions, asked, now_ms=EVICTION_MS).is_cached
        assert not begin(new_sessions(slots=0), asked).is_cached

    def test_the_longest_unused_goes_first(self) -> None:
        sessions = new_sessions(slots=2)
        asked = request(0, 0, [wants("a", (0, 0))])
        first, second = begin(sessions, asked), begin(sessions, asked)
        begin(sessions, request(first.session.id, 1), now_ms=1)
        assert begin(sessions, asked, now_ms=EVICTION_MS + 1).is_cached
        with pytest.raises(ApiError, match="FETCH_SESSION_ID_NOT_FOUND"):
            begin(sessions, request(second.session.id, 1))
        begin(sessions, request(first.session.id, 2))
        assert sessions.evictions == 1

    def test_a_larger_session_takes_the_slot_of_an_old_smaller_one(self) -> None:
        sessions = new_sessions(slots=1)
        small, large = [wants("a", (0, 0))], [wants("a", (0, 0), (1, 0))]
        old = begin(sessions, request(0, 0, small))
        now_ms = EVICTION_MS + 1
        begin(sessions, request(old.session.id, 1), now_ms=now_ms)
        assert not begin(sessions, request(0, 0, small), now_ms=now_ms).is_cached
        assert begin(sessions, request(0, 0, large), now_ms=now_ms).is_cached

    def test_a_follower_takes_the_slot_of_a_consumer_and_not_the_other_way_round(self) -> None:
        sessions = new_sessions(slots=1)
        asked = request(0, 0, [wants("a", (0, 0))])
        begin(sessions, asked)
        follower = sessions.begin(asked, uses_topic_ids=False, is_follower=True, now_ms=1)
        assert follower.is_cached
        assert not begin(sessions, asked, now_ms=2).is_cached


@pytest.mark.slow
def test_a_poll_of_a_thousand_idle_partitions_costs_next_to_nothing() -> None:
    cluster = Cluster()
    cluster.fetch(request(0, 0, [wants("a", *((index, 0) for index in range(1_000)))]))
    cluster.looks = 0
    began = time.process_time()
    for epoch in range(1, 1_001):
        cluster.change("a", epoch % 1_000, start=0)
        cluster.fetch(request(101, epoch))
    assert cluster.looks == 1_000, "one partition was marked for each poll"
    assert time.process_time() - began < 0.5


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 3), st.integers(1, 4)),
        st.tuples(st.just("trim"), st.integers(0, 3), st.integers(0, 6)),
        st.tuples(st.just("break"), st.integers(0, 3), st.integers(0, 1)),
        st.tuples(st.just("poll"), st.sampled_from([0, 20, 1_000]), st.booleans()),
        st.tuples(st.just("want"), st.integers(0, 3), st.booleans()),
    ),
    max_size=60,
)


@dataclass
class Consumer:
    """A client of the protocol: what it wants, what the broker knows of that, what it heard."""

    cluster: Cluster
    position: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(4), 0))
    wanted: set[int] = field(default_factory=lambda: {0, 1})
    told: dict[int, int] = field(default_factory=dict)
    heard: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    session_id: int = 0
    epoch: int = 0

    def poll(self, bytes_max: int, *, takes: bool) -> None:
        forgotten = tuple(sorted(set(self.told) - self.wanted))
        moved = [
            (i, self.position[i])
            for i in sorted(self.wanted)
            if self.told.get(i) != self.position[i]
        ]
        asked = request(
            self.session_id,
            self.epoch,
            [wants("a", *moved)] if moved else [],
            [ForgottenTopic(topic="a", partitions=forgotten)] if forgotten else [],
        )
        self.session_id, answers = self.cluster.fetch(asked, bytes_max)
        self.told = {index: self.position[index] for index in self.wanted}
        if self.session_id == 0:
            self.epoch, self.told = 0, {}
        else:
            self.epoch += 1
        for index in set(self.heard) - self.wanted:
            del self.heard[index]
        assert {index for _, index in answers} <= self.wanted
        for (_, index), answer in answers.items():
            self.heard[index] = (answer.error_code, answer.high_watermark, answer.log_start_offset)
            if takes:
                self.take(index, answer)

    def take(self, index: int, answer: FetchedPartition) -> None:
        self.position[index] += len(answer.records or b"") // RECORD_BYTES
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self.position[index] = self.cluster.log("a", index).start


@given(STEPS)
@settings(max_examples=300, deadline=None)
def test_a_session_tells_what_full_fetches_would_have_told(
    steps: list[tuple[str, int, int]],
) -> None:
    cluster = Cluster()
    consumer = Consumer(cluster)
    for step, first, second in steps:
        log = cluster.log("a", first) if step != "poll" else Log()
        match step:
            case "append":
                cluster.change("a", first, end=log.end + second)
            case "trim":
                cluster.change("a", first, start=max(log.start, min(second, log.end)))
            case "break":
                cluster.change("a", first, error=second * ErrorCode.NOT_LEADER_OR_FOLLOWER)
            case "want":
                (consumer.wanted.add if second else consumer.wanted.discard)(first)
            case _:
                consumer.poll(first, takes=bool(second))
                for index, heard in consumer.heard.items():
                    assert heard == truth(cluster, consumer.told, index)
    for _ in range(8):  # with time and room, a reader gets everything there is
        consumer.poll(1_000, takes=True)
    for index in consumer.wanted:
        log = cluster.log("a", index)
        assert log.error or consumer.position[index] == log.end


def truth(cluster: Cluster, told: dict[int, int], index: int) -> tuple[int, int, int]:
    asked = FetchPartition(
        partition=index, fetch_offset=told.get(index, 0), partition_max_bytes=1_000
    )
    answer = cluster.log("a", index).answer(asked, 0)
    return answer.error_code, answer.high_watermark, answer.log_start_offset


def test_partitions_of_a_session_are_told_apart_by_themselves() -> None:
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    assert SessionPartition("a", NO_ID, asked) != SessionPartition("a", NO_ID, asked)
