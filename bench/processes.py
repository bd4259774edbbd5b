"""Measures processes from outside: CPU time of all their threads, and their peak memory."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

_PATIENCE_S = 1800.0
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Use:
    """What processes used between two moments, for so many bytes of payload."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    payload_bytes: int

    @property
    def mb_per_s(self) -> float:
        """Millions of payload bytes a second."""
        return self.payload_bytes / 1e6 / self.wall_s

    @property
    def cpu_s_per_gb(self) -> float:
        """CPU-seconds for each 10^9 payload bytes."""
        return self.cpu_s / (self.payload_bytes / 1e9)


class Meter:
    """Watches some processes from the moment it is made."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = list(pids)
        for pid in self._pids:
            forget_peak(pid)
        self._cpu_s = sum(cpu_seconds(pid) for pid in self._pids)
        self._began = time.perf_counter()

    def read(self, payload_bytes: int) -> Use:
        """Give what was used since, for that many bytes."""
        wall_s = time.perf_counter() - self._began
        cpu_s = sum(cpu_seconds(pid) for pid in self._pids) - self._cpu_s
        return Use(wall_s, cpu_s, sum(peak_bytes(pid) for pid in self._pids), payload_bytes)


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, all threads, those that ended too."""
    # The name in brackets may hold spaces; what follows it does not.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user_ticks, system_ticks = int(fields[11]), int(fields[12])
    return (user_ticks + system_ticks) / _TICKS_PER_SECOND


def peak_bytes(pid: int) -> int:
    """The most memory a process had resident (VmHWM) since its peak was last forgotten."""
    return _status_bytes(pid, "VmHWM")


def resident_bytes(pid: int) -> int:
    """The memory a process has resident now."""
    return _status_bytes(pid, "VmRSS")


def forget_peak(pid: int) -> None:
    """Let the peak begin at what is resident now."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def await_progress(
    done: Callable[[], int], wanted: int, pids: Sequence[int], *, poll_s: float = 0.01
) -> Meter:
    """Wait for the first sign of progress and give a meter begun then; raise if it never ends.

    Start-up is a measurement of its own; here it would only say how small the data was.
    """
    began = time.monotonic()
    while done() == 0:
        _check(began, f"no progress towards {wanted}")
        time.sleep(poll_s)
    meter = Meter(pids)
    while done() < wanted:
        _check(began, f"{done()} of {wanted}")
        time.sleep(poll_s)
    return meter


def _check(began: float, where: str) -> None:
    if time.monotonic() - began > _PATIENCE_S:
        raise TimeoutError(f"after {_PATIENCE_S} s: {where}")


def _status_bytes(pid: int, field: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"/proc/{pid}/status has no {field}")
