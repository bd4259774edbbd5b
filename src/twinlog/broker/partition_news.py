"""Tells everybody who waits or keeps a fetch session that a partition has changed."""

from typing import Final

from twinlog.broker.waiting import Waiting
from twinlog.model.ids import TopicId, TopicPartition
from twinlog.replication.fetch_sessions import FetchSessions


class PartitionNews:
    """One call for whatever changes what readers may see: ends, log start, leader, existence."""

    __slots__ = ("_sessions", "_waiting")

    def __init__(self, waiting: Waiting, sessions: FetchSessions) -> None:
        self._waiting: Final = waiting
        self._sessions: Final = sessions

    def tell(self, of: TopicPartition, topic_id: TopicId) -> None:
        """Wake who waits for the partition, and mark it in the sessions that follow it."""
        self._waiting.notify(of)
        for session in self._sessions.mark_changed(of.topic, topic_id, of.partition):
            self._waiting.notify(session)
