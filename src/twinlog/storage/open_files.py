"""A bounded number of open files for any number of logs: the least recently used is let go."""

from collections import OrderedDict
from typing import Final

from twinlog.storage.disk import Disk, OpenFile

OPEN_FILES_MAX: Final = 1_000


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
        file = self._files[path] = self.disk.open(path)
        if len(self._files) > self._files_max:
            self._files.popitem(last=False)
        return file

    def forget(self, path: str) -> None:
        """Let go of a file that has been, or will be, renamed or removed."""
        self._files.pop(path, None)
