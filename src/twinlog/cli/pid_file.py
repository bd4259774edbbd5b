"""The file that says which process serves a log dir, so that it can be stopped, and only it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from twinlog.cli.failures import CliError

MARKS: Final = ("twinlog", "serve")
"""Words that the command line of every broker has."""


@dataclass(frozen=True, slots=True)
class PidFile:
    """A file with the number of a process."""

    path: Path

    def running(self) -> int | None:
        """Give the process that the file names, if that is still a broker of ours."""
        try:
            pid = int(self.path.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None
        line = command_line(pid) if pid > 0 else ""
        return pid if all(mark in line for mark in MARKS) else None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Name this process in the file for as long as the body runs.

        Raises CliError when another broker is named. A file that cannot be written is only told:
        the broker itself locks its log dirs.
        """
        other = self.running()
        if other is not None and other != os.getpid():
            raise CliError(
                f"process {other} already serves this log dir ({self.path}): stop it first, with "
                "bin/kafka-server-stop.sh, or name another folder in log.dirs"
            )
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(f"{os.getpid()}\n", encoding="ascii")
        except OSError as error:
            print(
                f"{self.path} cannot be written ({error.strerror}): "
                "bin/kafka-server-stop.sh will not find this broker",
                file=sys.stderr,
            )
        try:
            yield
        finally:
            self._forget()

    def _forget(self) -> None:
        """Remove the file if it still names this process."""
        try:
            if int(self.path.read_text(encoding="ascii")) == os.getpid():
                self.path.unlink()
        except (OSError, ValueError):
            return


def command_line(pid: int) -> str:
    """Give the command line of a process; nothing when there is no such process."""
    try:
        return (
            Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        )
    except OSError:
        if Path("/proc/self").exists():
            return ""
    shown = subprocess.run(
        ["ps", "-p", str(pid), "-o", "command="], capture_output=True, text=True, check=False
    )
    return shown.stdout
