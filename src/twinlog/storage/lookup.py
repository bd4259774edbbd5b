"""Finding a record by its time: the time index leads to a batch, and only that one is decoded."""

from collections.abc import Sequence
from typing import NamedTuple

from twinlog.storage.disk import Disk
from twinlog.storage.scan import read_batch, scan_headers
from twinlog.storage.segment import Segment
from twinlog.wire.records.batch import BatchHeader
from twinlog.wire.records.records import records_of


class RecordPlace(NamedTuple):
    """A record, as ListOffsets tells of it."""

    offset: int
    timestamp: int
    leader_epoch: int


def find_by_time(
    disk: Disk, segments: Sequence[Segment], timestamp: int, *, start: int
) -> RecordPlace | None:
    """Find the first record from ``start`` on that is at least that late; None when none is."""
    for segment in segments:
        if segment.max_timestamp < timestamp:
            continue
        nearest = segment.times.find(timestamp)
        position = 0
        if nearest is not None:
            entry = segment.offsets.find(nearest[1])
            position = entry[1] if entry else 0
        for at, header in scan_headers(disk, segment.file, position, segment.size):
            if header.max_timestamp < timestamp or header.last_offset < start:
                continue
            place = _first_in(disk, segment, at, header, timestamp, start)
            if place is not None:
                return place
    return None


def find_latest_time(disk: Disk, segments: Sequence[Segment], *, start: int) -> RecordPlace | None:
    """Find the first record that has the highest timestamp of all; None when none has one."""
    latest = max(segments, key=lambda segment: (segment.max_timestamp, -segment.base))
    if latest.max_timestamp < 0:
        return None
    found = latest.locate(latest.max_timestamp_offset)
    if found is not None and found[1].last_offset >= start:
        place = _first_in(disk, latest, *found, latest.max_timestamp, start)
        if place is not None:
            return place
    return find_by_time(disk, segments, latest.max_timestamp, start=start)


def _first_in(
    disk: Disk, segment: Segment, position: int, header: BatchHeader, timestamp: int, start: int
) -> RecordPlace | None:
    """Find the first fitting record of one batch."""
    if header.is_log_append_time:
        offset = max(start, header.base_offset)
        return RecordPlace(offset, header.max_timestamp, header.leader_epoch)
    batch = read_batch(disk, segment.file, position, header)
    for record in records_of(batch, 0, header):
        if record.timestamp >= timestamp and record.offset >= start:
            return RecordPlace(record.offset, record.timestamp, header.leader_epoch)
    return None
