"""``twinlog stop config/server.properties``: stops the broker that serves those log dirs."""

import argparse
import os
import signal
import time
from pathlib import Path
from typing import Final

from twinlog.cli.failures import EXIT_OK, CliError
from twinlog.cli.pid_file import PidFile
from twinlog.cli.serve import pid_file_of, settings_of

WAIT_S_DEFAULT: Final = 60.0
POLL_S: Final = 0.1


def parser(prog: str) -> argparse.ArgumentParser:
    """Give the parser of the command's flags."""
    made = argparse.ArgumentParser(prog=prog, description="Stop a broker, in an orderly way.")
    made.add_argument("properties", metavar="FILE", type=Path, help="the file it was started with")
    made.add_argument("--override", action="append", default=[], metavar="KEY=VALUE")
    made.add_argument(
        "--timeout", type=float, default=WAIT_S_DEFAULT, metavar="S", help="seconds to wait for it"
    )
    return made


def run(options: argparse.Namespace) -> int:
    """Ask the broker to stop and wait until it has."""
    pid_file = pid_file_of(settings_of(options.properties, options.override))
    pid = pid_file.running()
    if pid is None:
        raise CliError(f"no broker runs with these log dirs ({pid_file.path} names none)")
    os.kill(pid, signal.SIGTERM)
    _wait_for_end(pid_file, pid, options.timeout)
    print(f"Stopped the broker (process {pid})")
    return EXIT_OK


def _wait_for_end(pid_file: PidFile, pid: int, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s  # noqa: TID251 - a person waits for another process
    while pid_file.running() == pid:
        if time.monotonic() > deadline:  # noqa: TID251
            raise CliError(
                f"process {pid} was asked to stop and has not within {timeout_s:g} s; "
                "its log says what it waits for"
            )
        time.sleep(POLL_S)
