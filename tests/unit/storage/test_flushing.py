from pathlib import Path

import pytest

from support.logs import HastyDisk
from twinlog.model.errors import DiskError
from twinlog.model.ids import Offset
from twinlog.storage.disk import OpenFile
from twinlog.storage.flushing import Flush, FlushGate


class SickDisk(HastyDisk):
    """A disk that fails once, as a system does that drops what it could not write."""

    __slots__ = ("failures_left",)

    def __init__(self) -> None:
        self.failures_left = 1

    def sync(self, file: OpenFile) -> None:
        if self.failures_left:
            self.failures_left -= 1
            raise DiskError(f"cannot flush {file.path}: Input/output error")


def test_after_a_flush_that_failed_none_is_tried(tmp_path: Path) -> None:
    disk, gate = SickDisk(), FlushGate()
    flush = Flush([disk.open(f"{tmp_path}/x.log")], Offset(1), 0)
    gate.check()
    told = r"^cannot flush .*x\.log: Input/output error; this log takes no more records until"
    with pytest.raises(DiskError, match=told):
        gate.run(disk, flush)
    assert gate.failure is not None
    with pytest.raises(DiskError, match=told):
        gate.run(disk, flush)
    with pytest.raises(DiskError, match=told):
        gate.check()


def test_flushes_that_succeed_leave_the_gate_open(tmp_path: Path) -> None:
    disk, gate = HastyDisk(), FlushGate()
    for _ in range(2):
        gate.run(disk, Flush([disk.open(f"{tmp_path}/x.log")], Offset(1), 0))
    assert gate.failure is None
