"""What is told for later goes to the ordinary log, and to a bounded file if one is named."""

import json
import logging
from pathlib import Path

import pytest

from twinlog.telemetry.audit import state_change_logger, written_to


def test_lines_are_json_in_a_file_and_in_the_ordinary_log_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "new" / "audit.log"
    with caplog.at_level(logging.INFO), written_to(file):
        state_change_logger().info("mirror was asked", extra={"verb": "stop"})
    state_change_logger().info("after the end")
    (line,) = file.read_text().splitlines()
    told = json.loads(line)
    assert (told["message"], told["verb"], told["logger"]) == (
        "mirror was asked",
        "stop",
        "twinlog.state-change",
    )
    assert "mirror was asked" in caplog.text


def test_the_file_is_rotated_and_bounded(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    with written_to(file, bytes_max=300, old_files_max=2):
        for number in range(20):
            state_change_logger().warning("line %d", number)
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["audit.log", "audit.log.1", "audit.log.2"]
    assert all(path.stat().st_size <= 300 for path in tmp_path.iterdir())
    assert "line 19" in file.read_text()


def test_without_a_file_there_is_none_and_one_that_cannot_be_is_an_error(tmp_path: Path) -> None:
    with written_to(None):
        assert not any(tmp_path.iterdir())
    with pytest.raises(OSError, match="directory"), written_to(tmp_path):
        pass
