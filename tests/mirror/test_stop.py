"""A stopped mirror: the source's bytes, then markers and a reset, then whoever writes here."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import pytest

from support.java_tools import check_partition_folders
from support.kafka import Source
from support.log_bytes import Batch, batches_of
from support.mirror import Mirror, Partition
from support.positions import (
    leader_epochs,
    visible_records,
    visible_to_aiokafka,
    visible_to_kafka_python,
    why_produce_fails,
)
from support.producer_ids import next_of
from support.source_data import CODECS, flush, producer_of
from support.stopped_logs import Marker, marker_of, producer_id_of
from support.twinlog_process import TwinlogProcess

pytestmark = [pytest.mark.kafka, pytest.mark.cluster, pytest.mark.slow]

TRANSACTIONAL: Final = "transactional"
OPEN_AT: Final = (TRANSACTIONAL, 0)


@dataclass(slots=True)
class Stopped:
    """A twinlog whose mirror of all data was stopped, and what was seen before that."""

    source: Source
    twinlog: TwinlogProcess
    mirror: Mirror
    ends: dict[Partition, int] = field(default_factory=dict)
    refusal_before: str | None = None
    visible_before: list[bytes | None] = field(default_factory=list)
    epochs_before: dict[Partition, int] = field(default_factory=dict)
    epochs_after: dict[Partition, int] = field(default_factory=dict)

    def tail_of(self, of: Partition) -> list[Batch]:
        """What lies behind the mirrored batches of a partition."""
        folder = self.twinlog.partition_folder(*of)
        return list(batches_of(folder, start=self.ends[of]))


@pytest.fixture(scope="module")
def stopped(source: Source, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stopped]:
    """Mirror every kind of data, look, and stop."""
    twinlog = TwinlogProcess(tmp_path_factory.mktemp("stopped"))
    try:
        twinlog.start()
        yield _mirrored_and_stopped(source, twinlog)
    finally:
        twinlog.stop()


def _mirrored_and_stopped(source: Source, twinlog: TwinlogProcess) -> Stopped:
    mirror = Mirror(twinlog, source.node, "to-be-stopped")
    made = Stopped(source, twinlog, mirror)
    mirror.create()
    mirror.start(source.data.topics)
    mirror.await_caught_up(source.data.partitions)
    mirror.await_states(source.data.partitions, "MIRRORING")
    made.ends = {of: source.node.offsets(*of)[1] for of in source.data.partitions}
    made.refusal_before = why_produce_fails(twinlog, "plain-zstd", 1)
    made.visible_before = [value for _, value in visible_records(twinlog, TRANSACTIONAL)]
    made.epochs_before = leader_epochs(twinlog, source.data.topics)
    mirror.stop(source.data.topics)
    mirror.await_states(source.data.partitions, "STOPPED")
    made.epochs_after = leader_epochs(twinlog, source.data.topics)
    return made


def test_the_source_s_bytes_are_still_there_after_the_stop(stopped: Stopped) -> None:
    compared = stopped.mirror.assert_equal(stopped.source.data.partitions)
    assert sum(each.equal_batches for each in compared) > 100


def test_behind_them_stand_a_marker_for_each_open_transaction_and_one_reset(
    stopped: Stopped,
) -> None:
    for of in stopped.source.data.partitions:
        tail = stopped.tail_of(of)
        aborts = [Marker.ABORT] if of == OPEN_AT else []
        assert [marker_of(batch) for batch in tail] == [*aborts, Marker.PID_RESET], f"{of}"
        assert tail[0].base_offset == stopped.ends[of]


def test_the_markers_stand_in_an_epoch_above_every_mirrored_one(stopped: Stopped) -> None:
    for of in stopped.source.data.partitions:
        folder = stopped.twinlog.partition_folder(*of)
        mirrored = [batch.leader_epoch for batch in batches_of(folder, end=stopped.ends[of])]
        tail = {batch.leader_epoch for batch in stopped.tail_of(of)}
        assert min(tail) > max(mirrored, default=-1), f"{of}: {tail} behind {set(mirrored)}"


def test_readers_of_committed_records_see_no_open_and_no_aborted_transaction(
    stopped: Stopped,
) -> None:
    undecided = b"behind the open transaction"
    assert undecided not in stopped.visible_before
    after = visible_records(stopped.twinlog, TRANSACTIONAL)
    values = [value or b"" for _, value in after]
    assert undecided in values
    for seen in (stopped.visible_before, values):
        texts = [(value or b"").decode() for value in seen]
        assert not [text for text in texts if text.startswith("undecided")]
        numbers = {int(text.split()[1]) for text in texts if text.startswith("txn")}
        assert numbers == {number for number in range(12) if number % 3 != 2}
        assert sum(text.startswith("beside") for text in texts) == 6
    for read in (visible_to_kafka_python, visible_to_aiokafka):
        assert read(stopped.twinlog, TRANSACTIONAL, len(after)) == after


def test_a_reader_of_everything_sees_each_record_of_each_transaction(stopped: Stopped) -> None:
    ours = visible_records(stopped.twinlog, TRANSACTIONAL, isolation="read_uncommitted")
    theirs = visible_records(stopped.source.node, TRANSACTIONAL, isolation="read_uncommitted")
    assert ours == theirs
    assert len([value for _, value in ours if (value or b"").startswith(b"undecided")]) == 10


def test_a_producer_is_refused_by_the_mirror_s_name_while_it_mirrors(stopped: Stopped) -> None:
    refusal = stopped.refusal_before or "accepted"
    assert refusal.startswith("PolicyViolationError"), refusal
    assert "to-be-stopped" in refusal


def test_leader_epochs_are_above_all_in_the_log_and_never_go_back(stopped: Stopped) -> None:
    for of, epoch in stopped.epochs_after.items():
        folder = stopped.twinlog.partition_folder(*of)
        in_log = [batch.leader_epoch for batch in batches_of(folder, end=stopped.ends[of])]
        assert epoch > max(in_log, default=-1), of
        assert epoch >= stopped.epochs_before[of], of
    stopped.twinlog.stop()
    stopped.twinlog.start()
    restarted = leader_epochs(stopped.twinlog, stopped.source.data.topics)
    assert all(restarted[of] >= epoch for of, epoch in stopped.epochs_after.items())
    states = stopped.mirror.states()
    assert set(states.values()) == {"STOPPED"}


def test_kafka_s_dumper_finds_no_fault_with_stopped_logs(stopped: Stopped) -> None:
    stopped.twinlog.stop()
    folders = [stopped.twinlog.partition_folder(*of) for of in stopped.source.data.partitions]
    check_partition_folders(folders)
    stopped.twinlog.start()


def test_an_idempotent_producer_with_a_mirrored_producer_s_id_starts_cleanly(
    stopped: Stopped,
) -> None:
    """Both clusters give ids out in order from 0 on, so ours reach the source's one day."""
    mirrored: dict[int, str] = {}
    for codec in CODECS:
        topic = f"plain-{codec}"
        folder = stopped.twinlog.partition_folder(topic, 0)
        for batch in batches_of(folder, end=stopped.ends[topic, 0]):
            mirrored[producer_id_of(batch)] = topic
    mirrored.pop(-1, None)
    assert mirrored, "the source's producers were idempotent"
    topic = mirrored[asyncio.run(next_of(stopped.twinlog, set(mirrored)))]
    producer = producer_of(stopped.twinlog, enable_idempotence="true")
    sent = [f"ours {step}".encode() for step in range(30)]
    for value in sent:
        producer.produce(topic, value, partition=0)
    flush(producer)
    ours = {producer_id_of(batch) for batch in stopped.tail_of((topic, 0))}
    assert ours & set(mirrored), f"the producer got an id of the source's: {ours}, {mirrored}"
    seen = [value for _, value in visible_records(stopped.twinlog, topic)]
    assert seen[-len(sent) :] == sent
