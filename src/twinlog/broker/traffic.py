"""What went in and out of this broker's topics: plain numbers, added to where it happens."""

from collections.abc import Iterator
from typing import Final


class TopicTraffic:
    """The numbers of one topic since the broker started. A partition holds its topic's."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "failed_fetches",
        "failed_produces",
        "fetches",
        "messages_in",
        "produces",
        "replication_bytes_in",
    )

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.bytes_rejected = 0
        self.produces = 0
        self.fetches = 0
        self.failed_produces = 0
        self.failed_fetches = 0
        self.replication_bytes_in = 0

    def add(self, other: "TopicTraffic") -> None:
        """Take in the numbers of another topic."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Traffic:
    """The numbers of all topics that have partitions here, and what belongs to the broker alone."""

    def __init__(self) -> None:
        self._by_topic: Final[dict[str, TopicTraffic]] = {}
        self.elsewhere: Final = TopicTraffic()
        """What was asked of topics that are not here, and what was told of those that are gone."""
        self.replication_bytes_out = 0
        self.isr_shrinks = 0
        self.isr_expands = 0

    def __len__(self) -> int:
        """Give of how many topics there are numbers."""
        return len(self._by_topic)

    def __iter__(self) -> Iterator[tuple[str, TopicTraffic]]:
        """Give every topic's name and numbers."""
        return iter(tuple(self._by_topic.items()))

    def of(self, topic: str) -> TopicTraffic:
        """Give the numbers of a topic that is here, or those of all others."""
        return self._by_topic.get(topic, self.elsewhere)

    def begin(self, topic: str) -> TopicTraffic:
        """Give the numbers of a topic that has a partition here; they begin at 0 when it is new."""
        found = self._by_topic.get(topic)
        if found is None:
            found = self._by_topic[topic] = TopicTraffic()
        return found

    def forget(self, topic: str) -> None:
        """Let go of a topic that has no partition here any more; the total keeps its numbers."""
        gone = self._by_topic.pop(topic, None)
        if gone is not None:
            self.elsewhere.add(gone)

    def isr_changed(self, count_before: int, count_after: int) -> None:
        """Note that a partition led here has more or fewer replicas in sync."""
        self.isr_shrinks += count_after < count_before
        self.isr_expands += count_after > count_before

    def total(self) -> TopicTraffic:
        """Add everything up; it never falls."""
        total = TopicTraffic()
        total.add(self.elsewhere)
        for one in self._by_topic.values():
            total.add(one)
        return total
