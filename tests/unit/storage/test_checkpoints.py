"""Checkpoints of offsets in Kafka's format."""

from pathlib import Path

import pytest

from twinlog.model.ids import Offset, TopicName, TopicPartition
from twinlog.storage.checkpoints import (
    decode_offsets,
    encode_offsets,
    read_checkpoint,
    write_checkpoint,
)
from twinlog.storage.disk import Disk

OFFSETS = {
    TopicPartition(TopicName("a.b"), 0): Offset(5),
    TopicPartition(TopicName("c"), 12): Offset(1 << 40),
}


def test_the_format_is_kafkas() -> None:
    content = encode_offsets(OFFSETS)
    assert content == b"0\n2\na.b 0 5\nc 12 1099511627776\n"
    assert decode_offsets(content) == OFFSETS


@pytest.mark.parametrize("content", [b"", b"0\n1\n", b"9\n0\n", b"0\n1\na 0\n", b"0\n1\na x 1\n"])
def test_a_torn_file_is_not_believed(content: bytes) -> None:
    assert decode_offsets(content) is None


def test_a_file_is_replaced_whole_and_a_missing_one_says_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "checkpoint")
    assert read_checkpoint(Disk(), path) == {}
    write_checkpoint(Disk(), path, OFFSETS)
    assert read_checkpoint(Disk(), path) == OFFSETS
    assert [one.name for one in tmp_path.iterdir()] == ["checkpoint"]
    (tmp_path / "checkpoint").write_bytes(b"0\n7\n")
    assert read_checkpoint(Disk(), path) == {}
