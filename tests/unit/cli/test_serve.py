"""Starting a broker: what is wrong with its file is told before anything is opened."""

from pathlib import Path

import pytest

from support.commands import run_command
from twinlog.cli.serve import pid_file_of, settings_of
from twinlog.config.broker import NUM_PARTITIONS


def test_a_missing_file_says_which_to_name(tmp_path: Path) -> None:
    ran = run_command(["serve", str(tmp_path / "no.properties")])
    assert ran.code == 1
    assert "no.properties does not exist: name a properties file, such as" in ran.err


@pytest.mark.parametrize(
    ("text", "overrides", "message"),
    [
        ("\nnum.partitions=many\n", [], "p line 2: num.partitions=many cannot be: it must be"),
        ("num.partitons=1\n", [], "p line 1: no broker setting is called num.partitons; did you"),
        ("", ["--override", "x"], "'x' is not key=value"),
        ("listeners=SSL://:9093\n", [], "only PLAINTEXT is spoken"),
    ],
    ids=str,
)
def test_a_wrong_setting_names_line_key_and_fix(
    tmp_path: Path, text: str, overrides: list[str], message: str
) -> None:
    file = tmp_path / "p"
    file.write_text(text)
    ran = run_command(["serve", str(file), *overrides])
    assert ran.code == 1
    assert message in ran.err
    assert "Traceback" not in ran.err


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "p"
    file.write_bytes(b"num.partitions=1 \xff")
    assert "is not UTF-8 (byte 17)" in run_command(["serve", str(file)]).err


def test_overrides_win_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "p"
    file.write_text("num.partitions=2\n")
    assert settings_of(file, ["num.partitions=9"])[NUM_PARTITIONS] == 9


def test_the_pid_file_lies_beside_the_first_log_dir(tmp_path: Path) -> None:
    file = tmp_path / "p"
    file.write_text(f"log.dirs={tmp_path}/one,{tmp_path}/two\n")
    assert pid_file_of(settings_of(file, [])).path == tmp_path / "one.pid"


def test_an_audit_that_cannot_be_written_is_told_before_anything_is_served(tmp_path: Path) -> None:
    file = tmp_path / "p"
    file.write_text(f"log.dirs={tmp_path}/one\nmirror.audit.log={tmp_path}\n")
    ran = run_command(["serve", str(file)])
    assert ran.code == 1
    assert f"mirror.audit.log={tmp_path} cannot be written: Is a directory; name a file" in ran.err


def test_a_file_needs_to_be_named() -> None:
    assert run_command(["serve"]).code == 2
