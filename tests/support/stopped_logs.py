"""Reads what a stop writes behind the mirrored batches, with no code of twinlog's own."""

from enum import IntEnum
from pathlib import Path

from support.log_bytes import Batch, batches_of

_CONTROL = 0x20
_HEADER_BYTES = 61
# In front of a record's key stand its length, attributes, timestamp and offset deltas and the
# key's length; each is one byte in so small a record.
_BEFORE_KEY_BYTES = 5
_PRODUCER_ID = slice(43, 51)


class Marker(IntEnum):
    """The types of control records that a stop can leave."""

    ABORT = 0
    COMMIT = 1
    PID_RESET = 7


def markers_behind(folder: Path, end: int) -> list[Marker]:
    """Give the types of all batches from that offset on; fail if one holds ordinary records."""
    return [marker_of(batch) for batch in batches_of(folder, start=end)]


def marker_of(batch: Batch) -> Marker:
    """Give the type of a control batch of one record: its key is (version, type), both int16."""
    assert batch.attributes & _CONTROL, f"no control batch: {batch}"
    assert batch.record_count == 1, f"several records: {batch}"
    key = batch.content[_HEADER_BYTES + _BEFORE_KEY_BYTES :][:4]
    assert key[:2] == b"\0\0", f"no control record: {batch.content[_HEADER_BYTES:].hex()}"
    return Marker(int.from_bytes(key[2:], "big"))


def producer_id_of(batch: Batch) -> int:
    """Give the id of a batch's producer; -1 where it has none."""
    return int.from_bytes(batch.content[_PRODUCER_ID], "big", signed=True)
