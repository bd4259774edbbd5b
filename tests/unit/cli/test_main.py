"""One entry point: commands, exit codes, and no traceback ever."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.answering_broker import AnsweringBroker
from support.commands import run_command
from twinlog.cli.main import COMMANDS
from twinlog.wire.messages.topics import CREATE_TOPICS

BIN = Path(__file__).parents[3] / "bin"


def test_help_lists_every_command() -> None:
    ran = run_command(["--help"])
    assert ran.code == 0
    for name in COMMANDS:
        assert f"  {name}" in ran.out


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help(name: str) -> None:
    ran = run_command([name, "--help"])
    assert ran.code == 0
    assert ran.out.startswith(f"usage: twinlog {name}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "twinlog: a command is missing"),
        (["topic"], "twinlog: there is no command topic; did you mean topics?"),
        (["xyz"], "twinlog: there is no command xyz\n"),
        (["topics"], "the following arguments are required: --bootstrap-server"),
        (["topics", "--bootstrap-server", "h:1", "--nonsense", "--list"], "--nonsense"),
        (["topics", "--bootstrap-server", "h", "--list"], '--bootstrap-server: "h" has no port'),
    ],
    ids=str,
)
def test_a_command_line_that_makes_no_sense_is_code_2(arguments: list[str], message: str) -> None:
    ran = run_command(arguments)
    assert ran.code == 2
    assert message in ran.err
    assert ran.out == ""


def test_a_broker_that_cannot_be_reached_is_told_in_one_line() -> None:
    ran = run_command(["topics", "--bootstrap-server", "127.0.0.1:1", "--list"])
    assert ran.code == 1
    assert ran.err == (
        "twinlog topics: no broker can be reached at 127.0.0.1:1: cannot connect: "
        "Connection refused. Is it running, and is --bootstrap-server right?\n"
    )


def test_a_broker_that_lacks_a_request_is_told_in_one_line(broker: AnsweringBroker) -> None:
    arguments = ["topics", "--bootstrap-server", broker.bootstrap, "--create", "--topic", "a"]
    ran = run_command(arguments)
    assert ran.code == 1
    assert f"CREATE_TOPICS: {broker.bootstrap} does not know it" in ran.err
    assert CREATE_TOPICS.key.name in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.slow
def test_a_disk_that_fails_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    properties = tmp_path / "server.properties"
    folder = tmp_path / "file" / "data"
    properties.write_text(f"node.id=1\nlisteners=PLAINTEXT://127.0.0.1:0\nlog.dirs={folder}\n")
    ran = subprocess.run(
        [sys.executable, "-m", "twinlog.cli.main", "serve", properties],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(BIN.parent / "src")},
    )
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr
    assert str(folder) in ran.stderr


def test_a_file_that_is_missing_is_named() -> None:
    ran = run_command(["dump-log", "--files", "/nowhere/0.log"])
    assert (ran.code, ran.err) == (
        1,
        "twinlog dump-log: /nowhere/0.log: No such file or directory\n",
    )


@pytest.mark.slow
def test_only_the_command_that_runs_is_loaded() -> None:
    program = (
        "import sys; from twinlog.cli.main import main; main(['dump-log', '--help']);"
        "print(sorted(m for m in sys.modules if m in ('asyncio', 'ssl', 'sqlite3', 'zstandard')))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines()[-1] == "[]"


@pytest.mark.slow
@pytest.mark.parametrize("script", sorted(BIN.iterdir()), ids=lambda path: path.name)
def test_every_script_runs_from_any_folder(script: Path, tmp_path: Path) -> None:
    ran = subprocess.run(
        [script, "--help"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert ran.returncode == 0, ran.stderr
    assert "usage: twinlog" in ran.stdout
