"""``kafka-console-consumer.sh``: prints records."""

import argparse
import asyncio
import sys
import time
from dataclasses import dataclass
from typing import BinaryIO, Final

from twinlog.cli.cluster import Cluster, add_cluster_flags, cluster_of
from twinlog.cli.failures import EXIT_OK, CliError, UsageError
from twinlog.cli.offsets import commit_offsets, committed_offsets
from twinlog.cli.reading import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Read,
    TopicReader,
    list_offsets,
)
from twinlog.config.read import read_overrides
from twinlog.model.errors import SettingsError

FIELDS: Final = ("timestamp", "partition", "offset", "headers", "key", "value")
ISOLATION: Final = {
    "read_uncommitted": READ_UNCOMMITTED,
    "read_committed": READ_COMMITTED,
}


def parser(prog: str) -> argparse.ArgumentParser:
    """Give the parser of the command's flags."""
    made = argparse.ArgumentParser(
        prog=prog,
        description="Print records.",
        epilog="--group goes on where the group stood and commits what was printed; it does not "
        "join the group, so the group must have no members.",
    )
    add_cluster_flags(made)
    made.add_argument("--topic", required=True, metavar="NAME")
    made.add_argument("--from-beginning", action="store_true")
    made.add_argument("--partition", type=int, metavar="N", help="only this one")
    made.add_argument(
        "--offset", metavar="N", help="earliest, latest or a number; with --partition"
    )
    made.add_argument("--group", metavar="ID", help="go on where this group stood")
    made.add_argument("--max-messages", type=int, metavar="N", help="end after so many")
    made.add_argument("--timeout-ms", type=int, metavar="MS", help="end when nothing comes so long")
    made.add_argument("--isolation-level", choices=sorted(ISOLATION), default="read_uncommitted")
    made.add_argument(
        "--property",
        "--formatter-property",
        dest="property",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="print.key, .value, .offset, .partition, .timestamp, .headers=true; key.separator",
    )
    return made


def run(options: argparse.Namespace) -> int:
    """Print until there is reason to end."""
    if options.offset is not None and options.partition is None:
        raise UsageError("--offset needs --partition N")
    if options.offset not in (None, "earliest", "latest") and not options.offset.isdigit():
        raise UsageError(f"--offset {options.offset} is not earliest, latest or a number")
    try:
        layout = Layout.of(dict(read_overrides(options.property)))
    except SettingsError as error:
        raise UsageError(str(error)) from error
    return asyncio.run(_run(options, layout))


@dataclass(frozen=True, slots=True)
class Layout:
    """Which parts of a record are printed, with what between them."""

    parts: tuple[str, ...]
    separator: bytes
    null: bytes

    @staticmethod
    def of(given: dict[str, str]) -> "Layout":
        """Read ``print.*`` properties; UsageError for one that is not known."""
        separator = given.pop("key.separator", "\t")
        null = given.pop("null.literal", "null")
        shown = {"print.value": "true", **given}
        unknown = sorted(set(shown) - {f"print.{part}" for part in FIELDS})
        if unknown:
            known = ", ".join(f"print.{part}" for part in FIELDS)
            raise UsageError(f"no property {unknown[0]}; there are {known}, key.separator")
        parts = tuple(f for f in FIELDS if shown.get(f"print.{f}", "false").lower() == "true")
        return Layout(parts, separator.encode(), null.encode())

    def line(self, read: Read) -> bytes:
        """Give a record as a line."""
        return self.separator.join(self._part(part, read) for part in self.parts) + b"\n"

    def _part(self, part: str, read: Read) -> bytes:
        record = read.record
        match part:
            case "timestamp":
                return b"CreateTime:%d" % record.timestamp
            case "partition":
                return b"Partition:%d" % read.partition
            case "offset":
                return b"Offset:%d" % record.offset
            case "headers":
                pairs = [
                    k.encode() + b":" + (self.null if v is None else v) for k, v in record.headers
                ]
                return b",".join(pairs) if pairs else b"NO_HEADERS"
            case "key":
                return self.null if record.key is None else record.key
            case _:
                return self.null if record.value is None else record.value


async def _run(options: argparse.Namespace, layout: Layout) -> int:
    async with cluster_of(options) as cluster:
        positions = await _positions(cluster, options)
        isolation = ISOLATION[options.isolation_level]
        reader = TopicReader(cluster, options.topic, positions, isolation=isolation)
        printer = _Printer(layout, options.max_messages, sys.stdout.buffer)
        try:
            await _print_all(reader, printer, options.timeout_ms)
        finally:
            sys.stdout.buffer.flush()
            if options.group:
                offsets = {(options.topic, p): offset for p, offset in positions.items()}
                offsets |= {(options.topic, p): n for p, n in printer.cut_short.items()}
                await commit_offsets(cluster, options.group, offsets)
            print(f"Processed a total of {printer.count} messages", file=sys.stderr)
    return EXIT_OK


class _Printer:
    """Prints records until there are enough, and remembers where it stopped short."""

    def __init__(self, layout: Layout, count_max: int | None, out: BinaryIO) -> None:
        self._layout = layout
        self._count_max = count_max
        self._out = out
        self.count = 0
        self.cut_short: dict[int, int] = {}

    @property
    def is_done(self) -> bool:
        return self._count_max is not None and self.count >= self._count_max

    def print(self, reads: list[Read]) -> None:
        for read in reads:
            if self.is_done:
                self.cut_short.setdefault(read.partition, read.record.offset)
                continue
            self._out.write(self._layout.line(read))
            self.count += 1
        self._out.flush()


async def _print_all(reader: TopicReader, printer: _Printer, timeout_ms: int | None) -> None:
    last = time.monotonic()  # noqa: TID251 - a person waits for records
    while not printer.is_done:
        reads = await reader.read_some()
        printer.print(reads)
        now = time.monotonic()  # noqa: TID251
        if reads:
            last = now
        elif timeout_ms is not None and (now - last) * 1_000 >= timeout_ms:
            return


async def _positions(cluster: Cluster, options: argparse.Namespace) -> dict[int, int]:
    """Give the offset at which each partition begins to be printed."""
    topic = await cluster.topic(options.topic)
    partitions = sorted(p.partition_index for p in topic.partitions)
    if options.partition is not None:
        if options.partition not in partitions:
            raise CliError(f"topic {options.topic} has no partition {options.partition}")
        partitions = [options.partition]
    if options.offset is not None and options.offset.isdigit():
        return {options.partition: int(options.offset)}
    is_from_start = options.from_beginning or options.offset == "earliest"
    time_ms = EARLIEST if is_from_start else LATEST
    found = await list_offsets(cluster, options.topic, dict.fromkeys(partitions, time_ms))
    if options.group:
        committed = await committed_offsets(cluster, options.group)
        for partition in partitions:
            found[partition] = committed.get((options.topic, partition), found[partition])
    return found
