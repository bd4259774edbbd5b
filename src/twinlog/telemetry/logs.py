"""One logging set-up: text for people, JSON for machines.

A log line is a fixed phrase; what varies is in it or beside it as fields (``extra``).
"""

import json
import logging
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final, TextIO

_OF_EVERY_RECORD: Final = frozenset(
    vars(logging.LogRecord("", 0, "", 0, "", (), None)) | {"message": 0, "asctime": 0}
)
_MARK: Final = "_is_of_twinlog"


class LogForm(Enum):
    """How a log line is written."""

    TEXT = "text"
    JSON = "json"


def set_up_logging(stream: TextIO, *, level: int | str = logging.INFO, form: LogForm) -> None:
    """Write everything from ``level`` on to ``stream``; a second call replaces the first."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if form is LogForm.JSON else TextLines())
    handler.setLevel(level)  # a logger that also has a file of its own may let more through
    setattr(handler, _MARK, True)
    root = logging.getLogger()
    for old in [h for h in root.handlers if getattr(h, _MARK, False)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level)
    # A line that cannot be written (the disk is full, the terminal is gone) stops nothing.
    logging.raiseExceptions = False


class TextLines(logging.Formatter):
    """``2026-01-31 12:00:00,123 INFO twinlog.broker.server: phrase (field=value, ...)``."""

    def format(self, record: logging.LogRecord) -> str:
        """Give one line, and the stack below it if there is one."""
        phrase = record.getMessage()
        fields = ", ".join(f"{name}={value}" for name, value in _fields(record).items())
        moment = datetime.fromtimestamp(record.created).astimezone()
        time = f"{moment:%Y-%m-%d %H:%M:%S},{moment.microsecond // 1000:03}"
        line = f"{time} {record.levelname} {record.name}: {phrase}"
        line += f" ({fields})" if fields else ""
        line = line.replace("\r", "\\r").replace("\n", "\\n")  # a client may have sent it
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonLines(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message, the fields, and the stack."""

    def format(self, record: logging.LogRecord) -> str:
        """Give one line."""
        moment = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["stack"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    """Give what was passed as ``extra``."""
    return {name: value for name, value in vars(record).items() if name not in _OF_EVERY_RECORD}
