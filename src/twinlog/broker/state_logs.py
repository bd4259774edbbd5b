"""A partition of an internal topic, as a coordinator reads and writes it."""

import os
from dataclasses import dataclass

from twinlog.broker.partitions import Partition
from twinlog.model.ids import Offset, TopicPartition
from twinlog.wire.primitives import Buffer


@dataclass(frozen=True, slots=True)
class PartitionStateLog:
    """Reads batches into memory (a coordinator must decode them) and appends new ones.

    Two are equal when they stand for the same partition object: a topic that was deleted and made
    again has other ones.
    """

    _partition: Partition

    @property
    def of(self) -> TopicPartition:
        """Which partition it is."""
        return self._partition.of

    @property
    def start(self) -> Offset:
        """The first offset there is."""
        return self._partition.log.start

    @property
    def end(self) -> Offset:
        """The first offset not yet written."""
        return self._partition.log.end

    @property
    def high_watermark(self) -> Offset:
        """The first offset not yet on every in-sync replica."""
        return self._partition.high_watermark

    def read(self, from_offset: Offset, *, max_bytes: int) -> Buffer:
        """Give the batches from the one that holds ``from_offset``; at least one whole batch."""
        found = self._partition.log.read(
            from_offset, max_bytes=max_bytes, up_to=self.end, at_least_one=True
        )
        if found is None:
            return b""
        region = found.region
        return os.pread(region.file.fileno(), region.length, region.position)

    def append(self, batches: Buffer, *, now_ms: int) -> None:
        """Write batches. Raises ApiError, DiskError."""
        self._partition.append_own(batches, now_ms=now_ms, is_internal=True)
