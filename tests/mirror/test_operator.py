"""What an operator trusts: --verify, --wait, --plan and --promote against a real Kafka."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.kafka import Source
from support.kafka_node import KafkaNode
from support.log_bytes import batches_of
from support.mirror import CommandRun, Mirror, producing, twinlog_command
from support.positions import committed_offset, why_produce_fails
from support.source_data import commit, flush, producer_of
from support.twinlog_process import TwinlogProcess

pytestmark = [pytest.mark.kafka, pytest.mark.cluster, pytest.mark.slow]

BATCHES: int = 8
RECORDS: int = 5


def command(mirror: Mirror, *arguments: str) -> CommandRun:
    """Run the mirrors command for that mirror, however it ends."""
    at = ("--bootstrap-server", mirror.twinlog.bootstrap, "--mirror", mirror.name)
    return twinlog_command("mirrors", *at, *arguments)


def verified(mirror: Mirror, *arguments: str) -> tuple[int, dict[tuple[str, int], dict[str, Any]]]:
    """Verify; give the exit code and what was found of each partition."""
    ran = command(mirror, "--verify", "--json", *arguments)
    assert ran.stdout, ran.stderr
    told = json.loads(ran.stdout)
    return ran.exit_code, {(row["topic"], row["partition"]): row for row in told["partitions"]}


def planned(mirror: Mirror, topics: str, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Plan a stop; give the exit code and what was told."""
    ran = command(mirror, "--stop", "--plan", "--topics", topics, "--json", *arguments)
    assert ran.stdout, ran.stderr
    told: dict[str, Any] = json.loads(ran.stdout)
    return ran.exit_code, told


def produce(node: KafkaNode, topic: str, *, batch_count: int = BATCHES) -> None:
    """Write so many batches of RECORDS records each."""
    producer = producer_of(node, compression_type="lz4")
    for burst in range(batch_count):
        for number in range(RECORDS):
            producer.produce(topic, f"record {burst} {number}".encode(), partition=0)
        flush(producer)


@dataclass(frozen=True, slots=True)
class Whole:
    """A twinlog that mirrors every kind of data of a source."""

    source: Source
    twinlog: TwinlogProcess
    mirror: Mirror


@pytest.fixture(scope="module")
def whole(source: Source, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    """Mirror it, waiting as an operator does."""
    twinlog = TwinlogProcess(tmp_path_factory.mktemp("whole"))
    try:
        twinlog.start()
        mirror = Mirror(twinlog, source.node, "whole")
        mirror.create()
        ran = command(
            mirror, "--start", "--topics", ",".join(source.data.topics), "--wait",
            "--timeout-ms", "60000",
        )  # fmt: skip
        assert ran.exit_code == 0, ran.stderr
        count = len(source.data.partitions)
        assert f"Mirror whole: {count} partition(s) in state MIRRORING and lag 0" in ran.stdout
        yield Whole(source, twinlog, mirror)
    finally:
        twinlog.stop()


def test_every_kind_of_data_is_equal_up_to_the_source_s_end(whole: Whole) -> None:
    code, found = verified(whole.mirror)
    assert code == 0, found
    assert set(found) == set(whole.source.data.partitions)
    for of, row in found.items():
        start, end = whole.source.node.offsets(*of)
        assert (row["result"], row["from"], row["equalUpTo"]) == ("EQUAL", start, end), of
    compared = whole.mirror.assert_equal(whole.source.data.partitions)
    assert sum(row["batches"] for row in found.values()) == sum(c.equal_batches for c in compared)


def test_a_plan_names_the_transaction_that_the_stop_would_abort(whole: Whole) -> None:
    code, told = planned(whole.mirror, "transactional")
    assert code == 1
    (topic,) = told["topics"]
    assert topic["recordsLost"] == 0
    opened = {row["partition"]: row["openTransactions"] for row in topic["partitions"]}
    (transaction,) = opened[0]
    assert transaction["producerId"] >= 0
    assert not any(found for partition, found in opened.items() if partition)
    first = next(
        batch
        for batch in batches_of(whole.twinlog.partition_folder("transactional", 0))
        if b"undecided 0" in batch.content
    )
    assert transaction["firstOffset"] == first.base_offset


def test_one_flipped_byte_on_disk_is_found_at_its_offset(whole: Whole) -> None:
    of = ("plain-zstd", 1)
    folder = whole.twinlog.partition_folder(*of)
    victim = list(batches_of(folder))[-1]
    file = _file_with(folder, victim.content)
    before = file.read_bytes()
    spoilt = bytearray(before)
    spoilt[before.index(victim.content) + len(victim.content) - 1] ^= 0x40
    try:
        file.write_bytes(spoilt)
        code, found = verified(whole.mirror)
        assert code == 1
        assert {at for at, row in found.items() if row["result"] != "EQUAL"} == {of}
        (difference,) = found[of]["differences"]
        assert difference["offset"] == found[of]["equalUpTo"] == victim.base_offset
        assert difference["what"] == ["corrupt at the destination"]
        ran = command(whole.mirror, "--verify", "--topics", of[0])
        assert f"plain-zstd-1 at offset {victim.base_offset}: corrupt at the dest" in ran.stdout
    finally:
        file.write_bytes(before)
    assert verified(whole.mirror)[0] == 0


def _file_with(folder: Path, content: bytes) -> Path:
    return next(file for file in folder.glob("*.log") if content in file.read_bytes())


def test_logs_are_compared_while_producers_go_on(
    kafka_4: KafkaNode, twinlog: TwinlogProcess, fresh: str
) -> None:
    kafka_4.create_topic(fresh, partitions=2)
    mirror = Mirror(twinlog, kafka_4, "busy")
    mirror.create()
    with producing(kafka_4, [fresh]):
        mirror.start([fresh])
        mirror.await_more([(fresh, 0), (fresh, 1)])
        ends = []
        for _ in range(3):
            code, found = verified(mirror)
            assert code == 0, found
            ends.append(sum(row["equalUpTo"] for row in found.values()))
            mirror.await_more([(fresh, 0)])
    assert ends == sorted(ends)
    assert ends[0] < ends[-1]


def test_a_plan_counts_what_is_not_here_yet_and_whom_it_would_set_back(
    kafka_4: KafkaNode, twinlog: TwinlogProcess, fresh: str, tmp_path: Path
) -> None:
    group = f"{fresh}-readers"
    kafka_4.create_topic(fresh, config={"retention.ms": "86400000"})
    produce(kafka_4, fresh)
    mirror = Mirror(twinlog, kafka_4, "planned")
    # Groups of other tests' topics are not this mirror's, but excluded ones would not be, either.
    mirror.create(groups_include=f"{fresh}.*")
    mirror.start([fresh])
    assert command(mirror, "--wait").exit_code == 0
    code, told = planned(mirror, fresh)
    assert code == 0, told
    assert command(mirror, "--pause", "--topics", fresh, "--wait").exit_code == 0
    produce(kafka_4, fresh, batch_count=2)
    end = BATCHES * RECORDS
    commit(kafka_4, group, {(fresh, 0): end + 3})
    code, told = planned(mirror, fresh)
    assert code == 1
    assert told["topics"][0]["recordsLost"] == 2 * RECORDS
    (change,) = told["groups"]
    assert (change["group"], change["sourceOffset"], change["clampedTo"]) == (group, end + 3, end)
    assert told["configs"] == []
    assert mirror.states() == {(fresh, 0): "PAUSED"}
    away = tmp_path / "away.properties"
    away.write_text("bootstrap.servers=127.0.0.1:1\n")
    code, told = planned(mirror, fresh, "--source-command-config", str(away))
    assert code == 1
    assert "last known figures" in told["troubles"][0]
    refused = command(
        mirror, "--stop", "--promote", "--topics", fresh, "--source-command-config", str(away)
    )
    assert refused.exit_code == 1
    assert "stop without --promote" in refused.stderr
    assert mirror.states() == {(fresh, 0): "PAUSED"}


def test_a_promotion_waits_for_all_records_and_groups_and_loses_nothing(
    kafka_4: KafkaNode, twinlog: TwinlogProcess, fresh: str
) -> None:
    group = f"{fresh}-readers"
    kafka_4.create_topic(fresh)
    produce(kafka_4, fresh)
    mirror = Mirror(twinlog, kafka_4, "promoted")
    mirror.create(groups_include=f"{fresh}.*")
    mirror.start([fresh])
    commit(kafka_4, group, {(fresh, 0): 7})
    produce(kafka_4, fresh)
    ran = command(mirror, "--stop", "--promote", "--topics", fresh, "--timeout-ms", "60000")
    assert ran.exit_code == 0, ran.stderr
    assert ran.stdout.endswith("Promoted 1 topic(s) of mirror promoted: lag 0, groups in step\n")
    assert mirror.states() == {(fresh, 0): "STOPPED"}
    assert committed_offset(twinlog, group, fresh) == 7
    assert why_produce_fails(twinlog, fresh) is None
    # What is written here now is not the mirror's, and does not make it different.
    code, found = verified(mirror)
    assert code == 0, found
    assert found[fresh, 0]["equalUpTo"] == 2 * BATCHES * RECORDS
