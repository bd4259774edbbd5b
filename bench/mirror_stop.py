"""Measures a stop of many mirrored partitions, until the last of them takes records."""

import argparse
import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.processes import cpu_seconds
from bench.report import print_heading, print_table

from support.mirror_fleet import Fleet, fleet

COLUMNS = ("from", "source", "partitions", "answered, s", "all writable, s", "CPU-s", "told, s")
STATES = ("MIRRORING", "PAUSED", "FAILED")
SOURCES = ("alive", "dead")
SETTINGS = {"mirror.metadata.refresh.interval.ms": "1000"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Stop a fresh fleet from each state, with the source alive and killed."""
    options = _options(arguments)
    print_heading("Stopping many partitions")
    rows = []
    for state in options.states:
        for source in options.sources:
            rows.append(asyncio.run(_measure(state, source, options)))
            print("  ".join(map(str, rows[-1])), flush=True)
    print()
    print_table(COLUMNS, rows)


async def _measure(state: str, source: str, options: argparse.Namespace) -> tuple[object, ...]:
    with TemporaryDirectory(prefix="twinlog-bench-") as folder:
        return await _stopped(Path(folder), state, source, options)


async def _stopped(
    folder: Path, state: str, source: str, options: argparse.Namespace
) -> tuple[object, ...]:
    async with fleet(folder, SETTINGS) as pair:
        await pair.fill(
            options.partitions, per_topic=options.per_topic, bytes_each=options.kb_each * 1000
        )
        await pair.mirror_everything()
        await pair.until_all("MIRRORING", has_no_lag=True)
        await _bring_to(state, pair)
        if source == "dead":
            pair.source.kill()
            await asyncio.sleep(options.dead_for_s)
        pid = pair.destination.server.pid
        cpu_s, began = cpu_seconds(pid), time.perf_counter()
        await pair.stop()
        answered_s = time.perf_counter() - began
        await pair.until_writable()
        writable_s, cpu_s = time.perf_counter() - began, cpu_seconds(pid) - cpu_s
        began = time.perf_counter()
        described = await pair.describe()
        told_s = time.perf_counter() - began
        states = {one.state_value for one in described.values()}
        assert states == {"STOPPED"}, states
    times = (f"{answered_s:.2f}", f"{writable_s:.2f}", f"{cpu_s:.2f}", f"{told_s:.3f}")
    return (state, source, options.partitions, *times)


async def _bring_to(state: str, pair: Fleet) -> None:
    if state == "PAUSED":
        await pair.pause()
    elif state == "FAILED":
        await pair.lose_topics()
    await pair.until_all(state)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench mirror_stop", description=__doc__)
    parser.add_argument("--partitions", type=int, default=1_000)
    parser.add_argument("--per-topic", type=int, default=10, help="partitions of a topic")
    parser.add_argument("--kb-each", type=int, default=2, help="kilobytes in each partition")
    parser.add_argument("--dead-for-s", type=float, default=2.0, help="from the kill to the stop")
    parser.add_argument("--states", type=_words(STATES), default=list(STATES))
    parser.add_argument("--sources", type=_words(SOURCES), default=list(SOURCES))
    return parser.parse_args(arguments)


def _words(known: Sequence[str]) -> Callable[[str], list[str]]:
    def read(text: str) -> list[str]:
        words = text.split(",")
        unknown = [word for word in words if word not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"no {unknown[0]}; there are: {', '.join(known)}")
        return words

    return read
