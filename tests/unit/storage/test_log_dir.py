"""A log dir belongs to one cluster, one node and one process."""

import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from twinlog.model.errors import SettingsError
from twinlog.storage.disk import Disk
from twinlog.storage.log_dir import NO_BROKER_EPOCH, LogDir

ID = UUID(int=5)


def test_an_empty_dir_is_formatted_and_known_again(tmp_path: Path) -> None:
    first = LogDir(Disk(), str(tmp_path / "new"))
    assert first.identity is None
    first.claim("c", 1, ID)
    first.unlock()
    again = LogDir(Disk(), str(tmp_path / "new"))
    again.claim("c", 1, UUID(int=6))
    assert again.identity is not None
    assert again.identity.directory_id == ID
    again.unlock()


@pytest.mark.parametrize(
    ("cluster", "node", "why"), [("other", 1, "cluster c"), ("c", 2, "belongs to node 1")]
)
def test_another_clusters_or_nodes_dir_is_refused(
    tmp_path: Path, cluster: str, node: int, why: str
) -> None:
    found = LogDir(Disk(), str(tmp_path))
    found.claim("c", 1, ID)
    with pytest.raises(SettingsError, match=why):
        found.claim(cluster, node, ID)
    found.unlock()


def test_two_brokers_cannot_have_it_in_one_process_or_in_two(tmp_path: Path) -> None:
    first = LogDir(Disk(), str(tmp_path))
    with pytest.raises(SettingsError, match="used by another broker"):
        LogDir(Disk(), str(tmp_path))
    script = (
        "import sys, fcntl; file = open(sys.argv[1], 'r+')\n"
        "fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)"
    )
    command = [sys.executable, "-c", script, str(tmp_path / ".lock")]
    held = subprocess.run(command, capture_output=True, check=False)
    assert b"BlockingIOError" in held.stderr, "Kafka's kind of lock is held too"
    first.unlock()
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("content", "epoch"),
    [(b"", -1), (b"{}", -1), (b"[]", -1), (b'{"version":0,"brokerEpoch":9}', 9)],
)
def test_the_mark_of_a_clean_stop_counts_once(tmp_path: Path, content: bytes, epoch: int) -> None:
    (tmp_path / ".kafka_cleanshutdown").write_bytes(content)
    found = LogDir(Disk(), str(tmp_path))
    found.read_points()
    assert (found.is_clean, found.last_broker_epoch) == (True, epoch)
    found.read_points()
    assert (found.is_clean, found.last_broker_epoch) == (False, NO_BROKER_EPOCH)
    found.mark_clean(3)
    found.read_points()
    assert found.last_broker_epoch == 3
    found.unlock()
