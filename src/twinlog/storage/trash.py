"""Files and folders that were given up: renamed at once, removed a while later."""

from typing import Final

from twinlog.storage.folders import DELETED_SUFFIX
from twinlog.storage.open_files import OpenFiles

_UNDATED: Final = -1


class Trash:
    """What waits for its removal, which may take long and can be done on another thread."""

    __slots__ = ("_files", "_waiting")

    def __init__(self, files: OpenFiles) -> None:
        self._files = files
        self._waiting: dict[str, int] = {}

    def __len__(self) -> int:
        """Give the number of files and folders that wait."""
        return len(self._waiting)

    def add(self, path: str) -> None:
        """Give up a file; it need not be there."""
        self._files.forget(path)
        if self._files.disk.exists(path):
            self._files.disk.rename(path, path + DELETED_SUFFIX)
            self._waiting[path + DELETED_SUFFIX] = _UNDATED

    def add_folder(self, path: str) -> None:
        """Give up a folder that was renamed already."""
        self._waiting[path] = _UNDATED

    def take_due(self, now_ms: int, delay_ms: int) -> list[str]:
        """Take out what has waited long enough; the wait begins with the first call after it came.

        The caller removes the paths with ``empty``.
        """
        due = []
        for path, since_ms in list(self._waiting.items()):
            if since_ms == _UNDATED:
                self._waiting[path] = now_ms
            if now_ms - self._waiting[path] >= delay_ms:
                due.append(path)
                del self._waiting[path]
        return due

    def put_back(self, paths: list[str]) -> None:
        """Take in again what was taken out and may still be there; its wait begins anew."""
        self._waiting.update(dict.fromkeys(paths, _UNDATED))

    def empty(self, paths: list[str]) -> None:
        """Remove files and folders; what is gone already is no error. Raises DiskError."""
        for path in paths:
            if path.endswith(DELETED_SUFFIX):
                self._files.disk.remove(path)
            else:
                self._files.disk.remove_folder(path)
