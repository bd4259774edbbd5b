"""Measures big batches in and out: Kafka's own perf clients against twinlog and against Kafka."""

import argparse
import re
from collections.abc import Sequence

from bench.brokers import NAMES, broker_names, running_broker
from bench.processes import Meter, Use
from bench.report import print_heading, print_table
from bench.sources import RECORD_BYTES, payload_file

from support.cluster_admin import create_topic
from support.java_tools import Load, perf_consume, perf_produce

TOPIC = "load"
# The column of ConsumerPerformance's line that leaves out joining the group.
_FETCH_MB_PER_S = 8
COLUMNS = (
    "broker",
    "direction",
    "codec",
    "GB of records",
    "MB/s",
    "broker CPU-s per GB",
    "peak MB",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Produce, then consume the same, at each broker and with each codec."""
    options = _options(arguments)
    print_heading("Produce and consume in big batches")
    rows = [
        row
        for codec in options.codecs.split(",")
        for name in options.brokers
        for row in _measure(name, codec, options)
    ]
    print_table(COLUMNS, rows)


def _measure(name: str, codec: str, options: argparse.Namespace) -> list[Sequence[object]]:
    count = int(options.gb * 1e9 / RECORD_BYTES)
    properties = {
        "acks": "all",
        "compression.type": codec,
        "batch.size": "65536",
        "linger.ms": "20",
    }
    with running_broker(name) as broker:
        # What a just-in-time compiler learns from the first data is no part of the figure.
        warm_count = int(options.warm_gb * 1e9 / RECORD_BYTES)
        create_topic(broker, "warm-up", partitions=options.partitions)
        perf_produce(broker.bootstrap, "warm-up", Load(warm_count, payload_file(), properties))
        perf_consume(broker.bootstrap, "warm-up", warm_count)
        create_topic(broker, TOPIC, partitions=options.partitions)
        meter = Meter([broker.server.pid])
        said = perf_produce(broker.bootstrap, TOPIC, Load(count, payload_file(), properties)).stdout
        produced = meter.read(count * RECORD_BYTES)
        # The tools' own clocks, which leave out how long a JVM takes to start.
        produced_mb_per_s = _mebibytes(re.findall(r"\(([\d.]+) MB/sec\)", said)[-1])
        meter = Meter([broker.server.pid])
        said = perf_consume(broker.bootstrap, TOPIC, count).stdout
        consumed = meter.read(count * RECORD_BYTES)
        consumed_mb_per_s = _mebibytes(said.splitlines()[-1].split(", ")[_FETCH_MB_PER_S])
    return [
        _row(name, "produce", codec, produced, produced_mb_per_s),
        _row(name, "consume", codec, consumed, consumed_mb_per_s),
    ]


def _mebibytes(text: str) -> float:
    """The tools count in 2^20 bytes; give 10^6 bytes."""
    return float(text) * (1 << 20) / 1e6


def _row(name: str, direction: str, codec: str, use: Use, mb_per_s: float) -> Sequence[object]:
    return (
        name,
        direction,
        codec,
        f"{use.payload_bytes / 1e9:.2f}",
        f"{mb_per_s:.0f}",
        f"{use.cpu_s_per_gb:.2f}",
        f"{use.peak_bytes / 1e6:.0f}",
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench produce_consume", description=__doc__)
    parser.add_argument("--gb", type=float, default=1.0)
    parser.add_argument("--warm-gb", type=float, default=0.5, help="before anything is measured")
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--codecs", default="lz4,none")
    parser.add_argument("--brokers", type=broker_names, default=NAMES)
    return parser.parse_args(arguments)
