"""Keys and values of __mirror_state."""

from dataclasses import replace
from uuid import UUID

import pytest

from twinlog.mirroring.records import (
    LAST_MIRROR_EPOCH_TYPE,
    LOSSES_TYPE,
    PARTITION_STATE_TYPE,
    LastMirrorEpoch,
    MirrorPartition,
    PartitionLosses,
    PartitionState,
    RecordLoss,
    home_key,
    last_mirror_epoch_key,
    losses_key,
    read_key,
    read_value,
    state_key,
    topic_id_text,
    value_bytes,
)
from twinlog.model.errors import WireError

OF = MirrorPartition(mirror="a-to-b", topic_id=UUID(int=0x1234), partition=3)


def test_keys_and_values_come_back_as_they_were() -> None:
    state = PartitionState(state=8, leader_epoch=5, state_epoch=2, error="why", retry_attempt=-1)
    last = LastMirrorEpoch(epoch=4, log_end=77)
    assert read_key(state_key(OF)) == (PARTITION_STATE_TYPE, OF)
    assert read_key(last_mirror_epoch_key(OF)) == (LAST_MIRROR_EPOCH_TYPE, OF)
    assert read_value(PARTITION_STATE_TYPE, value_bytes(state)) == state
    assert read_value(LAST_MIRROR_EPOCH_TYPE, value_bytes(last)) == last
    loss = RecordLoss(kind="gap", first=1, end=9, cause="why", at_ms=5)
    losses = PartitionLosses(losses=(loss, replace(loss, saved_to="/file", saved_bytes=3)))
    assert read_key(losses_key(OF)) == (LOSSES_TYPE, OF)
    assert read_value(LOSSES_TYPE, value_bytes(losses)) == losses


def test_the_bytes_of_a_key_are_the_proposals() -> None:
    assert state_key(OF) == (b"\0\1" + b"\0\6a-to-b" + UUID(int=0x1234).bytes + b"\0\0\0\3")


def test_the_time_of_a_failure_is_kept_in_a_tagged_field() -> None:
    plain = value_bytes(PartitionState(state=3))
    failed = value_bytes(PartitionState(state=3, failed_at_ms=99))
    assert failed[: len(plain) - 1] == plain[:-1]
    assert read_value(PARTITION_STATE_TYPE, failed) == PartitionState(state=3, failed_at_ms=99)


def test_unknown_types_and_versions_are_skipped() -> None:
    assert read_key(b"\0\x63whatever") is None
    assert read_value(PARTITION_STATE_TYPE, b"\0\7whatever") is None


@pytest.mark.parametrize("raw", [b"", b"\0", b"\0\1\0"])
def test_what_is_no_key_is_an_error(raw: bytes) -> None:
    with pytest.raises(WireError):
        read_key(raw)


def test_what_is_no_value_is_an_error() -> None:
    with pytest.raises(WireError):
        read_value(PARTITION_STATE_TYPE, b"\0")


def test_a_home_is_named_by_mirror_topic_id_in_base64_and_partition() -> None:
    topic_id = UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")
    assert topic_id_text(topic_id) == "-B1Prn3sEdCnZQCgyR5r9g"
    assert home_key(MirrorPartition(mirror="m", topic_id=topic_id, partition=12)) == (
        "m:-B1Prn3sEdCnZQCgyR5r9g:12"
    )
