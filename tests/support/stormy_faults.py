"""What befalls a source and its mirror in a storm: one fault after another, by a seed."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from support.kafka_cluster import KafkaCluster, Partition
from support.log_bytes import batches_of
from support.twinlog_process import TwinlogProcess
from support.waiting import wait_until

_ORDERS_MAX: Final = 4
_WHOLE_S: Final = 45.0
_MORE_S: Final = 40.0


class StormyFaults:
    """Knows every kind of fault, and counts those that came."""

    def __init__(
        self,
        source: KafkaCluster,
        twinlog: TwinlogProcess,
        partitions: Sequence[Partition],
        losing: Sequence[Partition],
        chance: random.Random,
    ) -> None:
        """``losing`` are the partitions whose topic allows an unclean election."""
        self.counts: Final[Counter[str]] = Counter()
        self._source: Final = source
        self._twinlog: Final = twinlog
        self._partitions: Final = partitions
        self._losing: Final = losing
        self._chance: Final = chance
        self._kinds: Final[dict[str, Callable[[], None]]] = {
            "broker killed": self._kill_broker,
            "broker restarted": self._restart_broker,
            "broker frozen": self._freeze_broker,
            "partitions moved": self._move,
            "preferred election": self._elect_preferred,
            "unclean election, frozen": lambda: self._elect_uncleanly(is_frozen=True),
            "unclean election, killed": lambda: self._elect_uncleanly(is_frozen=False),
            "twinlog killed": self._kill_twinlog,
            "twinlog restarted": self._restart_twinlog,
        }
        self._dealt: Final = self._deal()

    def deal(self, count: int) -> list[str]:
        """Give the next faults; every kind comes before any comes again."""
        return [next(self._dealt) for _ in range(count)]

    def strike(self, kind: str) -> None:
        """Let one fault happen, start to end."""
        self._kinds[kind]()
        self.counts[kind] += 1

    def heal(self) -> None:
        """Let everything live, and every partition be at all brokers."""
        self._source.revive()
        if not self._twinlog.server.is_running:
            self._twinlog.start()
        self._source.move({of: self._some_order() for of in self._partitions})
        self._make_whole()

    def _make_whole(self) -> None:
        """Have every partition at all brokers.

        Kafka 4.4 lets a removal that is still pending go on although all replicas were ordered
        meanwhile: the partition ends without them, and the order has to be given again.
        """
        topics = {topic for topic, _ in self._partitions}
        for attempt in range(_ORDERS_MAX):
            try:
                self._source.await_whole(topics, timeout_s=_WHOLE_S)
            except AssertionError:
                if attempt == _ORDERS_MAX - 1:
                    raise
                self.counts["moved once more"] += 1
                self._source.move({of: self._some_order() for of in self._partitions})
            else:
                return

    def _deal(self) -> Iterator[str]:
        while True:
            deck = sorted(self._kinds)
            self._chance.shuffle(deck)
            yield from deck

    def _some_order(self) -> list[int]:
        numbers = list(self._source.brokers)
        self._chance.shuffle(numbers)
        return numbers

    def _some_broker(self) -> int:
        return self._chance.choice(list(self._source.brokers))

    def _pause(self, most_s: float) -> None:
        time.sleep(self._chance.uniform(0, most_s))

    # The source

    def _kill_broker(self) -> None:
        number = self._some_broker()
        self._source.kill([number])
        self._pause(5)
        self._source.start_brokers([number])
        self._pause(1)

    def _restart_broker(self) -> None:
        number = self._some_broker()
        self._source.brokers[number].stop()
        self._source.start_brokers([number])
        self._pause(1)

    def _freeze_broker(self) -> None:
        """Longer or shorter than it takes to be given up."""
        broker = self._source.brokers[self._some_broker()]
        broker.freeze()
        self._pause(7)
        broker.thaw()
        self._pause(2)

    def _move(self) -> None:
        """Take replicas away, so that they are copied anew, and give others the lead."""
        fewer = {of: self._some_order()[: self._chance.randrange(1, 4)] for of in self._partitions}
        self._source.move(fewer)
        self._pause(3)
        self._source.move({of: self._some_order() for of in self._partitions})
        self._pause(1)

    def _elect_preferred(self) -> None:
        self._source.move({of: self._some_order() for of in self._partitions})
        self._source.elect(self._partitions)
        self._pause(1)

    def _elect_uncleanly(self, *, is_frozen: bool) -> None:
        self._make_whole()
        of = self._chance.choice(list(self._losing))
        leader = self._source.lose_what_comes_now(
            of, lambda: self._until_more_is_mirrored(of), is_frozen=is_frozen
        )
        self._pause(3)
        self._source.start_brokers([leader])
        self._pause(1)

    def _until_more_is_mirrored(self, of: Partition) -> None:
        """Return when the mirror has more; one that has failed gets no more, and is left alone."""
        self._pause(3)
        before = self._end_here(of)
        deadline = time.monotonic() + _MORE_S
        while self._end_here(of) <= before and time.monotonic() < deadline:
            time.sleep(0.05)

    def _end_here(self, of: Partition) -> int:
        last = [batch.last_offset for batch in batches_of(self._twinlog.partition_folder(*of))]
        return last[-1] if last else -1

    # The mirror

    def _kill_twinlog(self) -> None:
        self._twinlog.kill()
        self._pause(1)
        self._twinlog.start()
        self._pause(1)

    def _restart_twinlog(self) -> None:
        self._twinlog.stop()
        self._pause(1)
        wait_until(lambda: not self._twinlog.server.is_running, "twinlog is down")
        self._twinlog.start()
        self._pause(1)
