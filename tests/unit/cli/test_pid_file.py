"""The pid file names a broker only while it is one, and is never taken from another."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from twinlog.cli.failures import CliError
from twinlog.cli.pid_file import PidFile, command_line

SLEEPER = "import sys; print(flush=True); sys.stdin.read()"


def sleeper(*arguments: str) -> "subprocess.Popen[bytes]":
    """Start a process that waits for its standard input to close."""
    command = [sys.executable, "-c", SLEEPER, *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()  # now it runs what it was started for
    return process


def end(process: "subprocess.Popen[bytes]") -> None:
    process.communicate()


def test_it_names_this_process_while_it_is_held(tmp_path: Path) -> None:
    file = PidFile(tmp_path / "deep" / "data.pid")
    with file.held():
        assert int(file.path.read_text()) == os.getpid()
    assert not file.path.exists()


@pytest.mark.parametrize("text", ["", "x", "-1", "0", "999999999"])
def test_what_names_no_process_names_no_broker(tmp_path: Path, text: str) -> None:
    file = PidFile(tmp_path / "data.pid")
    file.path.write_text(text)
    assert file.running() is None
    with file.held():
        assert int(file.path.read_text()) == os.getpid()


def test_a_process_that_is_no_broker_is_left_alone(tmp_path: Path) -> None:
    process = sleeper()
    try:
        file = PidFile(tmp_path / "data.pid")
        file.path.write_text(str(process.pid))
        assert "sys.stdin.read" in command_line(process.pid)
        assert file.running() is None
    finally:
        end(process)


def test_a_second_broker_is_refused_and_the_first_keeps_its_file(tmp_path: Path) -> None:
    process = sleeper("twinlog", "serve")
    try:
        file = PidFile(tmp_path / "data.pid")
        file.path.write_text(str(process.pid))
        assert file.running() == process.pid
        with pytest.raises(CliError, match="already serves this log dir"), file.held():
            pass
        assert int(file.path.read_text()) == process.pid
    finally:
        end(process)


def test_a_folder_that_cannot_be_written_is_told_and_no_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    with PidFile(tmp_path / "file" / "data.pid").held():
        pass
    assert "kafka-server-stop.sh will not find this broker" in capsys.readouterr().err
