"""Checks a batch that a client or a coordinator wants to add, by Kafka's rules and error codes."""

from dataclasses import dataclass, replace

from twinlog.model.errors import ApiError, CorruptBatchError, ErrorCode, InvalidRecordsError
from twinlog.model.ids import Offset, ProducerId
from twinlog.storage.admit import Admitted
from twinlog.storage.markers import Marker, marker_of
from twinlog.storage.producers import BatchSpan, Producers
from twinlog.storage.settings import LogSettings
from twinlog.wire.primitives import Buffer
from twinlog.wire.records.batch import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    HEADER,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    check_crc,
    read_header,
    stamp,
    stamp_log_append_time,
    unpacked_header,
)
from twinlog.wire.records.build import build_batch
from twinlog.wire.records.compression import Compression, compression_of
from twinlog.wire.records.records import records_of

_MAGIC_POSITION = 16
_COMPRESSIONS = frozenset(int(one) for one in Compression)


@dataclass(slots=True)
class NewBatches:
    """Batches without a place in the log yet, good as far as they themselves can tell."""

    content: bytearray | memoryview
    """The batches, in a buffer that may be stamped."""
    found: list[tuple[int, BatchHeader]]
    """Position and header of each."""
    markers: dict[int, Marker | None]
    """What the control batches among them say, by position."""
    is_internal: bool

    def check_producers(self, producers: Producers) -> BatchSpan | None:
        """Raise ApiError unless the batches may follow what their producers wrote before.

        Gives the batch in the log that the first of these repeats, if it is a repeat.
        """
        for position, header in self.found:
            if header.producer_id < 0:
                continue
            repeat = None if self.is_internal else producers.repeat_of(header)
            if repeat is not None:
                return repeat
            marker = self.markers.get(position)
            producers.check(header, marker, is_sequenced=not self.is_internal)
        return None

    def stamped(self, end: int, *, leader_epoch: int, log_append_time_ms: int) -> Admitted:
        """Give the batches their offsets from ``end`` on, our epoch, and our time unless -1."""
        admitted = Admitted(memoryview(self.content))
        admitted.epoch_starts.append((leader_epoch, end))
        for position, header in self.found:
            stamp(self.content, position, base_offset=end, leader_epoch=leader_epoch)
            if header.is_control:
                admitted.markers[end] = self.markers[position]
            elif log_append_time_ms != NO_TIMESTAMP:
                stamp_log_append_time(self.content, position, timestamp_ms=log_append_time_ms)
            stamped = unpacked_header(HEADER.unpack_from(self.content, position))
            admitted.batches.append((position, stamped))
            end += header.last_offset_delta + 1
        return admitted


def admit_new(
    batches: Buffer, settings: LogSettings, *, now_ms: int, is_internal: bool
) -> NewBatches:
    """Check everything that does not depend on what the log holds already.

    ``is_internal`` is for coordinators: they write control batches, several batches at once, and
    batches without sequences. Raises ApiError.
    """
    view = memoryview(batches)
    found: list[tuple[int, BatchHeader]] = []
    markers: dict[int, Marker | None] = {}
    position, size, is_compacted = 0, len(view), settings.is_compacted
    try:
        while position < size:
            header = _whole_batch(view, position)
            length = header.length
            if length > settings.max_message_bytes:
                raise ApiError(
                    ErrorCode.MESSAGE_TOO_LARGE,
                    f"a batch of {length} bytes; max.message.bytes is {settings.max_message_bytes}",
                )
            check_crc(view, position, header)
            is_control = header.attributes & CONTROL_BIT
            if is_control:
                markers[position] = marker_of(view, position, header)
            _check_header(header, settings, now_ms=now_ms, is_internal=is_internal)
            if is_compacted and not is_control:
                _check_keys(view, position, header)
            found.append((position, header))
            position += length
    except CorruptBatchError as error:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    if len(found) != 1 and not (is_internal and found):
        raise ApiError(ErrorCode.INVALID_RECORD, f"{len(found)} batches; it must be one")
    if size > settings.segment_bytes:
        raise ApiError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"{size} bytes of batches; segment.bytes is {settings.segment_bytes}",
        )
    content, found, markers = _compressed_as_asked(view, found, markers, settings)
    return NewBatches(content, found, markers, is_internal)


def _whole_batch(view: memoryview, position: int) -> BatchHeader:
    """Read a header, and tell old message formats from garbage."""
    if len(view) - position > _MAGIC_POSITION and 0 <= view[position + _MAGIC_POSITION] < MAGIC:
        raise ApiError(
            ErrorCode.INVALID_RECORD,
            f"message format v{view[position + _MAGIC_POSITION]}; only v{MAGIC} is taken",
        )
    return read_header(view, position)


def _check_header(
    header: BatchHeader, settings: LogSettings, *, now_ms: int, is_internal: bool
) -> None:
    """Raise ApiError for a header that a client may not send."""
    why, attributes = None, header.attributes  # its bits are spelt out: this is every produce
    is_control = attributes & CONTROL_BIT
    if is_control and not is_internal:
        why = "clients write no control batches"
    elif header.record_count < 1:
        why = "a batch without records"
    elif header.record_count != header.last_offset_delta + 1:
        why = f"{header.record_count} records with offsets 0 to {header.last_offset_delta}"
    elif header.producer_id >= 0 and header.base_sequence < 0 and not is_internal:
        why = f"producer id {header.producer_id} without a sequence"
    elif attributes & TRANSACTIONAL_BIT and header.producer_id < 0:
        why = "a transactional batch without a producer id"
    if why is not None:
        raise ApiError(ErrorCode.INVALID_RECORD, why)
    if attributes & COMPRESSION_MASK not in _COMPRESSIONS:
        raise ApiError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"compression number {header.compression}"
        )
    if not settings.is_log_append_time and not is_control:
        _check_timestamps(header, settings, now_ms)


def _check_timestamps(header: BatchHeader, settings: LogSettings, now_ms: int) -> None:
    """Raise ApiError when the first or the highest timestamp is too far from ``now_ms``."""
    if header.attributes & LOG_APPEND_TIME_BIT:
        raise ApiError(
            ErrorCode.INVALID_TIMESTAMP,
            "a client cannot claim message.timestamp.type LogAppendTime",
        )
    before_ms = now_ms - header.base_timestamp
    after_ms = header.max_timestamp - now_ms
    if header.base_timestamp != NO_TIMESTAMP and (
        before_ms > settings.message_timestamp_before_max_ms
    ):
        raise ApiError(
            ErrorCode.INVALID_TIMESTAMP,
            f"timestamp {header.base_timestamp} is {before_ms} ms old; "
            f"message.timestamp.before.max.ms is {settings.message_timestamp_before_max_ms}",
        )
    if after_ms > settings.message_timestamp_after_max_ms:
        raise ApiError(
            ErrorCode.INVALID_TIMESTAMP,
            f"timestamp {header.max_timestamp} is {after_ms} ms ahead; "
            f"message.timestamp.after.max.ms is {settings.message_timestamp_after_max_ms}",
        )


def _check_keys(view: memoryview, position: int, header: BatchHeader) -> None:
    """Raise InvalidRecordsError when records of a compacted topic have no key."""
    keyless = tuple(
        record.offset - header.base_offset
        for record in records_of(view, position, header)
        if record.key is None
    )
    if keyless:
        raise InvalidRecordsError(
            f"{len(keyless)} of {header.record_count} records of the batch have no key, which a "
            f"compacted topic needs; the first is record {keyless[0]}",
            keyless,
        )


def _compressed_as_asked(
    view: memoryview,
    found: list[tuple[int, BatchHeader]],
    markers: dict[int, Marker | None],
    settings: LogSettings,
) -> tuple[bytearray | memoryview, list[tuple[int, BatchHeader]], dict[int, Marker | None]]:
    """Leave the batches as they came, or bring them to the topic's own ``compression.type``."""
    if settings.compression_type == "producer":
        return (bytearray(view) if view.readonly else view), found, markers
    name = settings.compression_type
    target = Compression.NONE if name == "uncompressed" else compression_of(name)
    content = bytearray()
    moved, moved_markers = [], {}
    for position, header in found:
        batch = bytes(view[position : position + header.length])
        if header.compression != target and not header.is_control:
            batch = _recompressed(batch, header, target)
        if position in markers:
            moved_markers[len(content)] = markers[position]
        moved.append((len(content), read_header(batch, 0)))
        content += batch
    return content, moved, moved_markers


def _recompressed(batch: bytes, header: BatchHeader, target: Compression) -> bytes:
    try:
        records = [
            replace(record, offset=Offset(record.offset - header.base_offset))
            for record in records_of(batch, 0, header)
        ]
    except CorruptBatchError as error:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    return build_batch(
        records,
        compression=target,
        producer_id=ProducerId(header.producer_id),
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
    )
