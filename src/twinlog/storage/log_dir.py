"""One log dir: its lock, its identity file, its checkpoints, and whether it was left cleanly."""

import fcntl
import json
from collections.abc import Callable, Mapping
from typing import Final
from uuid import UUID

from twinlog.model.errors import SettingsError
from twinlog.model.ids import Offset, TopicPartition
from twinlog.storage.checkpoints import (
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    CheckpointFile,
)
from twinlog.storage.disk import Disk, OpenFile
from twinlog.storage.folders import (
    CLEAN_SHUTDOWN,
    LOCK,
    META_PROPERTIES,
    Identity,
    decode_identity,
    encode_identity,
)

NO_BROKER_EPOCH: Final = -1


class LogDir:
    """A folder of partition folders, owned by one broker process at a time."""

    def __init__(self, disk: Disk, path: str) -> None:
        self.path = path
        self._disk = disk
        disk.make_folder(path)
        self._locks = _locked(disk, path)
        content = disk.read_whole(f"{path}/{META_PROPERTIES}")
        self.identity: Identity | None = None
        if content is not None:
            self.identity = decode_identity(content, f"{path}/{META_PROPERTIES}")
        self._high_watermarks_file = CheckpointFile(disk, f"{path}/{HIGH_WATERMARKS}")
        self._log_starts_file = CheckpointFile(disk, f"{path}/{LOG_STARTS}")
        self._recovery_points_file = CheckpointFile(disk, f"{path}/{RECOVERY_POINTS}")
        self.high_watermarks: dict[TopicPartition, Offset] = {}
        self.log_starts: dict[TopicPartition, Offset] = {}
        self.recovery_points: dict[TopicPartition, Offset] = {}
        self.is_clean = False
        self.last_broker_epoch = NO_BROKER_EPOCH
        self.why_offline: str | None = None

    def claim(self, cluster_id: str, node_id: int, directory_id: UUID) -> None:
        """Make an empty dir ours; raise SettingsError if it is another cluster's or broker's."""
        found = self.identity
        if found is None:
            self.identity = Identity(cluster_id, node_id, directory_id)
            content = encode_identity(self.identity)
            self._disk.replace(f"{self.path}/{META_PROPERTIES}", content, is_synced=True)
        elif found.cluster_id != cluster_id:
            raise SettingsError(
                f"log.dirs: {self.path} belongs to cluster {found.cluster_id}, this broker to "
                f"{cluster_id}; name an empty folder, or the one this cluster used before"
            )
        elif found.node_id != node_id:
            raise SettingsError(
                f"log.dirs: {self.path} belongs to node {found.node_id}, this is node {node_id}; "
                "set node.id to that number, or name another folder"
            )

    def read_points(self) -> None:
        """Read the checkpoints, and whether the last stop was clean; that mark is taken away."""
        self.high_watermarks = self._high_watermarks_file.read()
        self.log_starts = self._log_starts_file.read()
        self.recovery_points = self._recovery_points_file.read()
        content = self._disk.read_whole(f"{self.path}/{CLEAN_SHUTDOWN}")
        self.is_clean = content is not None
        self.last_broker_epoch = _broker_epoch_in(content or b"")
        self._disk.remove(f"{self.path}/{CLEAN_SHUTDOWN}")

    def may_remember(self, of: TopicPartition) -> bool:
        """Whether a checkpoint may name a partition, and so be believed of its next log."""
        return (
            self._log_starts_file.may_name(of)
            or self._recovery_points_file.may_name(of)
            or self._high_watermarks_file.may_name(of)
        )

    def begin_write_points(
        self,
        *,
        log_starts: Mapping[TopicPartition, int],
        recovery_points: Mapping[TopicPartition, int],
    ) -> Callable[[], None]:
        """Take starts and recovery points; give what writes them, on any thread."""
        write_starts = self._log_starts_file.begin_write(log_starts)
        write_recovery_points = self._recovery_points_file.begin_write(recovery_points)

        def write() -> None:
            write_starts()
            write_recovery_points()

        return write

    def begin_write_high_watermarks(
        self, high_watermarks: Mapping[TopicPartition, Offset]
    ) -> Callable[[], None]:
        """Take high watermarks; partitions not named keep theirs. Give what writes them."""
        self.high_watermarks.update(high_watermarks)
        return self._high_watermarks_file.begin_write(self.high_watermarks)

    def mark_clean(self, broker_epoch: int) -> None:
        """Leave the mark that lets the next start trust the files."""
        content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
        self._disk.replace(f"{self.path}/{CLEAN_SHUTDOWN}", content.encode(), is_synced=True)

    def unlock(self) -> None:
        """Let another process have the dir."""
        folder, file = self._locks
        fcntl.lockf(file.fileno(), fcntl.LOCK_UN)
        fcntl.flock(folder.fileno(), fcntl.LOCK_UN)


def _locked(disk: Disk, folder: str) -> tuple[OpenFile, OpenFile]:
    """Take the locks of a log dir: one of the folder's descriptor, and Kafka's, of the process.

    Kafka's alone would let two brokers of one process share a dir; and whoever closes the lock file
    gives up that lock for the whole process, so it is not even opened before the first is held.
    """
    try:
        held = disk.open_folder(folder)
        fcntl.flock(held.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        file = disk.open(f"{folder}/{LOCK}")
        fcntl.lockf(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise SettingsError(
            f"log.dirs: {folder} is used by another broker process; "
            "stop that one, or name another folder"
        ) from error
    return held, file


def _broker_epoch_in(content: bytes) -> int:
    try:
        return int(json.loads(content)["brokerEpoch"])
    except (ValueError, KeyError, TypeError):
        return NO_BROKER_EPOCH
