"""The one record of a control batch is read, or found missing."""

import pytest

from support.batches import batch, marker, pid_reset
from twinlog.model.errors import CorruptBatchError
from twinlog.storage.markers import Marker, marker_of
from twinlog.wire.records.batch import read_header
from twinlog.wire.records.control import ControlType


def read(content: bytes) -> Marker | None:
    return marker_of(b"--" + content, 2, read_header(content, 0))


def test_markers_say_what_they_end_and_from_which_coordinator() -> None:
    found = read(marker(0, coordinator_epoch=9, timestamp=77))
    assert found == Marker(ControlType.ABORT, 9, 77)
    assert found.ends_transaction
    committed = read(marker(1))
    assert committed is not None
    assert committed.type == ControlType.COMMIT


def test_other_control_batches_end_no_transaction() -> None:
    reset = read(pid_reset())
    assert reset == Marker(ControlType.MIRROR_PID_RESET)
    assert not reset.ends_transaction
    assert read(batch([(b"\0\0\0\x63", b"")], is_control=True)) == Marker(None)


def test_a_batch_emptied_by_compaction_says_nothing() -> None:
    assert read(batch([], is_control=True, last_offset_delta=0)) is None


@pytest.mark.parametrize("pair", [(None, None), (b"\0", b""), (b"\0\0\0\0", b"\0")])
def test_a_control_batch_without_a_marker_is_corrupt(pair: tuple[bytes, bytes]) -> None:
    with pytest.raises(CorruptBatchError, match="offset 5"):
        read(batch([pair], is_control=True, base_offset=5))
