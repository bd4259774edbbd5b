"""Measures how soon a record can be read at the destination once the source has acknowledged it.

Every record carries a number and must arrive once and in its turn, or the measurement fails.
"""

import argparse
import asyncio
import gc
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import uvloop
from bench.freshness_peers import PEERS, place_of
from bench.freshness_stream import Place, Stream, open_stream
from bench.report import print_heading, print_table
from bench.sources import payloads

from support.kafka_install import KAFKA_4
from support.kafka_node import KafkaNode
from support.numbered_batches import NumberedBatches

COLUMNS = ("peer", "load", "MB/s", "records", "p50 ms", "p99 ms", "max ms")
_WARM_UP_PER_S = 1000.0
_SLOWEST = 8


@dataclass(frozen=True, slots=True)
class Phase:
    """What a stretch of the stream showed; a delay and its moment are in seconds."""

    load: str
    mb_per_s: float
    delays: list[tuple[float, float]]
    at_source: list[tuple[float, float]]
    """The same, of the same records, for a reader at the source; empty unless asked for."""

    def row(self, peer: str) -> tuple[object, ...]:
        """Give the line of the table."""
        return (peer, self.load, f"{self.mb_per_s:.1f}", len(self.delays), *_told(self.delays))

    def tell_more(self) -> None:
        """Print what helps to find out where the time goes."""
        if self.at_source:
            print("    read at the source: ", *_told(self.at_source))
            between = [
                (there[0] - here[0], there[1])
                for there, here in zip(self.delays, self.at_source, strict=True)
            ]
            print("    from there:         ", *_told(between))
            slowest = sorted(between, reverse=True)[:_SLOWEST]
            print("    slowest:", *(f"{delay * 1e3:.1f} ms at {at:.1f} s" for delay, at in slowest))


def main(arguments: Sequence[str] | None = None) -> None:
    """Send the same stream through each peer, one peer at a time."""
    options = _options(arguments)
    folder = Path(tempfile.mkdtemp(prefix="twinlog-bench-", dir=options.folder))
    source = KafkaNode(folder / "source", version=KAFKA_4)
    try:
        source.start()
        print_heading("Mirror freshness")
        rows = [row for name in options.peers for row in _measure(name, source, options, folder)]
        print()
        print_table(COLUMNS, rows)
    finally:
        source.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _measure(
    name: str, source: KafkaNode, options: argparse.Namespace, folder: Path
) -> list[tuple[object, ...]]:
    topic = f"fresh-{name}"
    source.create_topic(topic, partitions=options.partitions)
    origin = place_of(source, topic, options.partitions)
    with PEERS[name](source, topic, options.partitions, folder / name) as destination:
        gc.collect()
        gc.disable()  # the pauses of this program are nobody's delay
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                phases = runner.run(_phases(origin, destination, options))
        finally:
            gc.enable()
    shutil.rmtree(folder / name, ignore_errors=True)
    rows = [phase.row(name) for phase in phases]
    for phase, row in zip(phases, rows, strict=True):
        print("  ".join(str(cell) for cell in row), flush=True)
        phase.tell_more()
    return rows


async def _phases(origin: Place, destination: Place, options: argparse.Namespace) -> list[Phase]:
    one, many = NumberedBatches(payloads(1)), NumberedBatches(payloads(options.batch_records))
    places = (destination, origin) if options.diagnose else (destination,)
    phases = []
    async with open_stream(origin, *places) as stream:
        await stream.pace(one, per_s=10.0, for_s=1.0)  # whoever is still starting has time to
        await stream.pace(one, per_s=_WARM_UP_PER_S, for_s=options.warm_up_s)
        first = stream.counts
        took_s = await stream.pace(one, per_s=options.rate, for_s=options.low_s)
        mb_per_s = _sent_after(stream, first) * one.batch_bytes / 1e6 / took_s
        phases.append(_phase(stream, first, f"{options.rate:g}/s", mb_per_s))
        if options.high_s:
            rate = options.mb_per_s * 1e6 or await stream.rush(many, for_s=options.rush_s) / 2
            first = stream.counts
            per_s = rate / many.batch_bytes
            took_s = await stream.pace(many, per_s=per_s, for_s=options.high_s)
            sent_bytes = _sent_after(stream, first) / many.record_count * many.batch_bytes
            load = f"{options.mb_per_s:g} MB/s" if options.mb_per_s else "half of full"
            phases.append(_phase(stream, first, load, sent_bytes / 1e6 / took_s))
    return phases


def _sent_after(stream: Stream, first: Sequence[int]) -> int:
    """Count the records that were sent after those."""
    return sum(stream.counts) - sum(first)


def _phase(stream: Stream, first: Sequence[int], load: str, mb_per_s: float) -> Phase:
    begin_ns = min(
        times[start]
        for times, start in zip(stream.acknowledged_ns, first, strict=True)
        if start < len(times)
    )
    delays = [
        [
            ((received - acknowledged) / 1e9, (acknowledged - begin_ns) / 1e9)
            for ours, theirs, start in zip(
                receiver.received_ns, stream.acknowledged_ns, first, strict=True
            )
            for received, acknowledged in zip(ours[start:], theirs[start:], strict=True)
        ]
        for receiver in stream.receivers
    ]
    return Phase(load, mb_per_s, delays[0], delays[1] if len(delays) > 1 else [])


def _told(delays: Sequence[tuple[float, float]]) -> tuple[str, str, str]:
    ms = sorted(delay * 1e3 for delay, _ in delays)
    found = ms[len(ms) // 2], ms[int(len(ms) * 0.99)], ms[-1]
    return f"{found[0]:.2f}", f"{found[1]:.2f}", f"{found[2]:.2f}"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench mirror_freshness", description=__doc__)
    parser.add_argument("--peers", type=_peers, default=list(PEERS), help=", ".join(PEERS))
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--rate", type=float, default=100, help="records/s, one a request")
    parser.add_argument("--low-s", type=float, default=25, help="how long at that rate")
    parser.add_argument("--rush-s", type=float, default=3, help="how long as fast as it goes")
    parser.add_argument("--high-s", type=float, default=6, help="how long at half of that; 0: not")
    parser.add_argument("--mb-per-s", type=float, default=0, help="this instead of that half")
    parser.add_argument("--batch-records", type=int, default=64, help="of 1 KB, at half speed")
    parser.add_argument("--warm-up-s", type=float, default=4, help="1000 records/s before it all")
    parser.add_argument("--diagnose", action="store_true", help="read at the source beside it")
    parser.add_argument("--folder", default=None, help="where the data lies; a temporary folder")
    return parser.parse_args(arguments)


def _peers(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no peer {unknown[0]}; there are: {', '.join(PEERS)}")
    return names
