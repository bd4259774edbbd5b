"""Runs the commands of docs/mirroring.md as they stand there, and compares what the page shows."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.waiting import wait_until

ROOT: Final = Path(__file__).parents[2]
_IN_BACKTICKS: Final = re.compile(r"`([^`]+)`")
_BETWEEN_LITERALS: Final = re.compile(r"\"\s*\n\s*f?\"")
_HEADING: Final = re.compile(r"#{2,4} (.*)")
_FENCE: Final = re.compile(r"( *)```(\w*)")
_BLOCK_TIMEOUT_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class Block:
    """Commands of one fence, and the lines that the page shows behind it."""

    heading: str
    commands: str
    shown: tuple[str, ...] = ()


def blocks_of(page: Path) -> list[Block]:
    """Give all that is to be typed, in the page's order."""
    found: list[Block] = []
    is_adjacent = False
    for heading, language, text in _fences(page):
        if language == "sh":
            found.append(Block(heading, text))
        elif language == "text" and is_adjacent:
            found[-1] = Block(heading, found[-1].commands, tuple(text.splitlines()))
        is_adjacent = language == "sh"
    return found


def headings_with_commands(page: Path) -> set[str]:
    """Name the chapters in which something is to be typed."""
    return {block.heading for block in blocks_of(page)}


def errors_of_the_table(page: Path) -> list[str]:
    """Give the words of errors that the page quotes where it says what to do about them."""
    rows = page.read_text().partition("| what is shown |")[2].partition("\n\n")[0].splitlines()
    return [words for row in rows[2:] for words in _IN_BACKTICKS.findall(row.split("|")[1])]


def is_told_by_the_product(words: str) -> bool:
    """Whether some text in the sources has these words, also across lines."""
    files = (ROOT / "src").rglob("*.py")
    return any(words in _BETWEEN_LITERALS.sub("", file.read_text()) for file in files)


def _fences(page: Path) -> Iterator[tuple[str, str, str]]:
    """Give heading, language and text of each fence; a language of "" for prose in between."""
    heading = ""
    lines = iter(page.read_text().splitlines())
    for line in lines:
        if match := _HEADING.match(line):
            heading = match[1]
        if fence := _FENCE.match(line):
            body = iter(lines.__next__, f"{fence[1]}```")
            yield heading, fence[2], "".join(f"{each[len(fence[1]) :]}\n" for each in body)
        elif line.strip():
            yield heading, "", line


class Reader:
    """Types what a page says, in a folder of its own, with this machine's ports for its hosts."""

    def __init__(self, page: Path, folder: Path, hosts: Mapping[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._blocks = blocks_of(page)
        self._variables = "".join(b.commands for b in self._blocks if not b.heading)
        self._hosts = dict(hosts)
        self._sessions: list[int] = []
        (folder / "bin").symlink_to(ROOT / "bin")

    def read(self, *headings: str) -> None:
        """Run all commands below these headings, one chapter after the other."""
        for heading in headings:
            blocks = [block for block in self._blocks if block.heading == heading]
            assert blocks, f"the page has no commands below {heading!r}"
            for block in blocks:
                self._run(block)

    def read_all(self, *, last: Sequence[str]) -> None:
        """Run everything in the page's order, but some chapters at the end."""
        headings = dict.fromkeys(block.heading for block in self._blocks)
        self.read(*(each for each in headings if each not in last), *last)

    def read_one(self, heading: str, number: int) -> None:
        """Run one fence below a heading, counted from 0."""
        self._run([block for block in self._blocks if block.heading == heading][number])

    def await_group(self, host: str, group: str) -> None:
        """Return when that group's offsets have come."""
        at = f"bin/kafka-consumer-groups.sh --bootstrap-server {host}"
        command = self._with_ports(f"{at} --describe --group {group}")
        wait_until(
            lambda: "orders" in self._shell(command).stdout,
            f"the offsets of {group} are at {host}",
        )

    def close(self) -> None:
        """End what was started in the background and not ended by the page."""
        for session in self._sessions:
            try:
                os.killpg(session, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def _run(self, block: Block) -> None:
        commands = self._with_ports(f"{self._variables}{block.commands}")
        ran = self._shell(commands)
        printed = f"{ran.stdout}\n{ran.stderr}"
        said = f"below {block.heading!r}:\n{commands}\n{printed}"
        assert ran.returncode == 0, f"exit code {ran.returncode} {said}"
        lines = [" ".join(line.split()) for line in printed.splitlines()]
        for shown in map(self._with_ports, block.shown):
            pattern = _pattern_of(shown)
            assert any(pattern.search(line) for line in lines), f"no line {shown!r} {said}"

    def _with_ports(self, text: str) -> str:
        for name, address in self._hosts.items():
            text = text.replace(name, address)
        return text

    def _shell(self, commands: str) -> subprocess.CompletedProcess[str]:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        shell = subprocess.Popen(
            ["bash", "-e", "-o", "pipefail", "-c", commands],
            cwd=self.folder,
            env={**os.environ, "PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._sessions.append(shell.pid)
        stdout, stderr = shell.communicate(timeout=_BLOCK_TIMEOUT_S)
        return subprocess.CompletedProcess(commands, shell.returncode, stdout, stderr)


def _pattern_of(shown: str) -> re.Pattern[str]:
    """Give what a shown line stands for: spaces are any number of them, ... is anything."""
    parts = (re.escape(" ".join(part.split())) for part in shown.split("..."))
    return re.compile(" ?.* ?".join(parts))
