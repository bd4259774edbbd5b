"""Stopping a broker: only one of ours, and it is waited for."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.commands import run_command

OBEYS = "import signal; print('up', flush=True); signal.pause()"
REFUSES = (
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "print('up', flush=True); signal.pause(); signal.pause()"
)


def properties(folder: Path) -> Path:
    file = folder / "p"
    file.write_text(f"log.dirs={folder}/data\n")
    return file


def started(folder: Path, program: str) -> "subprocess.Popen[str]":
    """Start a process that looks like a broker, named by the pid file."""
    command = [sys.executable, "-c", program, "twinlog", "serve"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    (folder / "data.pid").write_text(str(process.pid))
    return process


def test_without_a_broker_there_is_nothing_to_stop(tmp_path: Path) -> None:
    ran = run_command(["stop", str(properties(tmp_path))])
    assert ran.code == 1
    assert f"no broker runs with these log dirs ({tmp_path}/data.pid names none)" in ran.err


@pytest.mark.slow
def test_a_broker_is_asked_to_stop_and_waited_for(tmp_path: Path) -> None:
    process = started(tmp_path, OBEYS)
    ran = run_command(["stop", str(properties(tmp_path))])
    assert (ran.code, ran.out) == (0, f"Stopped the broker (process {process.pid})\n")
    process.communicate()
    assert process.returncode == -15


@pytest.mark.slow
def test_a_broker_that_does_not_stop_in_time_is_told(tmp_path: Path) -> None:
    process = started(tmp_path, REFUSES)
    try:
        ran = run_command(["stop", str(properties(tmp_path)), "--timeout", "0"])
        assert ran.code == 1
        assert f"process {process.pid} was asked to stop and has not within 0 s" in ran.err
    finally:
        process.kill()
        process.communicate()
