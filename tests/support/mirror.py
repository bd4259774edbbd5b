"""Drives one mirror of a twinlog broker from its command line, and waits until it has caught up."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from confluent_kafka import KafkaException

from support.cluster_admin import Broker, offsets_of
from support.log_bytes import Comparison, assert_equal_logs
from support.source_data import flush, producer_of
from support.twinlog_process import TwinlogProcess
from support.waiting import wait_until

_COMMAND_TIMEOUT_S = 180.0
_SOURCE = Path(__file__).parents[2] / "src"

Partition = tuple[str, int]


class LogOwner(Broker, Protocol):
    """A broker whose files can be looked at."""

    def partition_folder(self, topic: str, partition: int) -> Path:
        """Where it keeps that partition's segments."""


@dataclass(frozen=True, slots=True)
class CommandRun:
    """How a command of twinlog ended."""

    exit_code: int
    stdout: str
    stderr: str


def twinlog_command(*arguments: str, timeout_s: float = _COMMAND_TIMEOUT_S) -> CommandRun:
    """Run `twinlog ...` as a user would, to its end."""
    run = subprocess.run(
        twinlog_argv(*arguments), capture_output=True, text=True, timeout=timeout_s, check=False
    )
    return CommandRun(run.returncode, run.stdout, run.stderr)


def twinlog_argv(*arguments: str) -> list[str]:
    """Give the command line of `twinlog ...` in this checkout."""
    path = f"import sys; sys.path.insert(0, {str(_SOURCE)!r}); "
    return [
        sys.executable,
        "-c",
        f"{path}from twinlog.cli.main import main; sys.exit(main())",
        *arguments,
    ]


class Mirror:
    """One mirror at one twinlog broker, by its name."""

    def __init__(self, twinlog: TwinlogProcess, source: LogOwner, name: str = "source") -> None:
        self.twinlog = twinlog
        self.source = source
        self.name = name

    def create(self, **settings: str) -> None:
        """Create it; keywords are mirror settings with `_` for `.`, what the source is known."""
        every = {"bootstrap.servers": self.source.bootstrap}
        every |= {key.replace("_", "."): value for key, value in settings.items()}
        file = self.twinlog.folder / f"mirror-{self.name}.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in every.items()))
        self.run("--create", "--mirror", self.name, "--mirror-config", str(file))

    def start(self, topics: Iterable[str]) -> None:
        """Begin to mirror those topics (names or patterns)."""
        self.run("--start", "--mirror", self.name, "--topics", ",".join(topics))

    def stop(self, topics: Iterable[str]) -> None:
        """Ask for the fail-over of those topics."""
        self.run("--stop", "--mirror", self.name, "--topics", ",".join(topics))

    def describe(self) -> list[dict[str, object]]:
        """Give the state of every partition, as the command's JSON tells it."""
        told = json.loads(self.run("--describe", "--mirror", self.name, "--json").stdout)
        assert isinstance(told, list)
        return told

    def states(self) -> dict[Partition, str]:
        """Give the state of every partition by topic and number."""
        return {
            (str(row["topic"]), int(str(row["partition"]))): str(row["state"])
            for row in self.describe()
        }

    def run(self, *arguments: str) -> CommandRun:
        """Run the mirrors command against this broker; fail with its words unless it succeeds."""
        where = ("mirrors", "--bootstrap-server", self.twinlog.bootstrap)
        done = twinlog_command(*where, *arguments)
        assert done.exit_code == 0, f"{' '.join(arguments)}: {done.stderr or done.stdout}"
        return done

    def await_caught_up(self, partitions: Sequence[Partition], *, timeout_s: float = 120.0) -> None:
        """Return when start and end of each partition are the source's own."""
        behind = list(partitions)

        def nothing_is_behind() -> bool:
            behind[:] = [of for of in behind if self.lag_of(of)]
            return not behind

        wait_until(
            nothing_is_behind,
            lambda: "; ".join(self.lag_of(of) or f"{of} now" for of in behind[:10]),
            timeout_s=timeout_s,
        )

    def await_more(self, partitions: Sequence[Partition], *, timeout_s: float = 120.0) -> None:
        """Return when more has arrived in each partition than there is now."""
        ends = {of: self._end_of(of) for of in partitions}
        wait_until(
            lambda: all(self._end_of(of) > end for of, end in ends.items()),
            lambda: f"more arrives than {ends}, now {[self._end_of(of) for of in partitions]}",
            timeout_s=timeout_s,
        )

    def _end_of(self, of: Partition) -> int:
        try:
            return offsets_of(self.twinlog, *of, timeout_s=2.0)[1]
        except KafkaException:
            return 0

    def lag_of(self, of: Partition) -> str | None:
        """Say how a partition's offsets differ from the source's, or None if they do not."""
        theirs = offsets_of(self.source, *of)
        try:
            ours = offsets_of(self.twinlog, *of, timeout_s=2.0)
        except KafkaException as error:
            return f"{of[0]}-{of[1]}: {error}"
        return None if ours == theirs else f"{of[0]}-{of[1]} is at {ours}, the source at {theirs}"

    def await_states(
        self, partitions: Iterable[Partition], state: str, *, timeout_s: float = 120.0
    ) -> None:
        """Return when those partitions are all in that state."""
        wanted = dict.fromkeys(partitions, state)

        def others() -> dict[Partition, str]:
            states = self.states()
            return {of: states.get(of, "none") for of in wanted if states.get(of) != state}

        wait_until(lambda: not others(), lambda: f"{state}: {others()}", timeout_s=timeout_s)

    def await_row(
        self, of: Partition, state: str, *words: str, **columns: object
    ) -> dict[str, object]:
        """Return what is told of a partition once one look finds it so, columns and all.

        A partition that failed is tried again: what was told of it a moment ago may have passed.
        ``words`` are in its error; columns are as in the command's JSON.
        """
        row: dict[str, object] = {}

        def is_so() -> bool:
            rows = {(each["topic"], each["partition"]): each for each in self.describe()}
            row.clear()
            row.update(rows.get(of, {}))
            wanted = {"state": state, **columns}
            is_told = all(word in str(row.get("errorMessage")) for word in words)
            return is_told and all(row.get(key) == value for key, value in wanted.items())

        wait_until(is_so, lambda: f"{of} is {state}, {words}, {columns}: {row}", timeout_s=120.0)
        return row

    def assert_equal(self, partitions: Iterable[Partition]) -> list[Comparison]:
        """Fail unless the batches of both brokers' files are the same, from start to end."""
        found = []
        for topic, partition in partitions:
            start, end = offsets_of(self.source, topic, partition)
            of = (topic, partition)
            theirs = self.source.partition_folder(*of)
            ours = self.twinlog.partition_folder(*of)
            found.append(assert_equal_logs(theirs, ours, start=start, end=end))
        return found


@contextmanager
def producing(source: Broker, topics: Sequence[str]) -> Iterator[list[int]]:
    """Produce a little to each topic, over and over, until the block ends; give the running count.

    Codecs change from burst to burst, so that batches of every kind arrive. Behind the block all
    is acknowledged, and nothing more comes.
    """
    produced = [0]
    stopping = threading.Event()
    codecs = ("none", "lz4", "zstd", "snappy", "gzip")
    producers = [producer_of(source, compression_type=codec, linger_ms=5) for codec in codecs]

    def run() -> None:
        while not stopping.wait(0.02):
            producer = producers[produced[0] % len(producers)]
            for topic in topics:
                for number in range(7):
                    producer.produce(topic, f"{produced[0]} {number}".encode() * 9)
            producer.flush(30)
            produced[0] += 1
        for producer in producers:
            flush(producer)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield produced
    finally:
        stopping.set()
        thread.join(timeout=180)
        assert not thread.is_alive(), "a producer to the source hangs"
