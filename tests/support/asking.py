"""Asks a broker for records, offsets and topics in one line, as a reader of partition 0 would."""

from typing import Any

from support.brokers import AskedBroker
from twinlog.wire.messages.fetch import (
    FETCH,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchTopic,
)
from twinlog.wire.messages.offsets import (
    LIST_OFFSETS,
    ListedPartition,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from twinlog.wire.messages.topics import (
    CREATE_TOPICS,
    DELETE_RECORDS,
    DELETE_TOPICS,
    CreatableTopic,
    CreateTopicsRequest,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
    TopicConfig,
    TopicToDelete,
)
from twinlog.wire.records.batch import iter_headers
from twinlog.wire.records.records import Record, records_of

READ_COMMITTED = 1


def reading(
    topic: str, offset: int, *, isolation: int = 0, max_bytes: int = 1 << 20, **more: Any
) -> FetchRequest:
    """Make a request for one partition; ``more`` goes to the partition."""
    asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes, **more)
    topics = (FetchTopic(topic=topic, partitions=(asked,)),)
    return FetchRequest(max_wait_ms=0, min_bytes=1, isolation_level=isolation, topics=topics)


async def fetch(broker: AskedBroker, topic: str, offset: int, **more: Any) -> FetchedPartition:
    """Read a partition from an offset, once."""
    answer = await broker.ask(FETCH, reading(topic, offset, **more), 12)
    return answer.topics[0].partitions[0]


def records_in(answer: FetchedPartition) -> list[Record]:
    """Give the records of data batches as a plain consumer sees them."""
    content = answer.records
    assert isinstance(content, bytes | memoryview), type(content)
    return [
        record
        for position, header in iter_headers(content)
        if not header.is_control
        for record in records_of(content, position, header)
    ]


async def list_offset(
    broker: AskedBroker, topic: str, timestamp: int, *, isolation: int = 0
) -> ListedPartition:
    """Find an offset by time, or by one of the times that stand for a place."""
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(
        isolation_level=isolation, topics=(ListOffsetsTopic(name=topic, partitions=(asked,)),)
    )
    answer = await broker.ask(LIST_OFFSETS, request)
    return answer.topics[0].partitions[0]


async def create(broker: AskedBroker, name: str, **config: str) -> Any:
    """Make a topic of one partition; ``retention_bytes`` stands for ``retention.bytes``."""
    configs = tuple(TopicConfig(name=k.replace("_", "."), value=v) for k, v in config.items())
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=configs)
    request = CreateTopicsRequest(topics=(topic,), timeout_ms=60_000)
    (made,) = (await broker.ask(CREATE_TOPICS, request)).topics
    assert made.error_code == 0, made.error_message
    return made


async def delete(broker: AskedBroker, name: str) -> None:
    """Delete a topic."""
    request = DeleteTopicsRequest(topics=(TopicToDelete(name=name),), timeout_ms=60_000)
    (gone,) = (await broker.ask(DELETE_TOPICS, request)).responses
    assert gone.error_code == 0, gone.error_message


async def trim(broker: AskedBroker, name: str, before: int) -> int:
    """Delete the records before an offset; give where the log starts now."""
    asked = DeleteRecordsPartition(partition_index=0, offset=before)
    topic = DeleteRecordsTopic(name=name, partitions=(asked,))
    request = DeleteRecordsRequest(topics=(topic,), timeout_ms=60_000)
    (done,) = (await broker.ask(DELETE_RECORDS, request)).topics[0].partitions
    assert done.error_code == 0, done.error_code
    return done.low_watermark
