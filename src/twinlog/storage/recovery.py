"""Opening a log from its folder: at once after a clean stop, by reading the batches after a crash.

After a crash every segment that may not have reached the disk is read batch by batch. At the first
batch that is torn or wrong the log ends; the indexes, the producers and the epochs are made again
from what stands before it.
"""

from dataclasses import dataclass, field
from typing import Final

from twinlog.model.epochs import EpochHistory
from twinlog.model.errors import CorruptBatchError, DiskError
from twinlog.storage.epochs import FILE_NAME, EpochFile, decode_epochs
from twinlog.storage.folders import offset_and_kind
from twinlog.storage.markers import marker_of
from twinlog.storage.open_files import OpenFiles
from twinlog.storage.producers import Producers
from twinlog.storage.scan import read_batch, scan_checked, scan_headers
from twinlog.storage.segment import Segment
from twinlog.storage.settings import LogSettings
from twinlog.storage.snapshots import Snapshots

_LEFTOVERS: Final = (".deleted", ".cleaned", ".tmp")


@dataclass(slots=True)
class LogFiles:
    """The parts of one log on disk, each true to the others."""

    folder: str
    segments: list[Segment]
    epochs: EpochFile
    snapshots: Snapshots
    producers: Producers = field(default_factory=Producers)
    end: int = 0
    cut_bytes: int = 0
    """What a crash had left torn."""


def load_log(
    files: OpenFiles,
    folder: str,
    settings: LogSettings,
    *,
    log_start: int,
    recovery_point: int,
    is_clean: bool,
) -> LogFiles:
    """Load the log in ``folder``; an empty folder becomes a log that begins at ``log_start``."""
    log, unindexed = _find_files(files, folder)
    if not log.segments:
        log.segments.append(Segment(files, folder, log_start))
        log.segments[0].create()
    loader = _Loader(files, log, settings)
    log.snapshots.keep_only(segment.base for segment in log.segments)
    if is_clean and not unindexed:
        loader.trust_files()
    else:
        bad_bases = [] if is_clean else loader.bases_after(recovery_point)
        loader.recover_from(min([*bad_bases, *unindexed]))
    loader.restart_if_lost(log_start)
    return log


def _find_files(files: OpenFiles, folder: str) -> tuple[LogFiles, list[int]]:
    """Take stock of a folder; give its parts, and the bases of segments without an index."""
    disk = files.disk
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
    segments = []
    for base in sorted(logs):
        segment = Segment(files, folder, base)
        segment.size = disk.size_bytes(segment.stem + ".log")
        segment.has_aborted = base in bases.get("txnindex", set())
        segments.append(segment)
    content = disk.read_whole(f"{folder}/{FILE_NAME}")
    history = decode_epochs(content) if content is not None else None
    log = LogFiles(
        folder,
        segments,
        EpochFile(disk, folder, history if history is not None else EpochHistory()),
        Snapshots(disk, folder, bases.get("snapshot", ())),
    )
    if history is None:
        _rebuild_epochs(files, log)
    unindexed = logs - (bases.get("index", set()) & bases.get("timeindex", set()))
    return log, sorted(unindexed)


def _rebuild_epochs(files: OpenFiles, log: LogFiles) -> None:
    """Find the epochs in the batch headers of the whole log."""
    history = log.epochs.history
    for segment in log.segments:
        try:
            for _, header in scan_headers(files.disk, segment.file, 0, segment.size):
                if header.leader_epoch > history.latest:
                    log.epochs.note(header.leader_epoch, header.base_offset)
        except CorruptBatchError:
            break  # a torn tail; recovery cuts it off
    log.epochs.write()


def replay_producers(files: OpenFiles, log: LogFiles, *, up_to: int) -> None:
    """Bring the producers to where they were when the log ended at ``up_to``."""
    producers = log.producers
    found = log.snapshots.latest(at_most=up_to)
    if found is not None:
        producers.load(*found)
    else:
        producers.reset(log.segments[0].base)
    for at, segment in enumerate(log.segments):
        is_passed = at + 1 < len(log.segments) and log.segments[at + 1].base <= producers.end
        if is_passed or segment.base >= up_to:
            continue
        first = segment.locate(producers.end)
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


class _Loader:
    """Brings the parts of a log into line with its batches."""

    def __init__(self, files: OpenFiles, log: LogFiles, settings: LogSettings) -> None:
        self._files = files
        self._log = log
        self._settings = settings

    def trust_files(self) -> None:
        """Take the files as they are; only where the last segment ends is looked up."""
        last = self._log.segments[-1]
        end, position = last.tail()
        if position != last.size:
            self.recover_from(last.base)
            return
        self._log.end = end
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
        replay_producers(self._files, log, up_to=base)
        log.epochs.forget_from(base)  # and find them again in the batches
        first = next(at for at, segment in enumerate(log.segments) if segment.base == base)
        log.end = base
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
        log.producers.end = log.end = max(log.end, segment.base)
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
                log.end, valid = header.next_offset, position + header.length
        except CorruptBatchError:
            pass  # here the log ends
        if valid < size:
            segment.shrink_to(valid)
            log.cut_bytes += size - valid
        segment.finish()
        return valid == size

    def _remove(self, segment: Segment) -> None:
        self._log.cut_bytes += segment.size
        for path in segment.paths():
            self._files.forget(path)
            self._files.disk.remove(path)

    def _finish(self) -> None:
        log = self._log
        log.snapshots.drop_above(log.end)
        if log.producers.end != log.end:
            replay_producers(self._files, log, up_to=log.end)
        log.epochs.cut_at(log.end)

    def restart_if_lost(self, log_start: int) -> None:
        """Begin anew at ``log_start`` when the whole log lies before it."""
        log = self._log
        if log.end >= log_start:
            return
        for segment in log.segments:
            self._remove(segment)
        log.segments[:] = [Segment(self._files, log.folder, log_start)]
        log.segments[0].create()
        log.snapshots.drop_above(-1)
        log.epochs.clear()
        log.producers.reset(log_start)
        log.end = log_start
