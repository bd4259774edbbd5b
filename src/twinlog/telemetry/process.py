"""What the operating system tells of this process, under the names Prometheus gives it everywhere.

Read from ``/proc``; where there is none, only the processor time is told.
"""

import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from twinlog.telemetry import families as of
from twinlog.telemetry.metrics import Reading, one

_PROC: Final = Path("/proc")
_START_FIELD: Final = 19
"""Of ``/proc/self/stat``, counted after the name in brackets: the start, in ticks since boot."""


def process_readings(proc: Path = _PROC) -> Iterator[Reading]:
    """Read processor time, memory, files and start."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    yield one(of.PROCESS_CPU, usage.ru_utime + usage.ru_stime)
    yield one(of.PROCESS_MAX_FDS, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    try:
        stat = (proc / "self" / "stat").read_text().rpartition(")")[2].split()
        pages = (proc / "self" / "statm").read_text().split()
        boot_s = _boot_s((proc / "stat").read_text())
        open_files = len(os.listdir(proc / "self" / "fd"))  # noqa: PTH208 - only how many
    except OSError:
        return
    page_bytes = resource.getpagesize()
    yield one(of.PROCESS_RESIDENT, int(pages[1]) * page_bytes)
    yield one(of.PROCESS_VIRTUAL, int(pages[0]) * page_bytes)
    yield one(of.PROCESS_START, boot_s + int(stat[_START_FIELD]) / os.sysconf("SC_CLK_TCK"))
    yield one(of.PROCESS_OPEN_FDS, open_files)


def _boot_s(stat: str) -> int:
    line = next((one for one in stat.splitlines() if one.startswith("btime ")), "btime 0")
    return int(line.split()[1])
