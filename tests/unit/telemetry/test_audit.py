"""What is told for later goes to the ordinary log, and to a bounded file if one is named."""

import io
import json
import logging
from pathlib import Path

import pytest

from twinlog.telemetry.audit import state_change_logger, written_to
from twinlog.telemetry.logs import LogForm, set_up_logging


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


def test_the_file_has_all_lines_also_where_the_ordinary_log_has_warnings_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, stream, file = logging.getLogger(), io.StringIO(), tmp_path / "audit.log"
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)
    monkeypatch.setattr(logging, "raiseExceptions", logging.raiseExceptions)
    set_up_logging(stream, level=logging.WARNING, form=LogForm.TEXT)
    with written_to(file):
        state_change_logger().info("mirror was asked")
        state_change_logger().warning("mirrored records lost")
    told = [json.loads(line)["message"] for line in file.read_text().splitlines()]
    assert told == ["mirror was asked", "mirrored records lost"]
    assert stream.getvalue().count("\n") == 1
    assert "mirrored records lost" in stream.getvalue()


def test_a_full_disk_is_told_once_and_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), written_to(Path("/dev/full")):
        for _ in range(3):
            state_change_logger().info("mirror was asked")
    told = [record for record in caplog.records if record.name != "twinlog.state-change"]
    assert [record.message for record in told] == [
        "the audit cannot be written, this log has it alone"
    ]
    assert "No space left on device" in vars(told[0])["why"]
    assert len(caplog.records) == 4


def test_a_disk_that_has_room_again_is_told_and_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "audit" / "audit.log"
    with caplog.at_level(logging.WARNING), written_to(file, bytes_max=1):
        logger = state_change_logger()
        logger.info("first")
        file.parent.rename(tmp_path / "away")
        logger.info("lost")
        file.parent.mkdir()
        logger.info("again")
    assert [record.message for record in caplog.records] == [
        "the audit cannot be written, this log has it alone",
        "the audit is written again",
    ]
    assert "again" in file.read_text()
