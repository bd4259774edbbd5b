"""Tests that Kafka's dumper, as we run it, praises Kafka's files and sees every kind of damage."""

import shutil
from pathlib import Path

import pytest

from support.java_tools import (
    check_partition_folders,
    complaints_in,
    console_consume,
    console_produce,
)
from support.jvm import ToolError
from support.kafka_install import KAFKA_4, require
from support.kafka_node import KafkaNode
from support.source_data import fill

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture(scope="module")
def kafka_folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the data folder of a filled Kafka that was shut down in an orderly way."""
    require(KAFKA_4)
    node = KafkaNode(tmp_path_factory.mktemp("judged"))
    try:
        node.start()
        fill(node)
    finally:
        node.stop()
    return node.log_folder


@pytest.fixture
def partition(kafka_folders: Path, tmp_path: Path) -> Path:
    """Give a copy of one partition, to be damaged."""
    return shutil.copytree(kafka_folders / "plain-none-0", tmp_path / "plain-none-0")


def test_the_dumper_has_no_complaint_about_kafka_itself(kafka_folders: Path) -> None:
    partitions = [path for path in kafka_folders.iterdir() if path.name[-2:-1] == "-"]
    # The controller's own log is left out: its time index is no concern of a shutdown.
    partitions.remove(kafka_folders / "__cluster_metadata-0")
    dump = check_partition_folders(partitions)
    assert dump.count("baseOffset:") > 100


def test_a_changed_byte_is_a_complaint(partition: Path) -> None:
    log = min(partition.glob("*.log"))
    content = bytearray(log.read_bytes())
    content[-3] ^= 1
    log.write_bytes(content)
    with pytest.raises(ToolError, match="isvalid: false"):
        check_partition_folders([partition])


def test_a_torn_tail_is_a_complaint(partition: Path) -> None:
    log = min(partition.glob("*.log"))
    log.write_bytes(log.read_bytes()[:-5])
    with pytest.raises(ToolError, match="invalid bytes at the end"):
        check_partition_folders([partition])


@pytest.mark.parametrize(
    ("kind", "entry"),
    [
        (".index", (3).to_bytes(4, "big") + (9).to_bytes(4, "big")),
        (".index", b"1234567"),
        (".timeindex", (5_000_000_000_000).to_bytes(8, "big") + (3).to_bytes(4, "big")),
    ],
)
def test_a_wrong_index_is_a_complaint(partition: Path, kind: str, entry: bytes) -> None:
    min(partition.glob(f"*{kind}")).write_bytes(entry)
    with pytest.raises(ToolError):
        check_partition_folders([partition])


def test_a_complaint_names_its_file() -> None:
    printed = (
        "Dumping /d/t-0/0.index\nMismatches in :/d/t-0/0.index\n  Index offset: 5, log offset: 4"
    )
    assert complaints_in(printed) == [
        "/d/t-0/0.index: Mismatches in :/d/t-0/0.index",
        "/d/t-0/0.index:   Index offset: 5, log offset: 4",
    ]


def test_offsets_may_leave_gaps_but_never_repeat() -> None:
    header = "Dumping /d/t-0/0.log\nNon-consecutive offsets in /d/t-0/0.log\n"
    assert complaints_in(f"{header}  -1 is followed by 300\n  310 is followed by 312") == []
    assert complaints_in(f"{header}  310 is followed by 310") == [
        "/d/t-0/0.log:   310 is followed by 310"
    ]


def test_the_console_tools_carry_lines(any_kafka: KafkaNode) -> None:
    any_kafka.create_topic("console")
    version = any_kafka.version
    console_produce(any_kafka.bootstrap, "console", ["one", "two"], version=version)
    options = ("--from-beginning", "--group", "console-readers")
    lines = console_consume(any_kafka.bootstrap, "console", *options, count=2, version=version)
    assert lines == ["one", "two"]
