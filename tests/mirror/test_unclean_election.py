"""An unclean election takes from the source what the mirror has already: followed, or refused."""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer

from support.kafka_cluster import KafkaCluster
from support.log_bytes import Batch, batches_of
from support.mirror import Mirror, Partition, twinlog_command
from support.positions import committed_offset, visible_records
from support.source_data import await_markers, commit, flush, producer_of
from support.twinlog_process import TwinlogProcess
from support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.cluster, pytest.mark.slow]

LOSING = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
SETTING = "mirror.support.unclean.leader.election"
KEPT = 4


def _produce(broker: Any, of: Partition, word: str, count: int, *, codec: str = "lz4") -> None:
    """Write ``count`` batches of three records each."""
    producer = producer_of(broker, compression_type=codec)
    for number in range(count):
        for step in range(3):
            producer.produce(of[0], f"{word} {number} {step}".encode() * 9, partition=of[1])
        flush(producer)


def _allow(twinlog: TwinlogProcess, topic: str) -> None:
    where = ("configs", "--bootstrap-server", twinlog.bootstrap, "--alter", "--topic", topic)
    done = twinlog_command(*where, "--add-config", f"{SETTING}=true")
    assert done.exit_code == 0, done.stderr


def _mirrored(trio: KafkaCluster, twinlog: TwinlogProcess, topic: str) -> Mirror:
    """Mirror two partitions with a few batches in each."""
    trio.create_topic(topic, partitions=2, config=LOSING)
    mirror = Mirror(twinlog, trio, "trio")
    mirror.create(groups_sync_interval_ms="200")
    mirror.start([topic])
    for partition in range(2):
        _produce(trio, (topic, partition), "kept", KEPT)
    mirror.await_caught_up([(topic, 0), (topic, 1)])
    return mirror


def _lose(
    mirror: Mirror, trio: KafkaCluster, of: Partition, **how: bool
) -> tuple[int, list[Batch]]:
    """Let the source lose batches that are mirrored; give who led, and the batches."""
    start = trio.offsets(*of)[1]

    def write() -> None:
        _produce(trio, of, "lost", 3, codec="zstd")
        mirror.await_caught_up([of])

    leader = trio.lose_what_comes_now(of, write, **how)
    lost = list(batches_of(trio.brokers[leader].partition_folder(*of), start=start))
    assert len(lost) == 3
    return leader, lost


def _row_of(mirror: Mirror, of: Partition) -> dict[str, Any]:
    (row,) = (each for each in mirror.describe() if (each["topic"], each["partition"]) == of)
    return row


def _assert_told_and_saved(mirror: Mirror, of: Partition, lost: list[Batch]) -> None:
    (loss,) = _row_of(mirror, of)["losses"]
    told = (loss["kind"], loss["firstOffset"], loss["endOffset"])
    assert told == ("truncation", lost[0].base_offset, lost[-1].last_offset + 1)
    assert Path(loss["savedTo"]).read_bytes() == b"".join(batch.content for batch in lost)


@pytest.mark.parametrize("written", [0, 2, 7], ids=["shorter", "short", "longer"])
def test_where_it_is_supported_the_source_is_followed_and_what_it_lost_is_kept(
    trio: KafkaCluster, twinlog: TwinlogProcess, fresh: str, written: int
) -> None:
    of, other = (fresh, 0), (fresh, 1)
    mirror = _mirrored(trio, twinlog, fresh)
    _allow(twinlog, fresh)
    leader, lost = _lose(mirror, trio, of, is_frozen=written != 2)
    _produce(trio, of, "instead", written, codec="snappy")
    mirror.await_caught_up([of, other])
    mirror.await_states([of, other], "MIRRORING")
    mirror.assert_equal([of, other])
    assert twinlog.server.has_said("ULE_RECOVERY")
    _assert_told_and_saved(mirror, of, lost)
    assert not _row_of(mirror, other)["losses"]
    # The old leader comes back, drops what only it has, and leads again.
    trio.revive()
    trio.await_whole([fresh])
    _produce(trio, of, "afterwards", 2)
    trio.move({of: [leader, *(each for each in trio.brokers if each != leader)]})
    trio.elect([of])
    wait_until(lambda: trio.leader_of(of) == leader, f"{leader} leads {of} again")
    _produce(trio, of, "under the old leader", 2)
    mirror.await_caught_up([of])
    mirror.assert_equal([of, other])
    _assert_told_and_saved(mirror, of, lost)


def test_where_it_is_not_nothing_is_cut_until_the_operator_decides(
    trio: KafkaCluster, twinlog: TwinlogProcess, fresh: str
) -> None:
    of, other = (fresh, 0), (fresh, 1)
    mirror = _mirrored(trio, twinlog, fresh)
    _, lost = _lose(mirror, trio, of)
    before = [batch.content for batch in batches_of(twinlog.partition_folder(*of))]
    _produce(trio, of, "instead", 5)
    words = (SETTING, "unclean", "nothing was cut", "--recover")
    mirror.await_row(of, "FAILED", *words, losses=[])
    _produce(trio, other, "goes on", 2)
    trio.revive()
    trio.await_whole([fresh])
    mirror.await_caught_up([other])
    twinlog.kill()
    twinlog.start()
    mirror.await_states([of], "FAILED")
    mirror.await_states([other], "MIRRORING")
    assert [batch.content for batch in batches_of(twinlog.partition_folder(*of))] == before
    # As the message says.
    _allow(twinlog, fresh)
    mirror.run("--recover", "--mirror", mirror.name, "--topics", fresh)
    mirror.await_states([of], "MIRRORING")
    mirror.await_caught_up([of, other])
    mirror.assert_equal([of, other])
    _assert_told_and_saved(mirror, of, lost)


def test_where_it_is_not_the_failed_partition_can_be_stopped_with_all_it_had(
    trio: KafkaCluster, twinlog: TwinlogProcess, fresh: str
) -> None:
    of = (fresh, 0)
    mirror = _mirrored(trio, twinlog, fresh)
    _lose(mirror, trio, of)
    before = [batch.content for batch in batches_of(twinlog.partition_folder(*of))]
    _produce(trio, of, "instead", 1)
    mirror.await_states([of], "FAILED")
    mirror.stop([fresh])
    mirror.await_states([of, (fresh, 1)], "STOPPED")
    _produce(twinlog, of, "written after the stop", 1)
    after = [batch.content for batch in batches_of(twinlog.partition_folder(*of))]
    assert after[: len(before)] == before
    assert len(after) == len(before) + 2, "the reset of producers, and the new batch"


def test_elections_that_came_while_twinlog_was_down_are_followed_all_at_once(
    trio: KafkaCluster, twinlog: TwinlogProcess, fresh: str
) -> None:
    of = (fresh, 0)
    mirror = _mirrored(trio, twinlog, fresh)
    _allow(twinlog, fresh)
    leader, lost = _lose(mirror, trio, of)
    twinlog.kill()
    _produce(trio, of, "never mirrored", 2)
    trio.revive()
    trio.await_whole([fresh])
    second = trio.lose_what_comes_now(of, lambda: _produce(trio, of, "lost unseen", 3))
    assert second != leader
    _produce(trio, of, "instead", 4)
    twinlog.start()
    mirror.await_caught_up([of])
    mirror.assert_equal([of])
    mirror.await_states([of, (fresh, 1)], "MIRRORING")
    _assert_told_and_saved(mirror, of, lost)


def test_a_group_that_read_what_the_source_lost_is_not_beyond_the_end_here(
    trio: KafkaCluster, twinlog: TwinlogProcess, fresh: str
) -> None:
    of, group = (fresh, 0), f"readers-of-{fresh}"
    mirror = _mirrored(trio, twinlog, fresh)
    _allow(twinlog, fresh)
    kept = trio.offsets(*of)[1]

    def await_here(offset: int) -> None:
        def here() -> int | None:
            return committed_offset(twinlog, group, *of)

        wait_until(lambda: here() == offset, lambda: f"at {offset} here, not {here()}")

    def write() -> None:
        _produce(trio, of, "lost", 3)
        wait_until(lambda: _is_committed(trio, group, of, kept + 9), "committed")
        mirror.await_caught_up([of])
        await_here(kept + 9)

    leader = trio.lose_what_comes_now(of, write)
    mirror.await_caught_up([of])
    trio.start_brokers([leader])
    await_here(kept)
    _produce(trio, of, "instead", 1)
    mirror.await_caught_up([of])
    await_here(kept + 3)


def _is_committed(trio: KafkaCluster, group: str, of: Partition, offset: int) -> bool:
    """Commit, unless the group's coordinator has yet to move."""
    try:
        commit(trio, group, {of: offset})
    except (KafkaException, AssertionError):
        return False
    return True


def test_a_transaction_whose_end_the_source_lost_is_as_undecided_here_as_there(
    trio: KafkaCluster, twinlog: TwinlogProcess, fresh: str
) -> None:
    of = (fresh, 0)
    mirror = _mirrored(trio, twinlog, fresh)
    _allow(twinlog, fresh)
    to_commit, to_abort, within = (_transactional(trio, f"{fresh}-{word}") for word in "abc")
    for number, producer in enumerate((to_commit, to_abort)):
        _begin(producer, of)
        _produce(trio, of, f"behind the beginning of {number}", 1)
    _produce(trio, of, "kept", 1)
    mirror.await_caught_up([of])

    def write() -> None:
        _begin(within, of)
        to_commit.commit_transaction(120)
        to_abort.abort_transaction(120)
        within.commit_transaction(120)
        # All markers are written, and that they are: else the source would write them again.
        await_markers(trio, *(f"{fresh}-{word}" for word in "abc"))
        _produce(trio, of, "lost", 1)
        mirror.await_caught_up([of])
        assert len(visible_records(twinlog, *of)) > 3 * KEPT + 3 * 3

    leader = trio.lose_what_comes_now(of, write)
    _produce(trio, of, "instead", 2)
    mirror.await_caught_up([of])
    mirror.assert_equal([of])
    visible = visible_records(twinlog, *of)
    assert visible == visible_records(trio, *of)
    assert len(visible) == 3 * KEPT, "the first transaction is open again, and will stay so"
    trio.start_brokers([leader])
    trio.await_whole([fresh])
    mirror.await_caught_up([of])
    assert visible_records(twinlog, *of) == visible_records(trio, *of)
    # A stop decides what the source never will.
    mirror.stop([fresh])
    mirror.await_states([of], "STOPPED")
    readable = visible_records(twinlog, *of)
    assert readable[: len(visible)] == visible
    assert len(readable) == 3 * KEPT + 3 * 3 + 3 * 2
    assert not [value for _, value in readable if value and value.startswith(b"undecided")]


def _transactional(trio: KafkaCluster, name: str) -> Producer:
    producer = producer_of(
        trio, transactional_id=name, socket_timeout_ms=4_000, transaction_timeout_ms=600_000
    )
    producer.init_transactions(120)
    return producer


def _begin(producer: Producer, of: Partition) -> None:
    producer.begin_transaction()
    producer.produce(of[0], b"undecided", partition=of[1])
    flush(producer)
