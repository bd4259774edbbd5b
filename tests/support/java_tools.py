"""Runs Kafka's own tools: its log dumper as a judge of files, its console and perf clients."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from support.jvm import ToolError, ToolRun, run_tool
from support.kafka_install import KAFKA_2_1, KAFKA_4

# Kafka 2.1 has its tools still in Scala packages, and names its options otherwise.
_MAIN_CLASSES: Final = {
    KAFKA_2_1: {
        "ConsoleProducer": "kafka.tools.ConsoleProducer",
        "ConsoleConsumer": "kafka.tools.ConsoleConsumer",
        "ConsumerPerformance": "kafka.tools.ConsumerPerformance",
    },
}
_NEWER_CLASSES: Final = {
    "ConsoleConsumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "ReassignPartitionsCommand": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "ConsumerGroupCommand": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
}
# All that the dumper says about files it likes; it ends well whatever it finds, so every other
# line is a complaint.
_CONTENT: Final = re.compile(
    r"Dumping /|Log starting offset: \d+$|baseOffset: .* isvalid: true$|\| offset: \d+ |"
    r"offset: \d+ position: \d+$|timestamp: -?\d+ offset: \d+$|.* passed sanity check\.$|"
    r"producerId: \d+ producerEpoch: |Non-consecutive offsets in |version: 0 producerId: \d+ |$"
)
# Gaps are no fault: a cleaner leaves them, and the dumper finds one at the begin of each segment
# ("-1 is followed by 300"). Only offsets that go back, or repeat, are.
_GAP: Final = re.compile(r"\s*(-?\d+) is followed by (\d+)$")
_INDEX_KINDS: Final = (".index", ".timeindex")
# All names are one argument of a command, which may have 128 KiB.
_FILES_AT_ONCE: Final = 400


def main_class(version: str, tool: str) -> str:
    """Give the class that is that tool in that release."""
    known = _MAIN_CLASSES.get(version, {})
    return known.get(tool) or _NEWER_CLASSES.get(tool) or f"org.apache.kafka.tools.{tool}"


def check_partition_folders(folders: Iterable[Path]) -> str:
    """Let Kafka read all segments, indexes and snapshots of stopped or idle partitions.

    Gives what it printed of every batch and record; raises ToolError if it complains. It is always
    the newest Kafka that judges: 2.1's dumper finds fault with 2.1's own time indexes.
    """
    of_kind: dict[str, list[Path]] = {kind: [] for kind in (".log", *_INDEX_KINDS, ".snapshot")}
    for folder in folders:
        assert any(folder.glob("*.log")), f"{folder} holds no segment"
        for path in sorted(folder.iterdir()):
            if path.suffix in of_kind and path.stat().st_size > 0:
                of_kind[path.suffix].append(path)
    dump = dump_files(of_kind[".log"], "--deep-iteration")
    indexes = [path for kind in _INDEX_KINDS for path in of_kind[kind]]
    dump_files(indexes, "--index-sanity-check")
    dump_files(indexes, "--verify-index-only")
    dump_files(of_kind[".snapshot"])
    return dump


def dump_files(files: Sequence[Path], *options: str) -> str:
    """Run DumpLogSegments and give what it printed; raise ToolError if that is not all praise."""
    tool = main_class(KAFKA_4, "DumpLogSegments")
    printed: list[str] = []
    for first in range(0, len(files), _FILES_AT_ONCE):
        names = ",".join(str(path) for path in files[first : first + _FILES_AT_ONCE])
        run = run_tool(KAFKA_4, tool, "--files", names, *options, timeout_s=300)
        complaints = complaints_in(run.stdout) + complaints_in(run.stderr)
        if complaints:
            raise ToolError("DumpLogSegments complains:\n" + "\n".join(complaints[:20]))
        printed.append(run.stdout)
    return "".join(printed)


def complaints_in(printed: str) -> list[str]:
    """Pick the lines in which DumpLogSegments finds fault, with the file each is about."""
    found: list[str] = []
    file = ""
    for line in printed.splitlines():
        if line.startswith(("Dumping /", "Non-consecutive offsets in /")):
            file = line[line.index("/") :]
        gap = _GAP.match(line)
        is_fine = int(gap[1]) < int(gap[2]) if gap else _CONTENT.match(line)
        if not is_fine:
            found.append(f"{file}: {line}")
    return found


def console_produce(
    bootstrap: str, topic: str, lines: Sequence[str], *options: str, version: str = KAFKA_4
) -> None:
    """Produce lines with the console producer; raise ToolError if it reports an error."""
    where = "--broker-list" if version == KAFKA_2_1 else "--bootstrap-server"
    text = "".join(f"{line}\n" for line in lines)
    tool = main_class(version, "ConsoleProducer")
    run = run_tool(version, tool, where, bootstrap, "--topic", topic, *options, stdin=text)
    if "ERROR" in run.stderr:
        raise ToolError(f"the console producer reports an error:\n{run.stderr[-4000:]}")


def console_consume(
    bootstrap: str,
    topic: str,
    *options: str,
    count: int,
    version: str = KAFKA_4,
    timeout_s: float = 120.0,
) -> list[str]:
    """Consume that many records with the console consumer and give its lines."""
    tool = main_class(version, "ConsoleConsumer")
    limits = ("--max-messages", str(count), "--timeout-ms", str(int(timeout_s * 1000)))
    arguments = ("--bootstrap-server", bootstrap, "--topic", topic, *limits, *options)
    run = run_tool(version, tool, *arguments, timeout_s=timeout_s + 120)
    return run.stdout.splitlines()


@dataclass(frozen=True, slots=True)
class Load:
    """What the perf producer writes: so many records, of one size or drawn from a file's lines."""

    record_count: int
    records: int | Path
    producer_properties: dict[str, str] = field(default_factory=dict)
    records_per_s: int = -1


def perf_produce(bootstrap: str, topic: str, load: Load, *, version: str = KAFKA_4) -> ToolRun:
    """Produce with Kafka's ProducerPerformance, as fast as it goes."""
    properties = {"bootstrap.servers": bootstrap, **load.producer_properties}
    is_file = isinstance(load.records, Path)
    return run_tool(
        version,
        main_class(version, "ProducerPerformance"),
        *("--topic", topic),
        *("--num-records", str(load.record_count)),
        *("--payload-file" if is_file else "--record-size", str(load.records)),
        *("--throughput", str(load.records_per_s)),
        "--producer-props",
        *(f"{key}={value}" for key, value in properties.items()),
        timeout_s=900,
        is_heavy=True,
    )


def perf_consume(
    bootstrap: str, topic: str, record_count: int, *, version: str = KAFKA_4
) -> ToolRun:
    """Consume with Kafka's ConsumerPerformance, as fast as it goes."""
    count = "--messages" if version == KAFKA_2_1 else "--num-records"
    where = "--broker-list" if version == KAFKA_2_1 else "--bootstrap-server"
    return run_tool(
        version,
        main_class(version, "ConsumerPerformance"),
        *(where, bootstrap, "--topic", topic, count, str(record_count)),
        timeout_s=900,
        is_heavy=True,
    )
