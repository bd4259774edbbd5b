"""How far a partition is behind its source: in records, bytes and seconds."""

from dataclasses import dataclass

from twinlog.model.ids import NO_OFFSET, Offset

DARK_AFTER_MS = 5_000
"""A source silent for so long is taken for dark: it may have records we do not know of."""


@dataclass(slots=True)
class LagInputs:
    """What the answers so far say; times are monotonic ms, -1 for never.

    ``source_offset`` is the source's high watermark, ``destination_offset`` our log end.
    """

    source_offset: Offset = NO_OFFSET
    destination_offset: Offset = NO_OFFSET
    answered_at_ms: int = -1
    level_at_ms: int = -1
    """When we last had everything the source had."""
    bytes_mirrored: int = 0
    records_mirrored: int = 0
    is_of_before: bool = False
    """Whether the source was not asked since a pause, a stop or a failure."""

    def answered(self, source_offset: Offset, destination_offset: Offset, now_ms: int) -> None:
        """Note an answer of the source."""
        if self.level_at_ms < 0 or destination_offset >= source_offset:
            self.level_at_ms = now_ms
        self.source_offset = source_offset
        self.destination_offset = destination_offset
        self.answered_at_ms = now_ms
        self.is_of_before = False

    def doubt_source(self) -> None:
        """Note that the source's offset is of before: it was not asked for a while."""
        self.is_of_before = True

    def unchanged(self, at_ms: int) -> None:
        """Note that the source had nothing new then: it leaves that out of its answers."""
        if at_ms > self.answered_at_ms >= 0 and not self.is_of_before:
            self.answered(self.source_offset, self.destination_offset, at_ms)

    def appended(self, record_count: int, byte_count: int) -> None:
        """Note what was written, to know how large a record is here."""
        self.records_mirrored += record_count
        self.bytes_mirrored += byte_count

    @property
    def records(self) -> int:
        """Offsets still to come, as far as the source has told; never negative, -1 if unknown."""
        if self.source_offset == NO_OFFSET:
            return -1
        return max(0, self.source_offset - self.destination_offset)

    @property
    def bytes(self) -> int:
        """Bytes still to come, judged by the size of what came so far; -1 if unknown."""
        if self.records <= 0 or not self.records_mirrored:
            return min(self.records, 0) if self.records <= 0 else -1
        return self.records * self.bytes_mirrored // self.records_mirrored

    def seconds(self, now_ms: int) -> float:
        """Give how long ago we were last level with the source; -1 if never asked.

        It keeps growing while the source is dark, since what it has meanwhile is not known.
        """
        if self.level_at_ms < 0:
            return -1.0
        is_dark = now_ms - self.answered_at_ms >= DARK_AFTER_MS
        if self.records == 0 and not is_dark:
            return 0.0
        return (now_ms - self.level_at_ms) / 1000
