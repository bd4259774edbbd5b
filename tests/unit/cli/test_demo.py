from pathlib import Path

import pytest

from twinlog.cli.main import main


@pytest.mark.slow
def test_the_demo_mirrors_fails_over_and_goes_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    exit_code = main(["demo", "--folder", str(tmp_path / "demo"), "--records", "2000"])
    shown = capfd.readouterr()
    assert exit_code == 0, shown.out[-3000:] + shown.err[-3000:]
    assert "The group read 1501 records" in shown.out


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    assert main(["demo", "--folder", str(tmp_path)]) == 1
    assert (tmp_path / "precious").exists()
