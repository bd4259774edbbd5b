"""Killed while it mirrors, or at any step of a stop, twinlog loses nothing and repeats nothing."""

import os
import random
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from support.cluster_admin import delete_records
from support.dying_process import DyingTwinlog
from support.java_tools import check_partition_folders
from support.kafka_node import KafkaNode
from support.log_bytes import batches_of
from support.mirror import Mirror, Partition, producing, twinlog_argv
from support.positions import leader_epochs, visible_records
from support.source_data import flush, producer_of
from support.stopped_logs import Marker, markers_behind
from support.transacting import transacting
from support.twinlog_process import TwinlogProcess
from support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.cluster, pytest.mark.slow]

# By hand: MIRROR_KILLS=100 pytest tests/mirror/test_kills.py -k random
KILLS: Final = int(os.environ.get("MIRROR_KILLS", "15"))
_SEED: Final = int(os.environ.get("MIRROR_KILLS_SEED", "4711"))

# In the order in which a stop comes by them; see support.dying_broker for what each means.
STEPS: Final = (
    ("stop asked", 1),
    ("effect SaveState STOPPING", 1),
    ("event StateSaved STOPPING", 1),
    ("effect SaveLastMirrorEpoch", 1),
    ("event LastMirrorEpochSaved", 1),
    ("effect AppendAbortMarkers", 1),
    ("append", 1),
    ("append", 2),
    ("event StepDone", 1),
    ("effect AppendPidReset", 1),
    ("append", 3),
    ("event StepDone", 2),
    ("effect SaveState STOPPED", 1),
    ("event StateSaved STOPPED", 1),
)
START_STEPS: Final = (
    "effect SaveState LOG_ALIGNMENT",
    "event StateSaved LOG_ALIGNMENT",
    "effect FindSourceLeader",
    "effect AskSourceRange",
    "effect SaveState MIRRORING",
    "event StateSaved MIRRORING",
    "effect FetchFrom",
    "event Fetched",
    "effect BeginAt",
    "effect Append",
    "effect RaiseLogStart",
)
OPEN_TRANSACTIONS: Final = 2
_TRANSACTION_TIMEOUT_MS: Final = 7_200_000


@pytest.mark.timeout(600 + 30 * KILLS)
def test_killed_at_random_moments_it_goes_on_where_its_log_ends(
    any_kafka: KafkaNode, tmp_path: Path
) -> None:
    chance = random.Random(_SEED)
    topics = ["killed-1", "killed-2"]
    partitions = [(topic, partition) for topic in topics for partition in range(2)]
    for topic in topics:
        any_kafka.create_topic(topic, partitions=2, config={"segment.ms": "1000"})
    twinlog = TwinlogProcess(tmp_path / "twinlog")
    mirror = Mirror(twinlog, any_kafka, "killed")
    grown = 0
    try:
        twinlog.start()
        mirror.create()
        mirror.start(topics)
        with (
            producing(any_kafka, topics),
            transacting(any_kafka, topics[1], partitions=2) as transactions,
        ):
            mirror.await_more(partitions)
            for number in range(KILLS):
                before = _sizes(twinlog, partitions)
                if number % 2:
                    wait_until(lambda: _sizes(twinlog, partitions) > before, "more comes")  # noqa: B023
                time.sleep(chance.uniform(0, 1.2))
                twinlog.kill()
                grown += _sizes(twinlog, partitions) > before
                twinlog.start()
            mirror.await_more(partitions)
            wait_until(lambda: transactions[0] > 10, "transactions come to an end")
        mirror.await_caught_up(partitions)
        mirror.assert_equal(partitions)
        mirror.await_states(partitions, "MIRRORING")
        for of in partitions:
            # Which transactions were aborted is known as well, whatever was recovered.
            assert visible_records(twinlog, *of) == visible_records(any_kafka, *of)
    finally:
        twinlog.stop()
    # A kill before anything arrived proves little: most came while batches were being written.
    assert grown > KILLS / 3, f"{grown} of {KILLS} kills came while the logs grew"
    check_partition_folders([twinlog.partition_folder(*of) for of in partitions])


def _sizes(twinlog: TwinlogProcess, partitions: list[Partition]) -> int:
    folders = [twinlog.partition_folder(*of) for of in partitions]
    return sum(path.stat().st_size for folder in folders for path in folder.glob("*.log"))


@dataclass(slots=True)
class Undecided:
    """A mirror of one topic for each step, each holding two open transactions."""

    source: KafkaNode
    twinlog: DyingTwinlog
    mirror: Mirror

    @staticmethod
    def partition_of(step: int) -> Partition:
        """The partition that is stopped while twinlog dies at that step."""
        return (f"dying-{step}", 0)


@pytest.fixture(scope="module")
def undecided(kafka_4: KafkaNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Undecided]:
    """Mirror a topic for each step, and one for all of them."""
    partitions = [Undecided.partition_of(step) for step in range(len(STEPS) + 1)]
    for topic, _ in partitions:
        kafka_4.create_topic(topic)
    _leave_transactions_open(kafka_4, [topic for topic, _ in partitions])
    twinlog = DyingTwinlog(tmp_path_factory.mktemp("dying"))
    made = Undecided(kafka_4, twinlog, Mirror(twinlog, kafka_4, "dying"))
    try:
        twinlog.start()
        made.mirror.create()
        made.mirror.start([topic for topic, _ in partitions])
        made.mirror.await_caught_up(partitions)
        yield made
    finally:
        twinlog.stop()


def _leave_transactions_open(node: KafkaNode, topics: list[str]) -> None:
    plain = producer_of(node)
    for topic in topics:
        plain.produce(topic, b"before", partition=0)
    flush(plain)
    for number in range(OPEN_TRANSACTIONS):
        producer = producer_of(
            node,
            transactional_id=f"dying-{number}",
            transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS,
        )
        producer.init_transactions(60)
        producer.begin_transaction()
        for topic in topics:
            producer.produce(topic, f"undecided {number}".encode(), partition=0)
        flush(producer)
    for topic in topics:
        plain.produce(topic, b"behind", partition=0)
    flush(plain)


@pytest.mark.parametrize(
    ("step", "moment", "nth"),
    [(step, *moment) for step, moment in enumerate(STEPS)],
    ids=[f"{moment} {nth}" for moment, nth in STEPS],
)
def test_a_stop_killed_at_any_step_ends_stopped_with_nothing_repeated(
    undecided: Undecided, step: int, moment: str, nth: int
) -> None:
    of = undecided.partition_of(step)
    _die_while_stopping(undecided, of, moment, nth)
    undecided.twinlog.start()
    _assert_stopped_once(undecided, of)


def test_a_stop_killed_at_every_step_in_turn_ends_stopped_with_nothing_repeated(
    undecided: Undecided,
) -> None:
    of = undecided.partition_of(len(STEPS))
    twinlog = undecided.twinlog
    _die_while_stopping(undecided, of, *STEPS[0])
    deaths = 1
    for moment, _ in STEPS[1:]:
        # What an earlier life has done does not come again, so each counts from one.
        twinlog.die_at(moment)
        deaths += twinlog.dies_after_start(lambda: twinlog.tells(of, "STOPPED"))
    twinlog.start()
    _assert_stopped_once(undecided, of)
    assert deaths > len(STEPS) / 2, f"only {deaths} of {len(STEPS)} steps were its last"


def test_a_mirror_killed_at_each_step_of_its_start_in_turn_ends_equal(
    kafka_4: KafkaNode, tmp_path: Path, fresh: str
) -> None:
    kafka_4.create_topic(fresh)
    producer = producer_of(kafka_4, compression_type="zstd")
    for number in range(300):
        producer.produce(fresh, f"record {number}".encode() * 9, partition=0)
    flush(producer)
    # Inside a batch, so that the log here has to be begun below its start.
    delete_records(kafka_4, fresh, 0, before=100)
    twinlog = DyingTwinlog(tmp_path / "dying")
    mirror = Mirror(twinlog, kafka_4, "dying-at-start")
    try:
        twinlog.start()
        mirror.create()
        twinlog.die_at(START_STEPS[0])
        _ask_until_death(mirror, "--start", fresh)

        def is_through() -> bool:
            return twinlog.tells((fresh, 0), "MIRRORING", destination_offset=300)

        deaths = 1
        for moment in START_STEPS[1:]:
            twinlog.die_at(moment)
            deaths += twinlog.dies_after_start(is_through)
        twinlog.start()
        mirror.start([fresh])
        mirror.await_caught_up([(fresh, 0)])
        mirror.assert_equal([(fresh, 0)])
        mirror.await_states([(fresh, 0)], "MIRRORING")
    finally:
        twinlog.stop()
    assert deaths > len(START_STEPS) - 3, f"{deaths} of {len(START_STEPS)} steps were its last"
    check_partition_folders([twinlog.partition_folder(fresh, 0)])


def _die_while_stopping(undecided: Undecided, of: Partition, moment: str, nth: int) -> None:
    undecided.twinlog.die_at(moment, count=nth)
    _ask_until_death(undecided.mirror, "--stop", of[0])


def _ask_until_death(mirror: Mirror, verb: str, topic: str) -> None:
    """Give a command that may never be answered, and return when twinlog has died of it."""
    twinlog = mirror.twinlog
    assert isinstance(twinlog, DyingTwinlog)
    where = ("--bootstrap-server", twinlog.bootstrap)
    what = (verb, "--mirror", mirror.name, "--topics", topic)
    asked = subprocess.Popen(
        twinlog_argv("mirrors", *where, *what),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        twinlog.await_death()
    finally:
        asked.kill()
        asked.wait()


def _assert_stopped_once(undecided: Undecided, of: Partition) -> None:
    mirror, twinlog = undecided.mirror, undecided.twinlog
    mirror.await_states([of], "STOPPED")
    mirror.assert_equal([of])
    end = undecided.source.offsets(*of)[1]
    folder = twinlog.partition_folder(*of)
    markers = markers_behind(folder, end)
    assert markers == [*[Marker.ABORT] * OPEN_TRANSACTIONS, Marker.PID_RESET], markers
    epoch_in_log = max(batch.leader_epoch for batch in batches_of(folder))
    assert leader_epochs(twinlog, [of[0]])[of] >= epoch_in_log
    producer = producer_of(twinlog)
    producer.produce(of[0], b"written after the stop", partition=0)
    flush(producer)
    assert mirror.states()[of] == "STOPPED"
