"""Files that a command line names are UTF-8, and the one that is not is named."""

from pathlib import Path

import pytest

from support.answering_broker import AnsweringBroker
from support.commands import run_command
from twinlog.cli.failures import CliError
from twinlog.cli.text_files import text_of


def test_a_file_that_is_not_utf_8_is_named_with_the_place(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_bytes("client.id=café".encode())
    assert text_of(file) == "client.id=café"
    file.write_bytes(b"client.id=caf\xe9")
    with pytest.raises(CliError, match=r"client\.properties is not UTF-8 \(byte 13\)"):
        text_of(file)


def test_commands_tell_it_in_one_line(broker: AnsweringBroker, tmp_path: Path) -> None:
    file = tmp_path / "some.properties"
    file.write_bytes(b"client.id=caf\xe9")
    at = ["--bootstrap-server", broker.bootstrap]
    for command in (
        ["topics", *at, "--list", "--command-config", str(file)],
        ["mirrors", *at, "--create", "--mirror", "m", "--mirror-config", str(file)],
        ["serve", str(file)],
    ):
        ran = run_command(command)
        assert ran.code == 1
        assert f"{file} is not UTF-8 (byte 13): save it as UTF-8" in ran.err
        assert ran.err.count("\n") == 1
