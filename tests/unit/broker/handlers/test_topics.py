import asyncio
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from support.batches import batch
from support.brokers import LocalBroker, local_broker
from support.clusters import mirrored, topic
from twinlog.cluster.changes import Change, ClusterNamed, MirrorSet
from twinlog.cluster.facts import DesiredState, MirrorFact, MirrorTopicFact
from twinlog.cluster.image import ClusterImage
from twinlog.cluster.records import stored_facts
from twinlog.metastore.sqlite import SqliteTable
from twinlog.metastore.store import Put, StoreError
from twinlog.model.errors import ErrorCode
from twinlog.model.ids import NO_TOPIC_ID, TopicId, TopicName, TopicPartition
from twinlog.wire.messages.metadata import METADATA, MetadataRequest
from twinlog.wire.messages.topics import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_RECORDS,
    DELETE_TOPICS,
    CreatableTopic,
    CreatedTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeletedTopic,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
    NewPartitionAssignment,
    ReplicaAssignment,
    TopicConfig,
    TopicToDelete,
)


def wish(
    name: str, partitions: int = -1, config: Mapping[str, str | None] | None = None, **fields: Any
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=fields.pop("replication_factor", -1),
        configs=tuple(TopicConfig(name=k, value=v) for k, v in (config or {}).items()),
        **fields,
    )


async def create(
    broker: LocalBroker, *wishes: CreatableTopic, version: int | None = None, **fields: Any
) -> tuple[CreatedTopic, ...]:
    request = CreateTopicsRequest(topics=wishes, timeout_ms=60_000, **fields)
    return (await broker.ask(CREATE_TOPICS, request, version)).topics


async def delete(broker: LocalBroker, *topics: TopicToDelete) -> tuple[DeletedTopic, ...]:
    request = DeleteTopicsRequest(topics=topics, timeout_ms=60_000)
    return (await broker.ask(DELETE_TOPICS, request)).responses


async def names(broker: LocalBroker) -> list[str | None]:
    answer = await broker.ask(METADATA, MetadataRequest(topics=None))
    return sorted((topic.name for topic in answer.topics), key=str)


def codes(answers: Sequence[Any]) -> list[str]:
    return [ErrorCode(answer.error_code).name for answer in answers]


async def test_topics_are_made_with_what_they_ask_and_the_brokers_defaults(tmp_path: Path) -> None:
    async with local_broker(tmp_path, {"num.partitions": "3"}) as broker:
        first, second = await create(
            broker, wish("a"), wish("b", 2, {"retention.ms": "77", "cleanup.policy": "compact"})
        )
        assert (first.num_partitions, first.replication_factor) == (3, 1)
        assert (second.num_partitions, first.topic_id != second.topic_id) == (2, True)
        configs = {c.name: (c.value, c.config_source) for c in second.configs or ()}
        assert configs["retention.ms"] == ("77", 1)
        assert configs["segment.bytes"][1] == 5
        answer = await broker.produce("a", batch([(b"k", b"v")]), partition=2)
        assert answer.error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", range(2, 8))
async def test_every_version_makes_topics(tmp_path: Path, version: int) -> None:
    async with local_broker(tmp_path) as broker:
        (made,) = await create(broker, wish("a", 2, replication_factor=1), version=version)
        assert made.error_code == ErrorCode.NONE
        assert (made.topic_id != NO_TOPIC_ID) == (version >= 7)


async def test_what_cannot_be_is_refused_and_the_rest_is_made(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        wishes = [
            wish("good"),
            wish("a b"),
            wish("x", 0),
            wish("x2", replication_factor=3),
            wish("x3", config={"retention.ms": "soon"}),
            wish("x4", config={"no.such": "1"}),
            wish("x5", config={"retention.ms": None}),
            wish("twice"),
            wish("twice"),
            wish("go.od"),
            wish("go_od"),
            wish("hand", assignments=(ReplicaAssignment(partition_index=0, broker_ids=(9,)),)),
        ]
        answers = await create(broker, *wishes)
        assert codes(answers) == [
            "NONE",
            "INVALID_TOPIC_EXCEPTION",
            "INVALID_PARTITIONS",
            "INVALID_REPLICATION_FACTOR",
            "INVALID_CONFIG",
            "INVALID_CONFIG",
            "INVALID_CONFIG",
            "INVALID_REQUEST",
            "INVALID_REQUEST",
            "NONE",
            "INVALID_TOPIC_EXCEPTION",
            "INVALID_REPLICA_ASSIGNMENT",
        ]
        assert all(a.error_message for a in answers if a.error_code)
        assert await names(broker) == ["go.od", "good"]
        assert codes(await create(broker, wish("good"))) == ["TOPIC_ALREADY_EXISTS"]


async def test_of_two_names_that_collide_asked_for_at_once_one_is_made(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        other = await broker.another_connection()
        request = CreateTopicsRequest(topics=(wish("a_b"),), timeout_ms=60_000)
        (one,), two = await asyncio.gather(
            create(broker, wish("a.b")), other.call(CREATE_TOPICS, request, timeout_s=60)
        )
        assert sorted(codes([one, *two.topics])) == ["INVALID_TOPIC_EXCEPTION", "NONE"]
        await other.close()


async def test_when_the_store_fails_every_topic_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with local_broker(tmp_path) as broker:

        def fail(*_: object, **__: object) -> None:
            raise StoreError("metadata.db: nothing was written: disk is full")

        monkeypatch.setattr(SqliteTable, "transact", fail)
        answers = await create(broker, wish("a"), wish("b b"))
        assert codes(answers) == ["KAFKA_STORAGE_ERROR"] * 2
        assert answers[0].error_message == "metadata.db: nothing was written: disk is full"
        monkeypatch.undo()
        assert codes(await create(broker, wish("a"))) == ["NONE"]


async def test_replicas_can_be_given_by_hand(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        by_hand = tuple(ReplicaAssignment(partition_index=i, broker_ids=(1,)) for i in (1, 0))
        (made,) = await create(broker, wish("a", assignments=by_hand))
        assert made.num_partitions == 2
        (refused,) = await create(broker, wish("b", assignments=by_hand[:1] * 2))
        assert codes([refused]) == ["INVALID_REPLICA_ASSIGNMENT"]


async def test_to_validate_makes_nothing(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        good, bad = await create(broker, wish("a", 4), wish("b", 0), validate_only=True)
        assert (good.error_code, good.num_partitions) == (0, 4)
        assert codes([bad]) == ["INVALID_PARTITIONS"]
        assert await names(broker) == []


async def test_topics_go_by_name_and_by_id_with_their_data(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        a, _ = await create(broker, wish("a"), wish("b"))
        await broker.produce("a", batch([(b"k", b"v")]))
        by_id, by_name = await delete(
            broker, TopicToDelete(topic_id=a.topic_id), TopicToDelete(name="b")
        )
        assert (by_id.name, by_id.error_code, by_name.error_code) == ("a", 0, 0)
        assert by_name.topic_id != NO_TOPIC_ID
        assert await names(broker) == []
        (again,) = await create(broker, wish("a"))
        assert again.topic_id != a.topic_id
        produced = await broker.produce("a", batch([(b"k", b"v")]))
        assert produced.base_offset == 0


async def test_the_oldest_delete_names_its_topics(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        await create(broker, wish("a"))
        request = DeleteTopicsRequest(topic_names=("a", "none"), timeout_ms=60_000)
        answer = await broker.ask(DELETE_TOPICS, request, 1)
        assert codes(answer.responses) == ["NONE", "UNKNOWN_TOPIC_OR_PARTITION"]


async def test_what_is_not_there_or_not_told_clearly_is_not_deleted(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        (a,) = await create(broker, wish("a"))
        stranger = TopicId(type(a.topic_id)(int=5))
        answers = await delete(
            broker,
            TopicToDelete(topic_id=stranger),
            TopicToDelete(),
            TopicToDelete(name="a", topic_id=a.topic_id),
            TopicToDelete(name="x"),
            TopicToDelete(name="x"),
        )
        assert codes(answers) == ["UNKNOWN_TOPIC_ID"] + ["INVALID_REQUEST"] * 4
        assert await names(broker) == ["a"]


async def test_deletion_can_be_switched_off(tmp_path: Path) -> None:
    async with local_broker(tmp_path, {"delete.topic.enable": "false"}) as broker:
        await create(broker, wish("a"))
        assert codes(await delete(broker, TopicToDelete(name="a"))) == ["TOPIC_DELETION_DISABLED"]


async def test_the_brokers_own_topics_are_neither_deleted_nor_grown(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        await create(broker, wish("__consumer_offsets", 5))
        deleted = await delete(broker, TopicToDelete(name="__consumer_offsets"))
        assert codes(deleted) == ["POLICY_VIOLATION"]
        grown = CreatePartitionsTopic(name="__consumer_offsets", count=9)
        answer = await broker.ask(
            CREATE_PARTITIONS, CreatePartitionsRequest(topics=(grown,), timeout_ms=1)
        )
        assert codes(answer.results) == ["POLICY_VIOLATION"]


async def test_topics_grow(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        await create(broker, wish("a"), wish("b"), wish("c"))
        by_hand = (NewPartitionAssignment(broker_ids=(1,)),)
        topics = (
            CreatePartitionsTopic(name="a", count=3),
            CreatePartitionsTopic(name="b", count=2, assignments=by_hand),
            CreatePartitionsTopic(name="c", count=1),
            CreatePartitionsTopic(name="none", count=1),
        )
        for validate_only in (True, False):
            answer = await broker.ask(
                CREATE_PARTITIONS,
                CreatePartitionsRequest(
                    topics=topics, timeout_ms=60_000, validate_only=validate_only
                ),
            )
            assert codes(answer.results) == [
                "NONE",
                "NONE",
                "INVALID_PARTITIONS",
                "UNKNOWN_TOPIC_OR_PARTITION",
            ]
        assert (await broker.produce("a", batch([(b"k", b"v")]), partition=2)).error_code == 0
        assert (await broker.produce("b", batch([(b"k", b"v")]), partition=1)).error_code == 0
        twice = (CreatePartitionsTopic(name="a", count=5),) * 2
        answer = await broker.ask(
            CREATE_PARTITIONS, CreatePartitionsRequest(topics=twice, timeout_ms=1)
        )
        assert codes(answer.results) == ["INVALID_REQUEST"] * 2


async def test_records_are_deleted_up_to_an_offset(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        await create(broker, wish("a"), wish("compacted", config={"cleanup.policy": "compact"}))
        await create(broker, wish("__consumer_offsets", 1))
        await broker.produce("a", batch([(b"k", b"v")] * 10))
        for version in range(3):
            assert await trim(broker, "a", 4, version) == ("NONE", 4)
        assert await trim(broker, "a", 2) == ("NONE", 4), "a start never moves back"
        assert await trim(broker, "a", 11) == ("OFFSET_OUT_OF_RANGE", -1)
        assert await trim(broker, "a", -2) == ("OFFSET_OUT_OF_RANGE", -1)
        assert await trim(broker, "a", -1) == ("NONE", 10)
        assert await trim(broker, "none", 0) == ("UNKNOWN_TOPIC_OR_PARTITION", -1)
        assert await trim(broker, "compacted", 0) == ("POLICY_VIOLATION", -1)
        await create(broker, wish("kept", config={"cleanup.policy": ""}))
        assert await trim(broker, "kept", 0) == ("NONE", 0), "nothing else ever frees its disk"
        assert await trim(broker, "__consumer_offsets", 0) == ("INVALID_TOPIC_EXCEPTION", -1)


def seed(folder: Path, *changes: Change) -> None:
    """Write facts as a broker would have left them."""
    (folder / "data").mkdir()
    table = SqliteTable(folder / "data" / "metadata.db")
    image = ClusterImage().with_changes(changes)
    for fact in stored_facts(changes, image):
        assert fact.value is not None
        table.transact((), (Put(fact.key, fact.value),), is_leased=False)
    table.close()


async def test_a_mirror_topic_keeps_its_partitions_and_records(tmp_path: Path) -> None:
    unreachable = {"bootstrap.servers": "127.0.0.1:1"}
    seed(
        tmp_path,
        ClusterNamed("destination"),
        MirrorSet(MirrorFact("a-to-b", unreachable, "source")),
        topic("orders"),
        mirrored("orders", "a-to-b", DesiredState.PAUSED),
    )
    async with local_broker(tmp_path) as broker:
        await create(broker, wish("mine"))
        refused, deleted = await delete(
            broker, TopicToDelete(name="orders"), TopicToDelete(name="mine")
        )
        assert codes([refused, deleted]) == ["POLICY_VIOLATION", "NONE"]
        assert refused.error_message is not None
        assert "--stop --mirror a-to-b --topics orders" in refused.error_message
        grown = CreatePartitionsTopic(name="orders", count=9)
        answer = await broker.ask(
            CREATE_PARTITIONS, CreatePartitionsRequest(topics=(grown,), timeout_ms=1)
        )
        assert codes(answer.results) == ["POLICY_VIOLATION"]
        assert await trim(broker, "orders", 0) == ("POLICY_VIOLATION", -1)


async def test_while_a_stop_writes_to_a_topic_it_is_neither_deleted_nor_trimmed(
    tmp_path: Path,
) -> None:
    async with local_broker(tmp_path) as broker:
        await create(broker, wish("orders", 2))
        # As in a stop under way: the facts say STOPPED, one partition still belongs to the mirror.
        partition = broker.server._partitions.led(TopicPartition(TopicName("orders"), 1))
        partition.mirror = MirrorTopicFact("a-to-b", DesiredState.STOPPED)
        (refused,) = await delete(broker, TopicToDelete(name="orders"))
        assert codes([refused]) == ["POLICY_VIOLATION"]
        assert refused.error_message is not None
        assert "--describe --mirror a-to-b" in refused.error_message
        assert await trim(broker, "orders", 0) == ("POLICY_VIOLATION", -1)
        partition.release_from_mirror()
        assert await trim(broker, "orders", 0) == ("NONE", 0)
        assert codes(await delete(broker, TopicToDelete(name="orders"))) == ["NONE"]


async def trim(
    broker: LocalBroker, name: str, offset: int, version: int | None = None
) -> tuple[str, int]:
    asked = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(
        topics=(DeleteRecordsTopic(name=name, partitions=(asked,)),), timeout_ms=60_000
    )
    answer = await broker.ask(DELETE_RECORDS, request, version)
    partition = answer.topics[0].partitions[0]
    return ErrorCode(partition.error_code).name, partition.low_watermark


async def test_records_answered_as_deleted_do_not_come_back_after_a_kill(tmp_path: Path) -> None:
    copied = tmp_path / "as-a-kill-leaves-it"
    async with local_broker(tmp_path / "first") as broker:
        await broker.make_topic("orders")
        await broker.produce("orders", batch(5))
        assert await trim(broker, "orders", 3) == ("NONE", 3)
        shutil.copytree(tmp_path / "first", copied, ignore=shutil.ignore_patterns(".lock"))
    async with local_broker(copied) as broker:
        assert await trim(broker, "orders", 0) == ("NONE", 3)
