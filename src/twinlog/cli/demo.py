"""The main job from end to end with two brokers of our own, each step as a user would type it."""

import argparse
import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from twinlog.cli.failures import EXIT_OK, CliError

TOPIC: Final = "orders"
GROUP: Final = "billing"
MIRROR: Final = "a-to-b"
PARTITION_COUNT: Final = 3
READY_TIMEOUT_S: Final = 60.0
CAUGHT_UP_TIMEOUT_S: Final = 120.0
COMMAND_TIMEOUT_S: Final = 120.0
BIN: Final = Path(__file__).parents[3] / "bin"


def parser(prog: str) -> argparse.ArgumentParser:
    """Give the parser of the command's flags."""
    made = argparse.ArgumentParser(prog=prog, description=__doc__)
    made.add_argument(
        "--folder", default="demo-data", metavar="DIR", help="where the two brokers keep their data"
    )
    made.add_argument(
        "--records", type=int, default=100_000, metavar="N", help="how many to mirror"
    )
    return made


def run(options: argparse.Namespace) -> int:
    """Run the demonstration; give the exit code."""
    folder = Path(options.folder)
    if folder.exists():
        if not (folder / "orders.txt").exists() and any(folder.iterdir()):
            raise CliError(f"{folder} is not empty and not of an earlier demo: name another folder")
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    Demo(folder, max(options.records, 4)).run()
    return EXIT_OK


class Demo:
    """Two clusters of one broker each; A is the source, B mirrors it."""

    def __init__(self, folder: Path, record_count: int) -> None:
        self._folder: Final = folder
        self._record_count: Final = record_count
        self._consumed_count: Final = record_count // 4
        self._source: Final = f"127.0.0.1:{_free_port(19092)}"
        self._destination: Final = f"127.0.0.1:{_free_port(29092)}"

    def run(self) -> None:
        """Mirror, lose the source, go on."""
        self._write_files()
        with self._broker("b", self._destination):
            with self._broker("a", self._source):
                self._fill_source()
                self._mirror()
                _say("The source dies, without a warning.")
            self._fail_over()
        _say(
            "Done. The copy is byte for byte what the source had, and the group went on where it\n"
            "stood. To point this at your own cluster, see README.md."
        )

    def _write_files(self) -> None:
        for name, address in (("a", self._source), ("b", self._destination)):
            (self._folder / f"{name}.properties").write_text(
                f"node.id=1\nlisteners=PLAINTEXT://{address}\nlog.dirs={self._folder / name}\n"
                "group.initial.rebalance.delay.ms=0\n"
            )
        (self._folder / "mirror.properties").write_text(
            f"bootstrap.servers={self._source}\ngroups.sync.interval.ms=1000\n"
            # Small answers, so that there is a lag to see; leave it out to mirror at full speed.
            "fetch.response.max.bytes=16384\n"
        )
        with (self._folder / "orders.txt").open("w") as lines:
            for number in range(self._record_count):
                note = random.randbytes(200).hex()
                lines.write(f'{number}:{{"order": {number}, "note": "{note}"}}\n')

    def _fill_source(self) -> None:
        at = ("--bootstrap-server", self._source)
        _say("A topic at the source (cluster A), and records in it, compressed with lz4.")
        self._do(
            "kafka-topics.sh",
            *at,
            "--create",
            "--topic",
            TOPIC,
            "--partitions",
            str(PARTITION_COUNT),
        )
        self._do(
            "kafka-console-producer.sh",
            *at,
            "--topic",
            TOPIC,
            "--compression-codec",
            "lz4",
            "--property",
            "parse.key=true",
            "--property",
            "key.separator=:",
            feed=self._folder / "orders.txt",
        )
        _say(f"A consumer group reads {self._consumed_count} of them at the source, and commits.")
        self._do(
            "kafka-console-consumer.sh",
            *at,
            "--topic",
            TOPIC,
            "--group",
            GROUP,
            "--from-beginning",
            "--max-messages",
            str(self._consumed_count),
            show_lines=2,
        )

    def _mirror(self) -> None:
        at = ("--bootstrap-server", self._destination)
        mirror = (*at, "--mirror", MIRROR)
        _say("The mirror, at the destination (cluster B). The source needs no change.")
        config = str(self._folder / "mirror.properties")
        self._do("kafka-cluster-mirrors.sh", *mirror, "--create", "--mirror-config", config)
        self._do("kafka-cluster-mirrors.sh", *mirror, "--start", "--topics", TOPIC)
        _say("The lag falls; MIRRORING with lag 0 means that B has all that A has.")
        self._watch_lag(mirror)
        _say("A mirror topic is read-only.")
        self._do(
            "kafka-console-producer.sh", *at, "--topic", TOPIC, text="not yet\n", may_fail=True
        )
        _say("The group's offsets follow, too.")
        self._wait_for_group(at)

    def _watch_lag(self, mirror: tuple[str, ...]) -> None:
        deadline = time.monotonic_ns() + int(CAUGHT_UP_TIMEOUT_S * 1e9)
        while True:
            shown = self._do("kafka-cluster-mirrors.sh", *mirror, "--describe")
            rows = [line.split() for line in shown.splitlines()[1:] if line.strip()]
            lags = [row[5] for row in rows if row[6:] == ["MIRRORING"]]
            if len(lags) == PARTITION_COUNT and all(lag == "0" for lag in lags):
                return
            if time.monotonic_ns() > deadline:
                raise CliError(f"the mirror did not catch up in {CAUGHT_UP_TIMEOUT_S:g} s")

    def _wait_for_group(self, at: tuple[str, ...]) -> None:
        deadline = time.monotonic_ns() + int(CAUGHT_UP_TIMEOUT_S * 1e9)
        while True:
            shown = self._do(
                "kafka-consumer-groups.sh", *at, "--describe", "--group", GROUP, may_fail=True
            )
            offsets = [row.split()[3] for row in shown.splitlines() if f" {TOPIC} " in row]
            if sum(int(offset) for offset in offsets if offset.isdigit()) == self._consumed_count:
                return
            if time.monotonic_ns() > deadline:
                raise CliError(f"the offsets of {GROUP} did not arrive")
            time.sleep(1)

    def _fail_over(self) -> None:
        at = ("--bootstrap-server", self._destination)
        _say("Fail over: stop the mirror. Nothing is needed from the dead source.")
        self._do("kafka-cluster-mirrors.sh", *at, "--mirror", MIRROR, "--stop", "--topics", TOPIC)
        self._await_stopped(at)
        _say("The logs of both clusters, compared byte for byte (to the end of the source's).")
        self._compare_logs()
        _say("Clients go on at the destination: a producer writes, the group reads the rest.")
        self._do("kafka-console-producer.sh", *at, "--topic", TOPIC, text="after the failover\n")
        rest = self._record_count - self._consumed_count + 1
        shown = self._do(
            "kafka-console-consumer.sh",
            *at,
            "--topic",
            TOPIC,
            "--group",
            GROUP,
            "--max-messages",
            str(rest),
            "--timeout-ms",
            "15000",
            show_lines=2,
        )
        count = len(shown.splitlines())
        if count != rest:
            raise CliError(f"the group read {count} records after the failover, not {rest}")
        print(f"The group read {count} records: all it had not read before, and the new one.")

    def _await_stopped(self, at: tuple[str, ...]) -> None:
        for _ in range(50):
            shown = self._do("kafka-cluster-mirrors.sh", *at, "--mirror", MIRROR, "--describe")
            if shown.count("STOPPED") == PARTITION_COUNT:
                return
            time.sleep(0.2)
        raise CliError("the mirror did not stop")

    def _compare_logs(self) -> None:
        for partition in range(PARTITION_COUNT):
            name = f"{TOPIC}-{partition}/{0:020}.log"
            source, copy = self._folder / "a" / name, self._folder / "b" / name
            size = source.stat().st_size
            print(f"$ cmp -n {size} {source} {copy}")
            if source.read_bytes() != copy.read_bytes()[:size]:
                raise CliError(f"{source} and {copy} differ")
            print(f"{size} bytes are equal")

    @contextmanager
    def _broker(self, name: str, address: str) -> Iterator[None]:
        settings = self._folder / f"{name}.properties"
        _say(f"Cluster {name.upper()} starts.")
        print(f"$ bin/kafka-server-start.sh {settings} &")
        with (self._folder / f"{name}.out").open("wb") as out:
            process = subprocess.Popen(
                [str(BIN / "kafka-server-start.sh"), str(settings)], stdout=out, stderr=out
            )
            try:
                _wait_for_port(address, process, self._folder / f"{name}.out")
                yield
            finally:
                process.kill()
                process.wait()

    def _do(
        self,
        script: str,
        *flags: str,
        feed: Path | None = None,
        text: str | None = None,
        show_lines: int | None = None,
        may_fail: bool = False,
    ) -> str:
        """Print a command, run it, print what it prints; give that."""
        typed = " ".join((f"$ bin/{script}", *flags))
        if feed is not None:
            typed += f" < {feed}"
        if text is not None:
            typed = typed.replace("$ ", f"$ echo '{text.strip()}' | ")
        print(typed, flush=True)
        given = feed.read_text() if feed is not None else text
        done = subprocess.run(
            [str(BIN / script), *flags],
            input=given if given is not None else "",
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_TIMEOUT_S,
        )
        lines = (done.stdout + done.stderr).splitlines()
        shown = lines if show_lines is None else lines[:show_lines]
        for line in shown:
            print(line)
        if len(lines) > len(shown):
            print(f"... {len(lines) - len(shown)} more lines")
        if done.returncode != 0 and not may_fail:
            raise CliError(f"{script} failed (exit code {done.returncode})")
        return done.stdout


def _say(what: str) -> None:
    print(f"\n# {what}", flush=True)


def _free_port(wanted: int) -> int:
    """Give ``wanted`` if nobody has it, else a port of the system's choice."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            found: int = probe.getsockname()[1]
            return found
    raise CliError("no port is free on 127.0.0.1")


def _wait_for_port(address: str, process: "subprocess.Popen[bytes]", out: Path) -> None:
    host, _, port = address.partition(":")
    deadline = time.monotonic_ns() + int(READY_TIMEOUT_S * 1e9)
    while time.monotonic_ns() < deadline:
        if process.poll() is not None:
            raise CliError(f"the broker did not start:\n{out.read_text()}")
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    sys.stdout.flush()
    raise CliError(f"the broker did not listen on {address} in {READY_TIMEOUT_S:g} s; see {out}")
