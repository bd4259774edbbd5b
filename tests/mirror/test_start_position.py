"""Where a mirror begins is the operator's choice; what it then holds is proved from there on."""

from pathlib import Path

import pytest

from support.batches import batch
from support.cluster_admin import offsets_of
from support.dying_process import DyingTwinlog
from support.kafka_node import KafkaNode
from support.mirror import Mirror, Partition
from support.mirrored_pair import QUICK_MIRROR, Pair, create_mirror, log_of, mirrored_pair, until
from support.pair_commands import command, described, until_range, verified
from support.source_data import flush, producer_of
from support.twinlog_process import TwinlogProcess
from support.waiting import wait_until
from twinlog.model.ids import TopicName, TopicPartition
from twinlog.wire.messages.group_offsets import (
    OFFSET_COMMIT,
    OFFSET_FETCH,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
    OffsetFetchGroup,
    OffsetFetchRequest,
)
from twinlog.wire.messages.groups import FIND_COORDINATOR, FindCoordinatorRequest
from twinlog.wire.messages.topics import (
    CREATE_PARTITIONS,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)

real = [pytest.mark.kafka, pytest.mark.cluster, pytest.mark.slow]
WATCHFUL = {"mirror.metadata.refresh.interval.ms": "50"}
HOUR_MS = 3_600_000
MORNING_MS = 1_769_817_600_000
START_STEPS = (
    "effect SaveStart",
    "event StartSaved",
    "effect RestartAt",
    "event StepDone",
    "effect SaveState MIRRORING",
    "event StateSaved MIRRORING",
    "effect FetchFrom",
)


async def begun(pair: Pair, spec: str, *topics: str) -> None:
    """Create the mirror and start topics."""
    assert not (await pair.create(mirror_start_offset_spec=spec)).error_code
    started = await pair.start(*topics)
    assert not any(topic.error_code for topic in started.topics), started


async def test_from_the_latest_record_on_and_verify_says_from_where(tmp_path: Path) -> None:
    async with mirrored_pair(tmp_path) as pair:
        await pair.make_topic("t")
        await pair.produce("t", 5)
        await begun(pair, "latest", "t")
        await pair.until_state("MIRRORING", "t")
        row = (await described(pair.destination))["t", 0]
        assert (row["start"]["offset"], row["start"]["skippedFrom"]) == (10, 0), row
        assert row["losses"] == []
        await pair.produce("t", 2)
        await until_range(pair.destination, ("t", 0), 10, 14)
        row = (await described(pair.destination))["t", 0]
        assert row["lag"] == 0, row
        code, found = await verified(pair.destination)
        assert (code, found["result"], found["from"], found["batches"]) == (0, "EQUAL", 10, 2)
        ran = await command(pair.destination, "--verify")
        assert (
            "t-0 is equal from 10, since mirror.start.offset.spec=latest; "
            "records 0 to 9 were never to be mirrored" in ran.out
        ), ran.out


async def test_a_group_that_stands_before_the_beginning_is_set_to_it(tmp_path: Path) -> None:
    async with mirrored_pair(tmp_path) as pair:
        await pair.make_topic("t")
        await pair.produce("t", 5)
        asked = FindCoordinatorRequest(coordinator_keys=("g",))
        await pair.source.ask(FIND_COORDINATOR, asked)
        one = OffsetCommitPartition(partition_index=0, committed_offset=3)
        commit = OffsetCommitRequest(
            group_id="g", topics=(OffsetCommitTopic(name="t", partitions=(one,)),)
        )
        answer = await pair.source.ask(OFFSET_COMMIT, commit, 8)
        assert not answer.topics[0].partitions[0].error_code
        await begun(pair, "latest", "t")
        await pair.until_state("MIRRORING", "t")

        async def is_set() -> bool:
            await pair.destination.ask(FIND_COORDINATOR, asked)
            fetch = OffsetFetchRequest(groups=(OffsetFetchGroup(group_id="g"),))
            found = await pair.destination.ask(OFFSET_FETCH, fetch, 8)
            return any(
                partition.committed_offset == 10
                for topic in found.groups[0].topics
                for partition in topic.partitions
            )

        await until(is_set)


async def test_from_a_time_on_the_batch_that_holds_it_comes_whole(tmp_path: Path) -> None:
    async with mirrored_pair(tmp_path) as pair:
        await pair.make_topic("t", message_timestamp_before_max_ms=str(1 << 60))
        for hour in range(3):
            times = [MORNING_MS + hour * HOUR_MS + minute * 60_000 for minute in range(4)]
            done = await pair.source.produce("t", batch(4, timestamps=times))
            assert not done.error_code, done
        # Its first record of then or later is 6, the third of the second batch.
        await begun(pair, str(MORNING_MS + HOUR_MS + 61_000), "t")
        await until_range(pair.destination, ("t", 0), 4, 12)

        async def is_noted() -> bool:
            row = (await described(pair.destination))["t", 0]
            return row["start"] is not None and row["start"]["offset"] == 4

        await until(is_noted)
        code, found = await verified(pair.destination)
        assert (code, found["from"], found["equalUpTo"]) == (0, 4, 12), found


@pytest.mark.parametrize("spec", ["latest", "2035-01-01T00:00:00Z"])
async def test_what_is_created_after_the_mirror_began_is_mirrored_from_its_first_record(
    tmp_path: Path, spec: str
) -> None:
    folder = tmp_path
    async with mirrored_pair(folder, WATCHFUL) as pair:
        await pair.make_topic("a1")
        await pair.produce("a1", 3)
        assert not (
            await pair.create(topics_include="a.*", mirror_start_offset_spec=spec)
        ).error_code
        await until_range(pair.destination, ("a1", 0), 6, 6)
        await pair.make_topic("a2")
        await pair.produce("a2", 3)
        await until_range(pair.destination, ("a2", 0), 0, 6)
        grown = CreatePartitionsTopic(name="a1", count=2)
        request = CreatePartitionsRequest(topics=(grown,), timeout_ms=60_000)
        assert not (await pair.source.ask(CREATE_PARTITIONS, request)).results[0].error_code
        await pair.produce("a1", 2, partition=1)
        await until_range(pair.destination, ("a1", 1), 0, 4)
        rows = await described(pair.destination)
        assert rows["a1", 0]["start"]["spec"] == spec
        assert rows["a2", 0]["start"] is None
        # What older patterns did not match is begun where the operator wants.
        await pair.make_topic("b")
        await pair.produce("b", 2)
        await pair.start("b")
        await until_range(pair.destination, ("b", 0), 4, 4)


async def test_stopped_and_started_again_it_goes_on_and_begins_nowhere_anew(
    tmp_path: Path,
) -> None:
    async with mirrored_pair(tmp_path) as pair:
        await pair.make_topic("t")
        await pair.produce("t", 5)
        await begun(pair, "latest", "t")
        await pair.until_state("MIRRORING", "t")
        for end in (12, 14):  # the first stop comes before any record has
            await pair.stop("t")
            await pair.until_state("STOPPED", "t")
            await pair.produce("t")
            await pair.start("t")
            await until_range(pair.destination, ("t", 0), 10, end)
        code, found = await verified(pair.destination)
        assert (code, found["from"], found["start"]["offset"]) == (0, 10, 10), found


async def test_a_failback_after_a_latest_start_keeps_all_that_was_not_mirrored(
    tmp_path: Path,
) -> None:
    """The destination began at the source's end: below that, the source's log is its own."""
    async with mirrored_pair(tmp_path) as pair:
        await pair.make_topic("t")
        await pair.produce("t", 5)
        await begun(pair, "latest", "t")
        await pair.until_state("MIRRORING", "t")
        await pair.stop("t")
        await pair.until_state("STOPPED", "t")
        assert not (await pair.destination.produce("t", batch(2))).error_code
        end = log_of(pair.destination, TopicPartition(TopicName("t"), 0)).end
        back = Pair(pair.destination, pair.source)
        config = {"bootstrap.servers": str(pair.destination.address), **QUICK_MIRROR}
        await create_mirror(pair.source, "m", config)
        await back.start("t")
        await until_range(pair.source, ("t", 0), 0, end)
        code, found = await verified(pair.source)
        assert (code, found["result"], found["from"]) == (0, "EQUAL", 10), found


def _produce(node: KafkaNode, topic: str, first: int, count: int) -> None:
    """Write batches of 20 records, each a minute after the one before."""
    producer = producer_of(node, compression_type="zstd")
    for number in range(first, first + count):
        producer.produce(
            topic,
            f"record {number}".encode() * 10,
            partition=0,
            timestamp=MORNING_MS + number * 60_000,
        )
        if number % 20 == 19:
            flush(producer)
    flush(producer)


def _await_range(twinlog: TwinlogProcess, of: Partition, start: int, end: int) -> None:
    wait_until(
        lambda: offsets_of(twinlog, *of) == (start, end),
        lambda: f"{of} is {start} to {end}, not {offsets_of(twinlog, *of)}",
    )


class TestFromKafka:
    """Sources of both ends of what is supported."""

    pytestmark = real

    @pytest.mark.parametrize("spec", ["2026-01-31T02:10:00Z", str(MORNING_MS + 130 * 60_000)])
    def test_a_mirror_begins_at_a_time_that_lies_inside_a_batch(
        self, any_kafka: KafkaNode, twinlog: TwinlogProcess, fresh: str, spec: str
    ) -> None:
        of = (fresh, 0)
        any_kafka.create_topic(fresh, config={"retention.ms": "-1"})
        _produce(any_kafka, fresh, 0, 200)
        mirror = Mirror(twinlog, any_kafka, "from-a-time")
        mirror.create(mirror_start_offset_spec=spec)
        mirror.start([fresh])
        _await_range(twinlog, of, 120, 200)
        _produce(any_kafka, fresh, 200, 20)
        _await_range(twinlog, of, 120, 220)
        told = mirror.run("--verify", "--mirror", mirror.name).stdout
        assert f"{fresh}-0 is equal from 120, since mirror.start.offset.spec={spec}" in told, told
        assert "records 0 to 119 were never to be mirrored" in told, told

    def test_killed_at_any_step_of_its_start_it_begins_where_it_was_to_begin(
        self, any_kafka: KafkaNode, tmp_path: Path, fresh: str
    ) -> None:
        of = (fresh, 0)
        any_kafka.create_topic(fresh, config={"retention.ms": "-1"})
        _produce(any_kafka, fresh, 0, 100)
        deaths = 0
        # From scratch for each step: what was begun there is forgotten with the data.
        for number, moment in enumerate(START_STEPS):
            twinlog = DyingTwinlog(tmp_path / f"dying-{number}")
            mirror = Mirror(twinlog, any_kafka, "from-the-latest")
            begin = offsets_of(any_kafka, *of)[1]
            try:
                twinlog.start()
                mirror.create(mirror_start_offset_spec="latest", topics_include=fresh)
                twinlog.die_at(moment)
                has_died = twinlog.dies_before(lambda: twinlog.tells(of, "MIRRORING"))  # noqa: B023
                deaths += has_died
                if not twinlog.server.is_running:
                    # Written while nobody is there: a latest of then would lose it.
                    _produce(any_kafka, fresh, begin, 20)
                    twinlog.start()
                else:
                    _produce(any_kafka, fresh, begin, 20)
                at_latest = begin + 20 if has_died and number == 0 else begin
                _await_range(twinlog, of, at_latest, begin + 20)
                mirror.await_states([of], "MIRRORING")
                mirror.run("--verify", "--mirror", mirror.name)
            finally:
                twinlog.stop()
        assert deaths >= len(START_STEPS) - 2, f"{deaths} of {len(START_STEPS)} were its last"
