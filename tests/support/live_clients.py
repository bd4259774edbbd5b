"""Producers and a consumer group that stay at work, and everything they were promised."""

import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from support.cluster_admin import Broker
from support.waiting import wait_until

Partition = tuple[str, int]

_CODECS: Final = ("none", "lz4", "zstd", "gzip", "snappy")
_BURST: Final = 8
_PAUSE_S: Final = 0.02
_FLUSH_S: Final = 120.0
_COMMIT_EVERY: Final = 25


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """One record that a broker said it has."""

    value: str
    of: Partition
    offset: int


class LiveProducers:
    """Idempotent producers, one for each codec, that write to one broker until told to stop.

    Every record has a value that no other has; which partition it goes to, its key decides.
    """

    def __init__(self, broker: Broker, topics: Sequence[str], name: str) -> None:
        self.acknowledged: Final[list[Acknowledged]] = []
        self._name = name
        self._topics = topics
        self._sent = 0
        self._ending = threading.Event()
        self._is_abandoned = False
        self._error: str | None = None
        self._producers = [_producer_at(broker, codec) for codec in _CODECS]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        burst = 0
        while not self._ending.wait(_PAUSE_S):
            producer = self._producers[burst % len(self._producers)]
            burst += 1
            for topic in self._topics:
                for _ in range(_BURST):
                    self._send(producer, topic)
            for one in self._producers:
                one.poll(0)

    def _send(self, producer: Producer, topic: str) -> None:
        value = f"{self._name}/{self._sent}"
        self._sent += 1
        try:
            producer.produce(
                topic, value, key=f"key-{self._sent % 31}", on_delivery=self._delivered
            )
        except BufferError:
            producer.poll(0.1)

    def _delivered(self, error: KafkaError | None, message: Any) -> None:
        if error is None:
            of = (message.topic(), message.partition())
            told = Acknowledged(message.value().decode(), of, message.offset())
            self.acknowledged.append(told)
        elif not self._is_abandoned:
            self._error = error.str()

    def finish(self) -> list[Acknowledged]:
        """Write no more, and wait until all that was written is acknowledged."""
        self._end()
        for producer in self._producers:
            left = producer.flush(_FLUSH_S)
            assert left == 0, f"{self._name}: {left} records are not acknowledged"
        assert self._error is None, f"{self._name}: {self._error}"
        return self.acknowledged

    def abandon(self) -> list[Acknowledged]:
        """Write no more, and give up what is not acknowledged: the broker is gone."""
        self._is_abandoned = True
        self._end()
        for producer in self._producers:
            producer.purge()
            producer.flush(1.0)
        return self.acknowledged

    def _end(self) -> None:
        self._ending.set()
        self._thread.join(timeout=_FLUSH_S)
        assert not self._thread.is_alive(), f"{self._name} hangs"


def _producer_at(broker: Broker, codec: str) -> Producer:
    return Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": 3,
            "compression.type": codec,
            "log_level": 0,
        }
    )


@dataclass(slots=True)
class Session:
    """What a group's consumer saw at one broker, in order, and what it committed there."""

    consumed: dict[Partition, list[tuple[int, str]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    resumed: dict[Partition, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    """After how many records the group gave it the partition anew, and what was committed then."""
    committed: dict[Partition, int] = field(default_factory=dict)
    """The last offset that the broker said it has."""
    tried: dict[Partition, int] = field(default_factory=dict)
    """The last offset that was to be committed, whatever came of it."""


class LiveConsumer:
    """The one member of a group, reading some topics and committing as it goes."""

    def __init__(self, broker: Broker, topics: Sequence[str], group: str) -> None:
        self.session: Final = Session()
        self._ending = threading.Event()
        self._has_read = threading.Event()
        self._commits_at_end = True
        self._error: BaseException | None = None
        self._consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 5_000,
                "heartbeat.interval.ms": 500,
                "isolation.level": "read_uncommitted",
                "fetch.wait.max.ms": 50,
                "on_commit": self._committed,
                "log_level": 0,
            }
        )
        self._consumer.subscribe(list(topics), on_assign=self._assigned)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            count = 0
            while not self._ending.is_set():
                count += self._take(self._consumer.poll(0.05))
                if count >= _COMMIT_EVERY:
                    self._commit(asynchronous=True)
                    count = 0
            if self._commits_at_end:
                self._commit_in_the_end()
        except BaseException as error:  # noqa: BLE001 - told to whoever ends the consumer
            self._error = error
        finally:
            self._has_read.set()
            self._consumer.close()

    def _assigned(self, _: Consumer, partitions: Sequence[TopicPartition]) -> None:
        """Note a rebalance: who was too slow for its session goes on at its last commit."""
        for one in partitions:
            of = (one.topic, one.partition)
            seen = self.session.consumed.get(of)
            if seen:
                self.session.resumed[of][len(seen)] = self.session.committed.get(of, -1)

    def _take(self, message: Any) -> int:
        """Note what was read, if anything was; give how many records."""
        if message is None:
            return 0
        error = message.error()
        if error is not None:
            assert error.code() in _PASSING, f"consumer: {error.str()}"
            return 0
        of = (message.topic(), message.partition())
        self.session.consumed[of].append((message.offset(), message.value().decode()))
        return 1

    def _commit(self, *, asynchronous: bool) -> None:
        offsets = [
            TopicPartition(*of, seen[-1][0] + 1) for of, seen in self.session.consumed.items()
        ]
        if not offsets:
            return
        for one in offsets:
            self.session.tried[one.topic, one.partition] = one.offset
        if asynchronous:
            self._consumer.commit(offsets=offsets, asynchronous=True)
            return
        self._consumer.commit(offsets=offsets, asynchronous=False)
        self._note(offsets)

    def _commit_in_the_end(self) -> None:
        """Commit, and again as long as this was too slow for its session and joins anew."""
        deadline = time.monotonic() + _FLUSH_S
        while True:
            try:
                self._commit(asynchronous=False)
            except KafkaException as error:
                is_passing = error.args[0].code() in _OUT_OF_GROUP
                if not is_passing or time.monotonic() > deadline:
                    raise AssertionError(f"the last commit: {error}") from error
                self._take(self._consumer.poll(0.1))
            else:
                return

    def _committed(self, error: KafkaError | None, offsets: list[TopicPartition]) -> None:
        if error is None:
            self._note(offsets)

    def _note(self, offsets: Sequence[TopicPartition]) -> None:
        for one in offsets:
            if one.error is None and one.offset >= 0:
                known = self.session.committed.get((one.topic, one.partition), -1)
                self.session.committed[one.topic, one.partition] = max(known, one.offset)

    def await_positions(self, ends: dict[Partition, int], *, timeout_s: float = 120.0) -> None:
        """Return when it has read each partition up to those offsets (exclusive)."""
        wait_until(
            lambda: not self._short_of(ends),
            lambda: f"the consumer is short of {self._short_of(ends)}",
            timeout_s=timeout_s,
        )

    def _short_of(self, ends: dict[Partition, int]) -> dict[Partition, int]:
        assert self._error is None, self._error
        consumed = self.session.consumed
        return {
            of: end
            for of, end in ends.items()
            if not consumed.get(of) or consumed[of][-1][0] + 1 < end
        }

    def leave(self) -> Session:
        """Commit where it stands, and leave the group."""
        self._ending.set()
        self._thread.join(timeout=_FLUSH_S)
        assert not self._thread.is_alive(), "the consumer does not close"
        return self._told()

    def vanish(self) -> Session:
        """Leave without a last commit, as one does that fails; its broker may be dead."""
        self._commits_at_end = False
        self._ending.set()
        assert self._has_read.wait(_FLUSH_S), "the consumer does not end"
        return self._told()

    def _told(self) -> Session:
        if self._error is not None:
            raise self._error
        return self.session


# What a member meets that was too slow for its session, until it has joined anew.
_OUT_OF_GROUP: Final = {
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.REBALANCE_IN_PROGRESS,
}
# What a consumer meets while its broker is away, and gets over by itself.
_PASSING: Final = {
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
}
