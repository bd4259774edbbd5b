"""The operator's book is true: its commands are run as they stand, and show what it shows."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from support.cluster_admin import Broker, create_topic
from support.kafka_install import KAFKA_2_1, KAFKA_4, require
from support.kafka_node import KafkaNode
from support.operator_page import (
    ROOT,
    Reader,
    errors_of_the_table,
    headings_with_commands,
    is_told_by_the_product,
)
from support.server_process import free_port
from support.source_data import commit, flush, producer_of
from support.twinlog_process import TwinlogProcess

PAGE: Final = ROOT / "docs" / "mirroring.md"
REFERENCE: Final = ROOT / "docs" / "mirroring-reference.md"
TOPICS: Final = ("orders", "payments-in", "payments-out")
RECORDS: Final = 50

SET_UP: Final = "1. Set up a mirror"
WATCH: Final = "2. Watch"
ALIVE: Final = "The source is alive"
LOST: Final = "The source is lost"
CLIENTS: Final = "Send the clients here"
BACK_TO_TWINLOG: Final = "The old source is a twinlog"
BACK_TO_KAFKA: Final = "The old source is an Apache Kafka"
MIGRATE: Final = "5. Migrate from an old ZooKeeper cluster"
DRILL_APART: Final = "With a destination of its own"
DRILL_ONE_TOPIC: Final = "With one topic of the real destination"
WRONG: Final = "7. When something is wrong"
STOPS: Final = ("Promote: a stop that loses nothing", "Stop when the source is lost")
RUN: Final = {
    SET_UP, WATCH, ALIVE, LOST, CLIENTS, BACK_TO_TWINLOG, BACK_TO_KAFKA, MIGRATE, DRILL_APART,
    DRILL_ONE_TOPIC, WRONG,
}  # fmt: skip


@pytest.fixture
def closing() -> Iterator[ExitStack]:
    """Stop in the end whatever a test has started, the last first."""
    with ExitStack() as stack:
        yield stack


def _twinlog(folder: Path, closing: ExitStack) -> TwinlogProcess:
    process = TwinlogProcess(folder)
    closing.callback(process.stop)
    process.start()
    return process


def _reader(folder: Path, closing: ExitStack, *, page: Path = PAGE, **brokers: Broker) -> Reader:
    hosts = {f"{name}:9092": broker.bootstrap for name, broker in brokers.items()}
    hosts["rehearsal:9092"] = f"127.0.0.1:{free_port()}"
    reader = Reader(page, folder, hosts)
    closing.callback(reader.close)
    return reader


def _fill(source: Broker) -> None:
    """Make the topics and the group that the page speaks of."""
    for topic in TOPICS:
        create_topic(source, topic, partitions=2, config={"retention.ms": "86400000"})
    producer = producer_of(source, compression_type="lz4")
    for topic in TOPICS:
        for number in range(RECORDS * 2):
            producer.produce(topic, f"record {number}".encode(), partition=number % 2)
    flush(producer)
    commit(source, "billing", {("orders", 0): 10, ("orders", 1): 20})


def _produce_unseen(source: Broker) -> None:
    """Write what is never mirrored."""
    producer = producer_of(source)
    producer.produce("orders", b"written and never mirrored", partition=0)
    flush(producer)


def test_every_chapter_with_commands_is_run_by_a_test_below() -> None:
    assert headings_with_commands(PAGE) == RUN


@pytest.mark.parametrize("words", errors_of_the_table(PAGE))
def test_an_error_that_the_page_explains_is_one_that_the_product_tells(words: str) -> None:
    assert is_told_by_the_product(words)


@pytest.mark.kafka
@pytest.mark.cluster
@pytest.mark.slow
def test_a_mirror_of_kafka_is_set_up_watched_rehearsed_and_failed_over(
    tmp_path: Path, closing: ExitStack
) -> None:
    require(KAFKA_4)
    source = KafkaNode(tmp_path / "kafka")
    closing.callback(source.stop)
    source.start()
    _fill(source)
    destination = _twinlog(tmp_path / "destination", closing)
    reader = _reader(tmp_path / "reader", closing, source=source, destination=destination)
    reader.read(SET_UP)
    reader.await_group("destination:9092", "billing")
    reader.read(WATCH, DRILL_APART, DRILL_ONE_TOPIC, WRONG, ALIVE)
    _produce_unseen(source)
    source.kill()
    reader.read(LOST, CLIENTS)
    source.start()
    reader.read(BACK_TO_KAFKA)


@pytest.mark.cluster
@pytest.mark.slow
def test_between_two_twinlogs_it_goes_over_and_comes_back(
    tmp_path: Path, closing: ExitStack
) -> None:
    source = _twinlog(tmp_path / "source", closing)
    _fill(source)
    destination = _twinlog(tmp_path / "destination", closing)
    reader = _reader(tmp_path / "reader", closing, source=source, destination=destination)
    # The page says data: the log.dirs of config/server.properties.
    (reader.folder / "data").symlink_to(source.log_folder)
    reader.read(SET_UP)
    reader.await_group("destination:9092", "billing")
    destination.kill()
    _produce_unseen(source)
    source.kill()
    destination.start()
    reader.read(LOST, CLIENTS)
    source.start()
    reader.read(BACK_TO_TWINLOG)


@pytest.mark.kafka
@pytest.mark.cluster
@pytest.mark.slow
def test_an_old_cluster_with_a_zookeeper_is_left(tmp_path: Path, closing: ExitStack) -> None:
    require(KAFKA_2_1)
    # One of its own: all of its topics are to be moved.
    old = KafkaNode(tmp_path / "kafka", version=KAFKA_2_1)
    closing.callback(old.stop)
    old.start()
    _fill(old)
    destination = _twinlog(tmp_path / "destination", closing)
    reader = _reader(tmp_path / "reader", closing, old=old, destination=destination)
    reader.read_one(MIGRATE, 0)
    reader.await_group("destination:9092", "billing")
    for number in range(1, 5):
        reader.read_one(MIGRATE, number)


@pytest.mark.cluster
@pytest.mark.slow
def test_the_reference_is_as_true(tmp_path: Path, closing: ExitStack) -> None:
    source = _twinlog(tmp_path / "source", closing)
    _fill(source)
    destination = _twinlog(tmp_path / "destination", closing)
    folders = (tmp_path / "reader", tmp_path / "scholar")
    operator = _reader(folders[0], closing, source=source, destination=destination)
    operator.read(SET_UP)
    operator.await_group("destination:9092", "billing")
    scholar = _reader(folders[1], closing, page=REFERENCE, source=source, destination=destination)
    # What is told of a mirror at work is tried with one: it is stopped last.
    scholar.read_all(last=STOPS)
