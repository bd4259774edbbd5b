"""All partition logs of this broker, in one log dir or several; a failed dir goes offline alone."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final
from uuid import UUID

from twinlog.model.errors import ApiError, DiskError, ErrorCode, SettingsError
from twinlog.model.ids import NO_TOPIC_ID, Offset, TopicId, TopicPartition
from twinlog.storage.closing import flush_for_good
from twinlog.storage.disk import Disk
from twinlog.storage.folders import (
    DELETED_FOLDER_SUFFIX,
    PARTITION_METADATA,
    STRAY_FOLDER_SUFFIX,
    decode_topic_id,
    encode_topic_id,
    is_deleted_folder,
    partition_of_folder,
    renamed_folder,
)
from twinlog.storage.home import LogHome
from twinlog.storage.log import PartitionLog
from twinlog.storage.log_dir import LogDir
from twinlog.storage.open_files import OPEN_FILES_MAX, OpenFiles
from twinlog.storage.settings import LogSettings
from twinlog.storage.trash import Trash

FAILURES_TOLD_MAX: Final = 3
_NOT_OURS = "__cluster_metadata"  # Kafka's own metadata log, where a Kafka broker used the dir


class Logs:
    """Every log of the broker. Order of use: make, ``claim``, ``load``, work, ``close``."""

    def __init__(
        self,
        folders: Sequence[str],
        *,
        disk: Disk | None = None,
        open_files_max: int = OPEN_FILES_MAX,
    ) -> None:
        """Make and lock the log dirs; raise SettingsError if one is in use."""
        self._files = OpenFiles(disk or Disk(), open_files_max)
        self._disk = self._files.disk
        self._trash = Trash(self._files)
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._dir_of: dict[TopicPartition, LogDir] = {}
        self._topic_ids: dict[TopicPartition, TopicId] = {}
        self._dirs = [LogDir(self._disk, folder.rstrip("/") or "/") for folder in folders]
        self._homes = {one.path: self._home_in(one) for one in self._dirs}

    def _home_in(self, log_dir: LogDir) -> LogHome:
        return LogHome(self._files, self._trash, lambda: self._begin_points(log_dir)())

    @property
    def cluster_id(self) -> str | None:
        """The cluster that the dirs belong to; None while all are empty."""
        return next((one.identity.cluster_id for one in self._dirs if one.identity), None)

    @property
    def offline(self) -> dict[str, str]:
        """Dirs that failed, and why."""
        return {one.path: one.why_offline for one in self._dirs if one.why_offline is not None}

    @property
    def was_clean(self) -> bool:
        """Whether the last stop was clean in every dir."""
        return all(one.is_clean for one in self._dirs)

    @property
    def last_broker_epoch(self) -> int:
        """The broker epoch at the last clean stop; -1 when it is not known."""
        return max(one.last_broker_epoch for one in self._dirs)

    def __iter__(self) -> Iterator[PartitionLog]:
        """Give every log."""
        return iter(list(self._logs.values()))

    def __len__(self) -> int:
        """Give the number of logs."""
        return len(self._logs)

    def claim(self, cluster_id: str, node_id: int, new_id: Callable[[], UUID]) -> None:
        """Make empty dirs ours; raise SettingsError if one is another cluster's or broker's."""
        for one in self._dirs:
            one.claim(cluster_id, node_id, new_id())

    def load(self, settings_of: Callable[[TopicPartition], LogSettings], now_ms: int) -> None:
        """Open every log found; recover where the last stop was not clean."""
        for log_dir in self._dirs:
            try:
                log_dir.read_points()
                self._load_dir(log_dir, settings_of, now_ms)
            except DiskError as error:
                self.fail(log_dir.path, str(error))

    def _load_dir(
        self,
        log_dir: LogDir,
        settings_of: Callable[[TopicPartition], LogSettings],
        now_ms: int,
    ) -> None:
        for name in self._disk.names_in(log_dir.path):
            folder = f"{log_dir.path}/{name}"
            if is_deleted_folder(name):
                self._trash.add_folder(folder)
                continue
            of = partition_of_folder(name)
            if of is None or of.topic == _NOT_OURS:
                continue
            if of in self._logs:
                raise SettingsError(
                    f"log.dirs: {of} is in {self._dir_of[of].path} and in {log_dir.path}; "
                    "move one of the two folders away"
                )
            content = self._disk.read_whole(f"{folder}/{PARTITION_METADATA}")
            topic_id = decode_topic_id(content) if content is not None else None
            log = PartitionLog.open(
                folder,
                of,
                settings_of(of),
                home=self._homes[log_dir.path],
                log_start=log_dir.log_starts.get(of, Offset(0)),
                recovery_point=log_dir.recovery_points.get(of, Offset(0)),
                is_clean=log_dir.is_clean,
                now_ms=now_ms,
            )
            self._enter(log, log_dir, topic_id or NO_TOPIC_ID)

    def _enter(self, log: PartitionLog, log_dir: LogDir, topic_id: TopicId) -> None:
        self._logs[log.of] = log
        self._dir_of[log.of] = log_dir
        self._topic_ids[log.of] = topic_id

    def get(self, of: TopicPartition) -> PartitionLog | None:
        """Give a partition's log; None when this broker has none, or its dir is offline."""
        return self._logs.get(of)

    def topic_id_of(self, of: TopicPartition) -> TopicId | None:
        """Give the id of the topic that a log was made for; zero when the folder does not say."""
        return self._topic_ids.get(of)

    def dir_of(self, of: TopicPartition) -> str | None:
        """Give the log dir that holds a partition."""
        log_dir = self._dir_of.get(of)
        return log_dir.path if log_dir else None

    def high_watermark_of(self, of: TopicPartition) -> Offset:
        """Give the high watermark as it was last written, within what the log has."""
        log, log_dir = self._logs[of], self._dir_of[of]
        return Offset(min(max(log_dir.high_watermarks.get(of, Offset(0)), log.start), log.end))

    def create(self, of: TopicPartition, topic_id: TopicId, settings: LogSettings) -> PartitionLog:
        """Make an empty log, in the dir that holds the fewest."""
        assert of not in self._logs, f"{of} has a log"
        online = [one for one in self._dirs if one.why_offline is None]
        if not online:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "every log dir is offline")
        held = list(self._dir_of.values())
        log_dir = min(online, key=held.count)
        if log_dir.may_remember(of):
            self._forget(of, log_dir)
        folder = f"{log_dir.path}/{of}"
        self._disk.make_folder(folder)
        self._disk.replace(
            f"{folder}/{PARTITION_METADATA}", encode_topic_id(topic_id), is_synced=False
        )
        home = self._homes[log_dir.path]
        log = PartitionLog.open(folder, of, settings, home=home, is_clean=True)
        self._enter(log, log_dir, topic_id)
        return log

    def _forget(self, of: TopicPartition, log_dir: LogDir) -> None:
        """Let a log begin as new also after a kill.

        A start that believed the checkpoints of the log that had its name would drop what lies
        before that one's start, and leave unread what lies before that one's recovery point.
        """
        log_dir.high_watermarks.pop(of, None)
        self._begin_points(log_dir)()
        log_dir.begin_write_high_watermarks({})()

    def delete(self, of: TopicPartition, unique: UUID) -> None:
        """Give up a log; its folder is renamed at once, and removed with the trash."""
        self._trash.add_folder(self._rename_away(of, unique, DELETED_FOLDER_SUFFIX))

    def set_aside(self, of: TopicPartition, unique: UUID) -> str:
        """Give up a log but keep its folder, under a name no log has; give that path."""
        return self._rename_away(of, unique, STRAY_FOLDER_SUFFIX)

    def _rename_away(self, of: TopicPartition, unique: UUID, suffix: str) -> str:
        log, log_dir = self._logs[of], self._dir_of[of]
        gone = f"{log_dir.path}/{renamed_folder(of, unique, suffix)}"
        self._disk.rename(log.folder, gone)
        # Only now: a folder that kept its name must not be taken for that of a new topic.
        del self._logs[of], self._dir_of[of], self._topic_ids[of]
        log.close(is_clean=False)
        log_dir.high_watermarks.pop(of, None)
        return gone

    def fail(self, folder: str, why: str) -> list[TopicPartition]:
        """Take a log dir offline; give the partitions that are gone with it."""
        log_dir = next(one for one in self._dirs if one.path == folder)
        log_dir.why_offline = why
        gone = [of for of, where in self._dir_of.items() if where is log_dir]
        for of in gone:
            del self._logs[of], self._dir_of[of], self._topic_ids[of]
        return gone

    def write_points(self) -> None:
        """Write every log's start and recovery point, so that a crash does not lose them."""
        self.begin_write_points()()

    def begin_write_points(self) -> Callable[[], None]:
        """Take every log's start and recovery point; give what writes them, on any thread."""
        online = [one for one in self._dirs if one.why_offline is None]
        return _each([self._begin_points(one) for one in online])

    def _begin_points(self, log_dir: LogDir) -> Callable[[], None]:
        logs = [log for of, log in self._logs.items() if self._dir_of[of] is log_dir]
        return log_dir.begin_write_points(
            log_starts={log.of: log.start for log in logs},
            recovery_points={log.of: log.recovery_point for log in logs},
        )

    def write_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Write the high watermarks; partitions not named keep what was written before."""
        self.begin_write_high_watermarks(high_watermarks)()

    def begin_write_high_watermarks(
        self, high_watermarks: Mapping[TopicPartition, int]
    ) -> Callable[[], None]:
        """Take the high watermarks; give what writes them, on any thread."""
        writes = []
        for log_dir, logs in self._by_dir():
            known = {log.of for log in logs}
            own = {of: Offset(end) for of, end in high_watermarks.items() if of in known}
            writes.append(log_dir.begin_write_high_watermarks(own))
        return _each(writes)

    def _by_dir(self) -> list[tuple[LogDir, list[PartitionLog]]]:
        logs: dict[str, list[PartitionLog]] = {one.path: [] for one in self._dirs}
        for of, log in self._logs.items():
            logs[self._dir_of[of].path].append(log)
        return [(one, logs[one.path]) for one in self._dirs if one.why_offline is None]

    def take_trash(self, now_ms: int, delay_ms: int) -> list[str]:
        """Give what has waited ``delay_ms`` for its removal, to be passed to ``empty_trash``."""
        return self._trash.take_due(now_ms, delay_ms)

    def empty_trash(self, paths: list[str]) -> None:
        """Remove files and folders; this may be run on another thread. Raises DiskError."""
        self._trash.empty(paths)

    def put_back_trash(self, paths: list[str]) -> None:
        """Keep what could not be removed, to be taken out again later."""
        self._trash.put_back(paths)

    def close(self, *, is_clean: bool, broker_epoch: int = -1) -> None:
        """Close every log; after a clean close the next start reads no batches.

        A dir that fails goes offline: it has no mark, and is recovered at the next start.
        """
        for log_dir, logs in self._by_dir():
            if is_clean:
                self._close_cleanly(log_dir, logs, broker_epoch)
            for log in logs:
                log.close(is_clean=False)
        for one in self._dirs:
            one.unlock()

    def _close_cleanly(self, log_dir: LogDir, logs: list[PartitionLog], broker_epoch: int) -> None:
        """Leave the mark last: whoever finds it believes the logs, indexes and checkpoints."""
        try:
            failures = flush_for_good(logs)
            self._begin_points(log_dir)()
            if failures:
                log_dir.why_offline = "; ".join(failures[:FAILURES_TOLD_MAX])
            else:
                log_dir.mark_clean(broker_epoch)
        except DiskError as error:
            log_dir.why_offline = str(error)


def _each(writes: Sequence[Callable[[], None]]) -> Callable[[], None]:
    """Give what writes each of several dirs, also those after one that fails."""

    def write() -> None:
        failures: list[str] = []
        for one in writes:
            try:
                one()
            except DiskError as error:
                failures.append(str(error))
        if failures:
            raise DiskError("; ".join(failures))

    return write
