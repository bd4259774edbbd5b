"""Transcripts: what a machine was told and what it did, in a text file beside its test.

A transcript is a list of steps with blank lines between them::

    # A comment tells why the step is there.
    0ms join a
    ----
      parked 1

Above ``----`` stand the commands, below what came of them. ``pytest --rewrite`` writes what really
came of them; the reviewer reads the difference.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SEPARATOR = "----"

Play = Callable[[str], Iterable[str]]
"""Takes one command; gives the lines that came of it."""


@dataclass(frozen=True)
class Step:
    """Some commands, and what was expected of them."""

    head: tuple[str, ...]
    expected: tuple[str, ...]

    @property
    def commands(self) -> tuple[str, ...]:
        """The lines that are no comments."""
        return tuple(line for line in self.head if not line.startswith("#"))


def steps_of(text: str) -> Iterator[Step]:
    """Give the steps of a transcript."""
    for block in text.strip().split("\n\n"):
        head, _, expected = block.partition(f"\n{SEPARATOR}")
        yield Step(tuple(head.splitlines()), tuple(expected.strip("\n").splitlines()))


def played(text: str, play: Play) -> str:
    """Give the transcript with what really comes of its commands."""
    blocks = []
    for step in steps_of(text):
        if not step.commands:
            blocks.append("\n".join(step.head))
            continue
        lines = [f"  {line}" for command in step.commands for line in play(command)]
        blocks.append("\n".join([*step.head, SEPARATOR, *lines]))
    return "\n\n".join(blocks) + "\n"


class Transcripts:
    """Plays transcripts and compares, or rewrites them."""

    def __init__(self, *, rewrite: bool) -> None:
        self._rewrite = rewrite

    def check(self, path: Path, play: Play) -> None:
        """Fail where what comes of the commands is not what the file says."""
        text = path.read_text()
        real = played(text, play)
        if self._rewrite:
            path.write_text(real)
            return
        assert real.splitlines() == text.splitlines(), f"{path.name}: see pytest --rewrite"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--rewrite``."""
    parser.addoption(
        "--rewrite", action="store_true", help="write transcripts as they really come out"
    )


@pytest.fixture
def transcripts(request: pytest.FixtureRequest) -> Transcripts:
    """Give what plays transcripts."""
    return Transcripts(rewrite=bool(request.config.getoption("--rewrite")))
