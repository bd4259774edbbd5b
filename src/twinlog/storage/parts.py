"""The parts of one log on disk, changed together: segments, epochs, producers, snapshots."""

from bisect import bisect_right
from contextlib import suppress
from typing import Final

from twinlog.model.epochs import EpochStart
from twinlog.model.errors import CorruptBatchError, DiskError
from twinlog.model.ids import Offset
from twinlog.storage.admit import Admitted
from twinlog.storage.epochs import EpochFile
from twinlog.storage.home import LogHome
from twinlog.storage.lost_tail import LogTail, Span
from twinlog.storage.markers import marker_of
from twinlog.storage.producers import Producers
from twinlog.storage.scan import read_batch, scan_headers
from twinlog.storage.segment import SIZE_BYTES_MAX, Segment
from twinlog.storage.settings import LogSettings
from twinlog.storage.snapshots import Snapshots
from twinlog.wire.records.batch import CONTROL_BIT, BatchHeader

RECALLED_SEGMENTS_MAX: Final = 3
RECALLED_ENTRIES_MAX: Final = 500  # of the offset index: about 2 MB of small batches


class LogParts:
    """What a log consists of, always in line with its batches.

    Invariants: there is at least one segment; segments rise by base and none is missing between
    two; only the last is written to; ``end`` is never inside a batch; ``producers.end == end``.
    """

    __slots__ = (
        "cut_bytes",
        "cut_count",
        "end",
        "epochs",
        "files",
        "folder",
        "producers",
        "segments",
        "snapshots",
        "trash",
        "undo_to",
    )

    def __init__(self, home: LogHome, folder: str) -> None:
        files = home.files
        self.files = files
        self.trash = home.trash
        self.folder = folder
        self.segments: list[Segment] = []
        self.epochs = EpochFile(files.disk, folder)
        self.snapshots = Snapshots(files.disk, folder)
        self.producers = Producers()
        self.end = Offset(0)
        self.cut_bytes = 0
        """What opening cut off because a crash had left it torn."""
        self.cut_count = 0
        """How often batches were dropped from the end: others may stand in their place since."""
        self.undo_to: tuple[Offset, list[EpochStart]] | None = None
        """Where the log was before a write that failed and could not be undone yet."""

    def index_of(self, offset: int) -> int:
        """Give the index of the segment that would hold ``offset``."""
        return max(bisect_right(self.segments, offset, key=lambda segment: segment.base) - 1, 0)

    # -- write ---------------------------------------------------------------------------------

    def write(self, admitted: Admitted, settings: LogSettings) -> None:
        """Write checked batches, in a new segment where the last one has no room for them.

        Raises DiskError, with everything as it was; where the disk does not even allow that,
        nothing more is written until it does.
        """
        if self.undo_to is not None:
            self._undo()
        at, batches = 0, admitted.batches
        old_end, old_epochs = self.end, self.epochs.history.entries
        try:
            self.epochs.begin(admitted.epoch_starts)
            while at < len(batches):
                segment = self._segment_for(batches[at][1], settings)
                stop = _stop_in(segment, admitted, at, settings)
                self._write_group(segment, admitted, at, stop, settings.index_interval_bytes)
                at = stop
        except DiskError:
            self.undo_to = old_end, old_epochs
            with suppress(DiskError):  # the first failure is the one to tell
                self._undo()
            raise

    def _undo(self) -> None:
        """Return to where the log was before a write that failed, if there was one."""
        if self.undo_to is None:
            return
        end, epochs = self.undo_to
        if not self.end == self.producers.end == end:
            self.cut(end)  # not needed when a segment has put itself right: it may read it all
        self.undo_to = None
        self.epochs.put_back(epochs)

    def _write_group(
        self, segment: Segment, admitted: Admitted, at: int, stop: int, interval_bytes: int
    ) -> None:
        """Write the batches from index ``at`` to ``stop``, and let all else follow them."""
        batches = admitted.batches
        first, last = batches[at][0], batches[stop - 1]
        content = admitted.content[first : last[0] + last[1].length]
        group = batches
        if (at, stop) != (0, len(batches)):
            group = [(position - first, header) for position, header in batches[at:stop]]
        segment.append(content, group, interval_bytes)
        self.end = Offset(last[1].next_offset)
        producers, markers = self.producers, admitted.markers
        for _, header in group:
            if header.producer_id >= 0 or header.attributes & CONTROL_BIT:
                aborted = producers.apply(header, markers.get(header.base_offset))
                if aborted is not None:
                    segment.add_aborted(aborted)
        producers.end = self.end

    def _segment_for(self, header: BatchHeader, settings: LogSettings) -> Segment:
        """Give the segment that a batch belongs into; roll when the last one has no room."""
        last = self.segments[-1]
        size = last.size
        if not last.can_hold(header.last_offset) or (
            size
            and (
                size + header.length > min(settings.segment_bytes, SIZE_BYTES_MAX)
                or last.is_older_than(settings.segment_ms, header.max_timestamp)
                or last.has_full_index(settings.index_bytes_max)
            )
        ):
            return self.roll(header.base_offset)
        return last

    def roll(self, base: int) -> Segment:
        """Begin a new segment at ``base``, unless the last one begins there; give it."""
        last = self.segments[-1]
        if last.base >= base:
            return last
        last.finish()
        self.snapshots.take(base, self.producers.all())
        segment = Segment(self.files, self.folder, base)
        segment.create()
        self.segments.append(segment)
        return segment

    # -- cut -----------------------------------------------------------------------------------

    def tail_from(self, offset: int) -> LogTail | None:
        """Give all that a cut at ``offset`` would drop; None when that is nothing."""
        spans: list[Span] = []
        first = self.end
        for segment in self.segments[self.index_of(offset) :]:
            found = segment.locate(offset)
            if found is not None:
                first = min(first, Offset(found[1].base_offset))
                spans.append(Span(segment.file, found[0], segment.size - found[0]))
        if not spans:
            return None
        return LogTail(self.files.disk, self.folder, first, self.end, tuple(spans))

    def cut(self, end: int) -> None:
        """Drop what lies at ``end`` and beyond; a batch that reaches beyond it goes whole."""
        self.cut_count += 1
        keep = max(bisect_right(self.segments, end - 1, key=lambda segment: segment.base), 1)
        for segment in reversed(self.segments[keep:]):
            self._discard(segment)
        del self.segments[keep:]
        last = self.segments[-1]
        found = last.locate(end)
        if found is not None:
            end = min(end, found[1].base_offset)
            last.cut_at(found[0], end)
        self.end = Offset(max(end, last.base))
        self.snapshots.drop_above(self.end)
        self.replay_producers(self.end)
        self.undo_to = None
        self.epochs.cut_at(self.end)  # last: this alone needs room on the disk

    def begin_at(self, base: int) -> None:
        """Drop everything; the log is empty and goes on at ``base``."""
        self.cut_count += 1
        for segment in self.segments:
            self._discard(segment)
        # Not sooner: a log cut short by a kill needs its epochs. Not later: an empty one has none.
        self.snapshots.drop_above(-1)
        self.epochs.clear()
        self.segments[:] = [Segment(self.files, self.folder, base)]
        self.segments[0].create()
        self.producers.reset(base)
        self.end = Offset(base)
        self.undo_to = None

    def drop_oldest(self, count: int, start: int) -> None:
        """Drop the first segments; nobody asks any more for what lies before ``start``."""
        for segment in self.segments[:count]:
            self._discard(segment)
        del self.segments[:count]
        self.snapshots.drop_below(self.segments[0].base)
        self.epochs.begin_at(start)

    def _discard(self, segment: Segment) -> None:
        for path in segment.paths():
            self.trash.add(path)

    # -- producers -----------------------------------------------------------------------------

    def replay_producers(self, up_to: int) -> None:
        """Bring the producers to where they were when the log ended at ``up_to``.

        From the newest snapshot before it on, batch headers are read.
        """
        producers, files = self.producers, self.files
        found = self.snapshots.latest(at_most=up_to)
        if found is not None:
            producers.load(*found)
        else:
            producers.reset(self.segments[0].base)
        for segment in self.segments[self.index_of(producers.end) :]:
            first = segment.locate(producers.end) if segment.base < up_to else None
            if first is None:
                continue
            for position, header in scan_headers(files.disk, segment.file, first[0], segment.size):
                if header.base_offset >= up_to:
                    break
                marker = None
                if header.is_control:
                    batch = read_batch(files.disk, segment.file, position, header)
                    marker = marker_of(batch, 0, header)
                producers.apply(header, marker)
        producers.end = up_to

    def recall_producers(self) -> None:
        """Fill in what a snapshot leaves out: of a producer's last five batches all but one.

        After a crash the client may send any of them again. Only a few segments are searched, of
        each the end: what was under way at the crash is not far back.
        """
        end_at = self.index_of(self.producers.end - 1) + 1
        headers: list[BatchHeader] = []
        for segment in self.segments[max(end_at - RECALLED_SEGMENTS_MAX, 0) : end_at]:
            first = max(len(segment.offsets) - RECALLED_ENTRIES_MAX, 0)
            start = segment.offsets.entry(first)[1] if first else 0
            with suppress(CorruptBatchError):  # it is not searched for damage
                for _, header in scan_headers(self.files.disk, segment.file, start, segment.size):
                    if header.base_offset < self.producers.end and header.producer_id >= 0:
                        headers.append(header)
        self.producers.recall(headers)


def _stop_in(segment: Segment, admitted: Admitted, at: int, settings: LogSettings) -> int:
    """Give the index after the last batch, from ``at`` on, that fits into the segment."""
    batches = admitted.batches
    room = min(settings.segment_bytes, SIZE_BYTES_MAX) - segment.size
    first = batches[at][0]
    if len(admitted.content) - first <= room and segment.can_hold(batches[-1][1].last_offset):
        return len(batches)
    for stop in range(at + 1, len(batches)):
        position, header = batches[stop]
        is_full = position + header.length - first > room
        if is_full or not segment.can_hold(header.last_offset):
            return stop
    return len(batches)
