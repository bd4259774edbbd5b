"""Producers of every kind that write to a source whatever befalls it, and give up on nothing."""

import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import KafkaException, Producer

from support.cluster_admin import Broker
from support.source_data import CODECS, record

Partition = tuple[str, int]

_TIMEOUT_MS: Final = 8_000
_TRANSACTION_TIMEOUT_MS: Final = 20_000
_TRANSACTIONAL_IDS: Final = ("storm-brief", "storm-lingering")
_KEYS: Final = 40
# What makes a client useless it raises wherever it is just then, and badly (SystemError).
_GIVEN_UP: Final = (KafkaException, BufferError, SystemError)


@dataclass(slots=True)
class Written:
    """What the source acknowledged: counts by topic, and the places of what it must not lose."""

    acknowledged: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    transactions: Counter[str] = field(default_factory=Counter)
    kept: dict[Partition, dict[int, bytes]] = field(default_factory=dict)
    """Offset and value of each acknowledged record of topics that are ``remembered``."""


@dataclass(frozen=True, slots=True)
class Targets:
    """The topics and how many partitions each has."""

    numbered: Sequence[str]
    transactional: str
    compacted: str
    remembered: str
    partitions: int


class StormyProducers:
    """Threads that write until told to stop."""

    def __init__(self, source: Broker, targets: Targets, seed: int) -> None:
        self.written: Final = Written()
        self._source: Final = source
        self._targets: Final = targets
        self._seed: Final = seed
        self._stopping: Final = threading.Event()
        self._numbers: Final = itertools.count()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write while the block lasts; afterwards no transaction of ours is open."""
        self._stopping.clear()
        threads = [threading.Thread(target=work, daemon=True) for work in self._works()]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            for thread in threads:
                thread.join(timeout=240)
                assert not thread.is_alive(), "a producer to the source hangs"

    def end_transactions(self) -> None:
        """Abort what a producer left open when it gave up; the source has to be whole."""
        for name in _TRANSACTIONAL_IDS:
            self._transactional(name).init_transactions(180)

    def _works(self) -> list[Callable[[], None]]:
        targets = self._targets
        return [
            *(lambda t=topic: self._numbered(t) for topic in targets.numbered),
            lambda: self._numbered(targets.remembered),
            lambda: self._keyed(targets.compacted),
            lambda: self._transact(_TRANSACTIONAL_IDS[0], targets.transactional, 0.0),
            lambda: self._transact(_TRANSACTIONAL_IDS[1], targets.transactional, 2.5),
        ]

    # Idempotent

    def _numbered(self, topic: str) -> None:
        """Send bursts of one codec after another; a producer that had an error is replaced."""
        chance = random.Random(f"{self._seed} {topic}")
        producers: dict[str, Producer] = {}
        for codec in itertools.cycle(CODECS):
            if self._stopping.wait(chance.uniform(0.01, 0.08)):
                return
            if codec not in producers:
                producers[codec] = self._idempotent(codec)
            if not self._burst(producers[codec], topic, chance.randrange(10, 120)):
                producers.pop(codec).purge()

    def _keyed(self, topic: str) -> None:
        chance = random.Random(f"{self._seed} {topic}")
        producer: Producer | None = None
        while not self._stopping.wait(chance.uniform(0.02, 0.1)):
            producer = producer or self._idempotent(chance.choice(CODECS))
            if not self._burst(producer, topic, chance.randrange(5, 40), keyed_by=chance):
                producer.purge()
                producer = None

    def _idempotent(self, codec: str) -> Producer:
        return self._producer({"compression.type": codec, "enable.idempotence": True})

    def _producer(self, settings: dict[str, object]) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self._source.bootstrap,
                "linger.ms": 3,
                "message.timeout.ms": _TIMEOUT_MS,
                "socket.timeout.ms": 4_000,
                "log_level": 2,
                **settings,
            }
        )

    def _burst(
        self, producer: Producer, topic: str, count: int, *, keyed_by: random.Random | None = None
    ) -> bool:
        """Send some records; False if one was refused, after which others may not be numbered."""
        try:
            return self._sent(producer, topic, count, keyed_by)
        except _GIVEN_UP:
            return False

    def _sent(
        self, producer: Producer, topic: str, count: int, keyed_by: random.Random | None
    ) -> bool:
        refused = [0]

        def told(error: Any, message: Any) -> None:
            refused[0] += error is not None
            self._note(error, message)

        for _ in range(count):
            number = next(self._numbers)
            what = record(number)
            if keyed_by is not None:
                what["key"] = f"key-{keyed_by.randrange(_KEYS)}".encode()
            if topic == self._targets.remembered:
                what["value"] = f"remembered {number}".encode() * 3
            partition = number % self._targets.partitions
            producer.produce(topic, partition=partition, on_delivery=told, **what)
        return producer.flush(_TIMEOUT_MS / 1000 + 4) == 0 and not refused[0]

    def _note(self, error: Any, message: Any) -> None:
        topic = message.topic()
        if error is not None:
            self.written.refused[topic] += 1
            return
        self.written.acknowledged[topic] += 1
        if topic == self._targets.remembered:
            places = self.written.kept.setdefault((topic, message.partition()), {})
            places[message.offset()] = message.value()

    # Transactional

    def _transact(self, name: str, topic: str, open_s: float) -> None:
        """Commit, abort, and leave open for a while; begin anew after every failure."""
        chance = random.Random(f"{self._seed} {name}")
        producer: Producer | None = None
        while not self._stopping.wait(0.05):
            try:
                if producer is None:
                    producer = self._transactional(name)
                    producer.init_transactions(20)
                self._transaction(producer, topic, chance, open_s)
            except _GIVEN_UP:
                self.written.transactions["given up"] += 1
                if producer is not None:
                    producer.purge()
                producer = None

    def _transactional(self, name: str) -> Producer:
        return self._producer(
            {
                "transactional.id": name,
                "compression.type": "snappy",
                "transaction.timeout.ms": _TRANSACTION_TIMEOUT_MS,
            }
        )

    def _transaction(
        self, producer: Producer, topic: str, chance: random.Random, open_s: float
    ) -> None:
        producer.begin_transaction()
        for _ in range(chance.randrange(3, 25)):
            number = next(self._numbers)
            partition = number % self._targets.partitions
            producer.produce(topic, partition=partition, on_delivery=self._note, **record(number))
        producer.flush(_TIMEOUT_MS / 1000)
        until = time.monotonic() + chance.uniform(0, open_s)
        while time.monotonic() < until and not self._stopping.is_set():
            time.sleep(0.05)
        if chance.random() < 0.3:
            producer.abort_transaction(20)
            self.written.transactions["aborted"] += 1
        else:
            producer.commit_transaction(20)
            self.written.transactions["committed"] += 1
