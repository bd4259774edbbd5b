"""Where ``--reset-offsets`` puts a group: flags, and the offsets they come to."""

import argparse
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from twinlog.cli.cluster import Cluster
from twinlog.cli.failures import CliError, UsageError
from twinlog.cli.offsets import Offsets, committed_offsets
from twinlog.cli.reading import EARLIEST, LATEST, list_offsets

TARGETS: Final = (
    "to_earliest",
    "to_latest",
    "to_current",
    "to_offset",
    "shift_by",
    "to_datetime",
)


@dataclass(frozen=True, slots=True)
class NewOffset:
    """Where a group will go on."""

    group: str
    topic: str
    partition: int
    offset: int


def add_reset_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of --reset-offsets."""
    parser.add_argument(
        "--topic",
        action="append",
        default=[],
        metavar="NAME[:0,1]",
        help="a topic, or some of its partitions; may come again",
    )
    parser.add_argument(
        "--all-topics", action="store_true", help="all that the group has offsets of"
    )
    parser.add_argument("--to-earliest", action="store_true")
    parser.add_argument("--to-latest", action="store_true")
    parser.add_argument("--to-current", action="store_true")
    parser.add_argument("--to-offset", type=int, metavar="N")
    parser.add_argument("--shift-by", type=int, metavar="N", help="negative goes back")
    parser.add_argument("--to-datetime", metavar="YYYY-MM-DDTHH:mm:SS.sss", help="UTC")
    parser.add_argument("--execute", action="store_true", help="do it, after --dry-run told what")
    parser.add_argument("--dry-run", action="store_true", help="only tell (the default)")


def check_reset_flags(options: argparse.Namespace) -> None:
    """Refuse a reset without one target or without topics, and targets without a reset."""
    given = [t for t in TARGETS if getattr(options, t) not in (None, False)]
    if options.action != "reset-offsets":
        if given or options.execute:
            flag = (given or ["execute"])[0].replace("_", "-")
            raise UsageError(f"--{flag} goes with --reset-offsets only")
        return
    if len(given) != 1:
        known = ", ".join(f"--{t.replace('_', '-')}" for t in TARGETS)
        raise UsageError(f"--reset-offsets needs one of {known}")
    if bool(options.topic) == options.all_topics:
        raise UsageError("--reset-offsets needs --topic NAME or --all-topics")
    if options.execute and options.dry_run:
        raise UsageError("--execute and --dry-run exclude each other")
    if options.to_datetime is not None:
        _time_ms(options.to_datetime)


async def new_offsets(cluster: Cluster, group: str, options: argparse.Namespace) -> list[NewOffset]:
    """Give the offsets that the flags come to, inside each log."""
    committed = await committed_offsets(cluster, group)
    found = []
    for topic, partitions in sorted((await _places(cluster, committed, options)).items()):
        earliest = await list_offsets(cluster, topic, dict.fromkeys(partitions, EARLIEST))
        latest = await list_offsets(cluster, topic, dict.fromkeys(partitions, LATEST))
        at_time = {}
        if options.to_datetime is not None:
            time_ms = _time_ms(options.to_datetime)
            at_time = await list_offsets(cluster, topic, dict.fromkeys(partitions, time_ms))
        for partition in partitions:
            span = _Span(
                earliest[partition],
                latest[partition],
                committed.get((topic, partition)),
                at_time.get(partition, -1),
            )
            found.append(NewOffset(group, topic, partition, span.target(options)))
    return found


@dataclass(frozen=True, slots=True)
class _Span:
    """What is known of one partition; ``committed`` is None without an offset."""

    earliest: int
    latest: int
    committed: int | None
    at_time: int

    def target(self, options: argparse.Namespace) -> int:
        wanted = self._wanted(options)
        return min(max(wanted, self.earliest), self.latest)

    def _wanted(self, options: argparse.Namespace) -> int:
        if options.to_earliest:
            return self.earliest
        if options.to_offset is not None:
            return int(options.to_offset)
        if options.to_datetime is not None:
            return self.latest if self.at_time < 0 else self.at_time
        current = self.latest if self.committed is None else self.committed
        if options.shift_by is not None:
            return current + int(options.shift_by)
        return current if options.to_current else self.latest


async def _places(
    cluster: Cluster, committed: Offsets, options: argparse.Namespace
) -> dict[str, list[int]]:
    """Give the topics and partitions that the flags mean."""
    if options.all_topics:
        names = {topic for topic, _ in committed}
        return {name: sorted(p for topic, p in committed if topic == name) for name in names}
    places: dict[str, list[int]] = {}
    for text in options.topic:
        name, _, listed = text.partition(":")
        existing = [p.partition_index for p in (await cluster.topic(name)).partitions]
        wanted = _numbers(listed, text) if listed else sorted(existing)
        missing = set(wanted) - set(existing)
        if missing:
            raise CliError(f"topic {name} has no partition {min(missing)}")
        places[name] = wanted
    return places


def _numbers(listed: str, text: str) -> list[int]:
    try:
        return sorted({int(word) for word in listed.split(",")})
    except ValueError:
        raise UsageError(f"--topic {text} is not NAME or NAME:0,1,2") from None


def _time_ms(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--to-datetime {text} is not YYYY-MM-DDTHH:mm:SS.sss") from None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1_000)
