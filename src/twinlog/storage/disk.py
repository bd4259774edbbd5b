"""The few file operations that storage uses; every failure is a DiskError that names the file."""

# This is the port to the disk; paths are plain strings, since there are very many of them.
# ruff: noqa: PTH105, PTH108, PTH106, PTH103, PTH116, PTH208

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from twinlog.model.errors import DiskError
from twinlog.wire.primitives import Buffer

COPY_BYTES: Final = 1 << 20


class OpenFile:
    """An open descriptor that is closed when the last holder lets go of it.

    A region on its way to a socket holds one, so a file may be deleted, or pushed out of the cache
    of open files, while it is being sent.
    """

    __slots__ = ("_descriptor", "path")

    def __init__(self, descriptor: int, path: str) -> None:
        self._descriptor = descriptor
        self.path = path

    def fileno(self) -> int:
        """Give the descriptor."""
        return self._descriptor

    def __del__(self) -> None:
        os.close(self._descriptor)


@contextmanager
def _naming(operation: str, path: str) -> Iterator[None]:
    """Turn an operating system's error into a DiskError that says what failed and where."""
    try:
        yield
    except OSError as error:
        raise DiskError(f"cannot {operation} {path}: {error.strerror}") from error


class Disk:
    """The real disk. A test may subclass it to let an operation fail."""

    __slots__ = ()

    def open(self, path: str) -> OpenFile:
        """Open a file for reading and writing; it is made when it is missing."""
        with _naming("open", path):
            return OpenFile(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644), path)

    def open_folder(self, path: str) -> OpenFile:
        """Open a folder, to lock or flush it."""
        with _naming("open", path):
            return OpenFile(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), path)

    def read(self, file: OpenFile, length: int, position: int) -> bytes:
        """Read up to ``length`` bytes; fewer only at the end of the file."""
        try:
            return os.pread(file.fileno(), length, position)
        except OSError as error:
            raise DiskError(f"cannot read {file.path}: {error.strerror}") from error

    def write(self, file: OpenFile, content: Buffer, position: int) -> None:
        """Write all of ``content``; after a failure any part of it may be there."""
        try:
            written = os.pwrite(file.fileno(), content, position)
            if written == len(content):
                return
            rest = memoryview(content)
            while written < len(content):
                written += os.pwrite(file.fileno(), rest[written:], position + written)
        except OSError as error:
            raise DiskError(f"cannot write {file.path}: {error.strerror}") from error

    def copy(
        self, file: OpenFile, position: int, length: int, to: OpenFile, to_position: int
    ) -> None:
        """Copy all of ``length`` bytes into another file, piece by piece.

        Raises DiskError also when the source has fewer.
        """
        done = 0
        while done < length:
            some = min(COPY_BYTES, length - done)
            content = self.read(file, some, position + done)
            if len(content) < some:
                raise DiskError(f"cannot copy {file.path}: it has no {length} bytes at {position}")
            self.write(to, content, to_position + done)
            done += some

    def truncate(self, file: OpenFile, size_bytes: int) -> None:
        """Cut a file to ``size_bytes``."""
        with _naming("truncate", file.path):
            os.ftruncate(file.fileno(), size_bytes)

    def sync(self, file: OpenFile) -> None:
        """Wait until what was written has reached the disk."""
        with _naming("flush", file.path):
            os.fsync(file.fileno())

    def size_bytes(self, path: str) -> int:
        """Give a file's size; 0 when it is missing."""
        try:
            return os.stat(path).st_size
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise DiskError(f"cannot look at {path}: {error.strerror}") from error

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder of that name."""
        return os.path.lexists(path)

    def modified_ms(self, path: str) -> int:
        """Give when a file was last written."""
        with _naming("look at", path):
            return os.stat(path).st_mtime_ns // 1_000_000

    def read_whole(self, path: str) -> bytes | None:
        """Read a small file; None when it is missing."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DiskError(f"cannot open {path}: {error.strerror}") from error
        with _naming("read", path):
            try:
                return os.read(descriptor, os.fstat(descriptor).st_size)
            finally:
                os.close(descriptor)

    def replace(self, path: str, content: bytes, *, is_synced: bool) -> None:
        """Give a file new content such that a reader finds the old or the new, never a part."""
        scratch = path + ".tmp"
        file = self.open(scratch)
        self.truncate(file, 0)
        self.write(file, content, 0)
        if is_synced:
            self.sync(file)
        self.rename(scratch, path)
        if is_synced:
            self.sync_folder(path.rpartition("/")[0])

    def rename(self, path: str, to: str) -> None:
        """Give a file or folder another name; one that has that name is replaced."""
        with _naming("rename", path):
            os.replace(path, to)

    def remove(self, path: str) -> None:
        """Remove a file; that it is missing already is no error."""
        with _naming("remove", path):
            try:
                os.unlink(path)
            except FileNotFoundError:
                return

    def remove_folder(self, path: str) -> None:
        """Remove a folder of files; that it is missing already is no error."""
        with _naming("remove", path):
            try:
                names = os.listdir(path)
            except FileNotFoundError:
                return
            for name in names:
                os.unlink(f"{path}/{name}")
            os.rmdir(path)

    def make_folder(self, path: str) -> None:
        """Make a folder and those above it; that it is there already is no error."""
        with _naming("make", path):
            os.makedirs(path, exist_ok=True)

    def names_in(self, folder: str) -> list[str]:
        """List the names in a folder, sorted; none when it is missing."""
        with _naming("list", folder):
            try:
                return sorted(os.listdir(folder))
            except FileNotFoundError:
                return []

    def sync_folder(self, path: str) -> None:
        """Wait until the names in a folder have reached the disk."""
        self.sync(self.open_folder(path))
