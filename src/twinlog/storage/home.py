"""What all logs of a broker share."""

from collections.abc import Callable
from dataclasses import dataclass

from twinlog.storage.open_files import OpenFiles
from twinlog.storage.trash import Trash


def _do_nothing() -> None:
    """Stand in where nobody keeps checkpoints."""


@dataclass(slots=True)
class LogHome:
    """The open files, the trash, and the way to have the checkpoints written."""

    files: OpenFiles
    trash: Trash
    save_points: Callable[[], None] = _do_nothing
    """Writes start and recovery point of every log, before a log is cut below what was written."""
