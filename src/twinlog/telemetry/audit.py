"""The logger of what must be told later: who asked for what, and every change of state.

Its lines go to the ordinary log like all others; and to a file of their own, as JSON, if one is
named. That file is rotated by size and bounded; one that cannot be written stops nothing.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

from twinlog.telemetry.logs import JsonLines

STATE_CHANGE: Final = "twinlog.state-change"
FILE_BYTES_MAX: Final = 16 << 20
OLD_FILES_MAX: Final = 9
"""Beside the one that is written: ``.1`` is the newest."""


def state_change_logger() -> logging.Logger:
    """Give the logger."""
    return logging.getLogger(STATE_CHANGE)


@contextmanager
def written_to(
    path: Path | None, *, bytes_max: int = FILE_BYTES_MAX, old_files_max: int = OLD_FILES_MAX
) -> Iterator[None]:
    """Write the lines to a file, too, if one is named. Raises OSError if it cannot be opened."""
    if path is None:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handler = RotatingFileHandler(
        path, maxBytes=bytes_max, backupCount=old_files_max, encoding="utf-8"
    )
    handler.setFormatter(JsonLines())
    logger = state_change_logger()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()
