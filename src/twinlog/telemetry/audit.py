"""The logger of what must be told later: who asked for what, and every change of state.

Its lines go to the ordinary log like all others; and to a file of their own, as JSON, if one is
named. That file is rotated by size and bounded; one that cannot be written stops nothing, and the
ordinary log says so.
"""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

from twinlog.telemetry.logs import JsonLines

STATE_CHANGE: Final = "twinlog.state-change"
FILE_BYTES_MAX: Final = 16 << 20
OLD_FILES_MAX: Final = 9
"""Beside the one that is written: ``.1`` is the newest."""


log = logging.getLogger(__name__)


def state_change_logger() -> logging.Logger:
    """Give the logger."""
    return logging.getLogger(STATE_CHANGE)


@contextmanager
def written_to(
    path: Path | None, *, bytes_max: int = FILE_BYTES_MAX, old_files_max: int = OLD_FILES_MAX
) -> Iterator[None]:
    """Write the lines to a file, too, if one is named, however few the ordinary log is to have.

    Raises OSError if it cannot be opened.
    """
    if path is None:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handler = _File(path, maxBytes=bytes_max, backupCount=old_files_max, encoding="utf-8")
    handler.setFormatter(JsonLines())
    logger = state_change_logger()
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        with suppress(OSError):  # what could not be written before; that was told
            handler.close()


class _File(RotatingFileHandler):
    """Tells when it cannot be written, once until it can be again."""

    _is_failing = False
    _has_failed = False

    def emit(self, record: logging.LogRecord) -> None:
        self._has_failed = False
        super().emit(record)
        if self._is_failing and not self._has_failed:
            self._is_failing = False
            log.warning("the audit is written again", extra={"file": self.baseFilename})

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        self._has_failed = True
        if not self._is_failing:
            self._is_failing = True
            fields = {"file": self.baseFilename, "why": str(sys.exc_info()[1])}
            log.error("the audit cannot be written, this log has it alone", extra=fields)
