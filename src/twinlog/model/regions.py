"""A span of a file that can be sent to a socket without being read into memory."""

from dataclasses import dataclass
from typing import Protocol


class HasFileno(Protocol):
    """An open file; it stays open for as long as somebody holds it."""

    def fileno(self) -> int:
        """Give the descriptor of the open file."""
        ...


@dataclass(frozen=True, slots=True)
class FileRegion:
    """``length`` bytes of ``file`` from byte ``position`` on; both are in bytes.

    Whoever holds the region keeps the file open: a segment deleted meanwhile can still be sent.
    """

    file: HasFileno
    position: int
    length: int

    def __len__(self) -> int:
        """Give the number of bytes."""
        return self.length
