"""The names and numbers by which topics, partitions, brokers and offsets are known."""

from typing import Final, NamedTuple, NewType
from uuid import UUID

TopicName = NewType("TopicName", str)
TopicId = NewType("TopicId", UUID)
Offset = NewType("Offset", int)
LeaderEpoch = NewType("LeaderEpoch", int)
BrokerId = NewType("BrokerId", int)
ProducerId = NewType("ProducerId", int)

NO_TOPIC_ID: Final = TopicId(UUID(int=0))
NO_OFFSET: Final = Offset(-1)
NO_EPOCH: Final = LeaderEpoch(-1)
NO_PRODUCER_ID: Final = ProducerId(-1)


class TopicPartition(NamedTuple):
    """One partition of one topic; printed as Kafka names its folder: ``topic-3``.

    A tuple, because it is made and looked up for every partition of every request.
    """

    topic: TopicName
    partition: int

    def __str__(self) -> str:
        """Give the name of the partition's folder."""
        return f"{self.topic}-{self.partition}"
