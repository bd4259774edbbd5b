"""Opening a log from its folder: at once after a clean stop, by reading the batches after a crash.

After a crash every segment that may not have reached the disk is read batch by batch. At the first
batch that is torn or wrong the log ends; the indexes, the producers and the epochs are made again
from what stands before it.
"""

from typing import Final

from twinlog.model.errors import CorruptBatchError, DiskError
from twinlog.model.ids import Offset
from twinlog.storage.folders import offset_and_kind
from twinlog.storage.markers import marker_of
from twinlog.storage.parts import LogParts
from twinlog.storage.scan import scan_checked, scan_headers
from twinlog.storage.segment import Segment
from twinlog.storage.settings import LogSettings
from twinlog.storage.snapshots import Snapshots
from twinlog.wire.primitives import Buffer
from twinlog.wire.records.batch import BatchHeader

_LEFTOVERS: Final = (".deleted", ".cleaned", ".tmp")


def load_log(
    log: LogParts,
    settings: LogSettings,
    *,
    log_start: int,
    recovery_point: int,
    is_clean: bool,
) -> LogParts:
    """Fill ``log`` from its folder; an empty folder becomes a log that begins at ``log_start``."""
    unindexed = _find_files(log)
    has_epochs = log.epochs.read()
    if not log.segments:
        log.begin_at(log_start)
        return log
    if not has_epochs:
        _rebuild_epochs(log)
    loader = _Loader(log, settings, doubtful_from=None if is_clean else recovery_point)
    log.snapshots.keep_only(segment.base for segment in log.segments)
    try:
        if is_clean and not unindexed:
            loader.trust_files()
        else:
            bad_bases = [] if is_clean else loader.bases_after(recovery_point)
            loader.recover_from(min([*bad_bases, *unindexed]))
    except CorruptBatchError:
        loader.recover_from(log.segments[0].base)  # what was safe on disk is not any more
    if log.end < log_start:
        log.begin_at(log_start)  # somebody took files away
    return log


def _find_files(log: LogParts) -> list[int]:
    """Take stock of the folder; give the bases of segments without an index."""
    disk, folder = log.files.disk, log.folder
    bases: dict[str, set[int]] = {}
    for name in disk.names_in(folder):
        known = offset_and_kind(name)
        if known is not None:
            bases.setdefault(known[1], set()).add(known[0])
        elif name.endswith(_LEFTOVERS):
            disk.remove(f"{folder}/{name}")
        elif name.endswith(".swap"):
            raise DiskError(
                f"{folder}/{name}: its last broker stopped in the middle of a compaction; "
                "start and stop that broker once more, so that it can finish"
            )
    logs = bases.get("log", set())
    for kind in ("index", "timeindex", "txnindex"):
        for base in bases.get(kind, set()) - logs:
            disk.remove(f"{folder}/{base:020d}.{kind}")
    for base in sorted(logs):
        segment = Segment(log.files, folder, base)
        segment.size = disk.size_bytes(segment.stem + ".log")
        segment.has_aborted = base in bases.get("txnindex", set())
        log.segments.append(segment)
    log.snapshots = Snapshots(disk, folder, bases.get("snapshot", ()))
    return sorted(logs - (bases.get("index", set()) & bases.get("timeindex", set())))


def _rebuild_epochs(log: LogParts) -> None:
    """Find the epochs in the batch headers of the whole log."""
    for segment in log.segments:
        try:
            for _, header in scan_headers(log.files.disk, segment.file, 0, segment.size):
                if header.leader_epoch > log.epochs.history.latest:
                    log.epochs.note(header.leader_epoch, header.base_offset)
        except CorruptBatchError:
            break  # a torn tail; recovery cuts it off
    if any(segment.size for segment in log.segments):
        log.epochs.write()


class _Loader:
    """Brings the parts of a log into line with its batches."""

    def __init__(self, log: LogParts, settings: LogSettings, *, doubtful_from: int | None) -> None:
        """``doubtful_from``: where begins what may be in the system's memory alone."""
        self._files = log.files
        self._log = log
        self._settings = settings
        self._doubtful_from = doubtful_from

    def trust_files(self) -> None:
        """Take the files as they are; only where the last segment ends is looked up."""
        last = self._log.segments[-1]
        end, position = last.tail()
        if position != last.size:
            self.recover_from(last.base)
            return
        self._log.end = Offset(end)
        self._finish()

    def bases_after(self, recovery_point: int) -> list[int]:
        """Give the bases of the segments that may not have reached the disk."""
        segments = self._log.segments
        following = [segment.base for segment in segments[1:]]
        bases = [
            segment.base
            for segment, next_base in zip(segments, following, strict=False)
            if next_base > recovery_point
        ]
        return [*bases, segments[-1].base]

    def recover_from(self, base: int) -> None:
        """Read every batch from the segment at ``base`` on; end the log where one is wrong."""
        log = self._log
        log.replay_producers(base)
        log.recall_producers()
        log.epochs.forget_from(base)  # and find them again in the batches
        first = next(at for at, segment in enumerate(log.segments) if segment.base == base)
        log.end = Offset(base)
        for at in range(first, len(log.segments)):
            segment = log.segments[at]
            if not self._recover(segment):
                for lost in log.segments[at + 1 :]:
                    self._remove(lost)
                del log.segments[at + 1 :]
                break
        self._finish()

    def _recover(self, segment: Segment) -> bool:
        """Make the indexes of a segment again; False when its end had to be cut off."""
        log, interval = self._log, self._settings.index_interval_bytes
        log.producers.end = log.end = Offset(max(log.end, segment.base))
        if segment.base not in log.snapshots.offsets and segment is not log.segments[0]:
            log.snapshots.take(segment.base, log.producers.all())
        size = segment.size
        segment.empty_indexes()
        valid = 0
        try:
            for position, header, batch in scan_checked(self._files.disk, segment.file, 0, size):
                if header.base_offset < segment.base or not segment.can_hold(header.last_offset):
                    raise CorruptBatchError(header.base_offset, f"not of segment {segment.base}")
                if position and header.base_offset < log.end:
                    raise CorruptBatchError(header.base_offset, f"the log is at {log.end} already")
                marker = marker_of(batch, 0, header) if header.is_control else None
                segment.index([(0, header)], position, interval)
                if header.leader_epoch > log.epochs.history.latest:
                    log.epochs.note(header.leader_epoch, header.base_offset)
                aborted = log.producers.apply(header, marker)
                if aborted is not None:
                    segment.add_aborted(aborted)
                self._write_again(segment, position, header, batch)
                log.end, valid = Offset(header.next_offset), position + header.length
        except CorruptBatchError:
            pass  # here the log ends
        if valid < size:
            segment.shrink_to(valid)
            log.cut_bytes += size - valid
        segment.finish()
        return valid == size

    def _write_again(
        self, segment: Segment, position: int, header: BatchHeader, batch: Buffer
    ) -> None:
        """Let the next flush write what was read, even if the system takes it for written.

        It does after a flush that failed, and goes on doing so for the next process.
        """
        if self._doubtful_from is not None and header.next_offset > self._doubtful_from:
            self._files.disk.write(segment.file, batch, position)

    def _remove(self, segment: Segment) -> None:
        self._log.cut_bytes += segment.size
        for path in segment.paths():
            self._files.forget(path)
            self._files.disk.remove(path)

    def _finish(self) -> None:
        log = self._log
        log.snapshots.drop_above(log.end)
        if log.producers.end != log.end:
            log.replay_producers(log.end)
        log.epochs.cut_at(log.end)
