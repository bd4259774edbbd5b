"""A bounded number of open files for any number of logs: the least recently used is let go."""

from collections import OrderedDict
from errno import EMFILE, ENFILE
from typing import Final

from twinlog.model.errors import DiskError
from twinlog.storage.disk import Disk, OpenFile

OPEN_FILES_MAX: Final = 500  # half of what a process may have where nobody raised the limit


class OpenFiles:
    """The open files of all logs that share it, by path."""

    __slots__ = ("_files", "_files_max", "disk")

    def __init__(self, disk: Disk, files_max: int = OPEN_FILES_MAX) -> None:
        self.disk = disk
        self._files: OrderedDict[str, OpenFile] = OrderedDict()
        self._files_max = files_max

    def __len__(self) -> int:
        """Give the number of files held open."""
        return len(self._files)

    def get(self, path: str) -> OpenFile:
        """Give the open file of that path; it is opened, or made, when need be."""
        file = self._files.get(path)
        if file is not None:
            self._files.move_to_end(path)
            return file
        file = self._files[path] = self._open(path)
        if len(self._files) > self._files_max:
            self._files.popitem(last=False)
        return file

    def forget(self, path: str) -> None:
        """Let go of a file that has been, or will be, renamed or removed."""
        self._files.pop(path, None)

    def _open(self, path: str) -> OpenFile:
        """Open a file; when the process has no descriptor left, give up all that are only kept."""
        try:
            return self.disk.open(path)
        except DiskError as error:
            if getattr(error.__cause__, "errno", None) not in (EMFILE, ENFILE):
                raise
        self._files.clear()
        return self.disk.open(path)
