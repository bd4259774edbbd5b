"""A group's offsets, in the versions before and after several groups could be asked at once."""

import asyncio

import pytest

from support.answering_broker import AnsweringBroker
from twinlog.cli import cluster
from twinlog.cli.cluster import Cluster
from twinlog.cli.failures import CliError
from twinlog.cli.offsets import commit_offsets, committed_offsets
from twinlog.network.addresses import Address
from twinlog.wire.messages import group_offsets as messages


async def connected(broker: AnsweringBroker) -> Cluster:
    client = Cluster(
        (Address("127.0.0.1", broker.port),), named_by="it", client_id="t", timeout_ms=60_000
    )
    await client.connect()
    return client


def read(broker: AnsweringBroker) -> dict[tuple[str, int], int]:
    async def run() -> dict[tuple[str, int], int]:
        client = await connected(broker)
        try:
            return await committed_offsets(client, "g")
        finally:
            await client.close()

    return asyncio.run(run())


def answer(offset: int, *, error_code: int = 0, group_error: int = 0) -> object:
    new = messages.OffsetFetchedPartitions(
        partition_index=1, committed_offset=offset, error_code=error_code
    )
    topic = messages.OffsetFetchedTopics(name="a", partitions=(new,))
    group = messages.OffsetFetchedGroup(group_id="g", topics=(topic,), error_code=group_error)
    return messages.OffsetFetchResponse(groups=(group,))


def test_committed_offsets_are_given_and_missing_ones_left_out(broker: AnsweringBroker) -> None:
    broker.on(messages.OFFSET_FETCH, answer(7))
    assert read(broker) == {("a", 1): 7}
    broker.on(messages.OFFSET_FETCH, answer(-1))
    assert read(broker) == {}


def test_older_brokers_are_asked_for_one_group(broker: AnsweringBroker) -> None:
    old = messages.OffsetFetchedPartition(partition_index=2, committed_offset=4)
    topic = messages.OffsetFetchedTopic(name="a", partitions=(old,))
    broker.on(messages.OFFSET_FETCH, messages.OffsetFetchResponse(topics=(topic,)))
    broker.versions_max[messages.OFFSET_FETCH.key] = 5
    assert read(broker) == {("a", 2): 4}


def test_an_unknown_group_has_no_offsets_and_other_errors_are_told(
    broker: AnsweringBroker,
) -> None:
    broker.on(messages.OFFSET_FETCH, answer(-1, group_error=69))
    assert read(broker) == {}
    broker.on(messages.OFFSET_FETCH, answer(-1, group_error=30))
    with pytest.raises(CliError, match="the offsets of group g cannot be read: GROUP_AUTHOR"):
        read(broker)
    broker.on(messages.OFFSET_FETCH, answer(-1, error_code=88))
    with pytest.raises(CliError, match="group g, a-1: UNSTABLE_OFFSET_COMMIT"):
        read(broker)


def test_offsets_of_several_topics_go_in_one_request(broker: AnsweringBroker) -> None:
    broker.on(messages.OFFSET_COMMIT, messages.OffsetCommitResponse(topics=()))

    async def run() -> None:
        client = await connected(broker)
        await commit_offsets(client, "g", {("b", 0): 1, ("a", 1): 2, ("a", 0): 3})
        await client.close()

    asyncio.run(run())
    (asked,) = broker.asked_for(messages.OffsetCommitRequest)
    assert [
        (topic.name, [(p.partition_index, p.committed_offset) for p in topic.partitions])
        for topic in asked.topics
    ] == [("a", [(0, 3), (1, 2)]), ("b", [(0, 1)])]
    assert asked.generation_id_or_member_epoch == -1


def test_a_coordinator_that_loads_is_asked_again_within_bounds(
    broker: AnsweringBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "RETRY_DELAY_S", 0)
    answers = [answer(-1, group_error=14), answer(-1, group_error=16), answer(7)]
    broker.on(messages.OFFSET_FETCH, lambda request: answers.pop(0))
    assert read(broker) == {("a", 1): 7}
    broker.on(messages.OFFSET_FETCH, answer(-1, group_error=14))
    before = len(broker.asked_for(messages.OffsetFetchRequest))
    with pytest.raises(CliError, match="COORDINATOR_LOAD_IN_PROGRESS"):
        read(broker)
    assert len(broker.asked_for(messages.OffsetFetchRequest)) - before == cluster.RETRIES_MAX
