"""Measures one record a request: 100 bytes, one connection, five requests in flight, acks=1."""

import argparse
import re
from collections.abc import Sequence

from bench.brokers import NAMES, broker_names, running_broker
from bench.processes import Meter
from bench.report import print_heading, print_table

from support.cluster_admin import create_topic
from support.java_tools import Load, perf_produce

TOPIC = "small"
RECORD_BYTES = 100
COLUMNS = ("broker", "records", "records/s", "records per CPU-s", "at", "median ms", "p99 ms")
# What the tool says last: how many records a second, then latencies and their percentiles.
_RATE = re.compile(r"records sent, ([\d.]+) records/sec")
_PERCENTILE = r"([\d.]+) ms {}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Send the same requests to each broker."""
    options = _options(arguments)
    print_heading("Small requests")
    print_table(COLUMNS, [_measure(name, options) for name in options.brokers])


def _measure(name: str, options: argparse.Namespace) -> Sequence[object]:
    count = options.records
    # Batches of one byte at most: every record is a request of its own.
    properties = {"acks": "1", "batch.size": "1", "linger.ms": "0"}
    with running_broker(name) as broker:
        create_topic(broker, TOPIC)
        # The first requests teach a just-in-time compiler; they are no part of the figure.
        perf_produce(broker.bootstrap, TOPIC, Load(count // 5, RECORD_BYTES, properties))
        meter = Meter([broker.server.pid])
        said = perf_produce(broker.bootstrap, TOPIC, Load(count, RECORD_BYTES, properties)).stdout
        use = meter.read(count * RECORD_BYTES)
        # As fast as it goes, a record's latency is its time in the client's queue; so once more,
        # at a rate that leaves the broker room.
        calm = Load(
            options.rate * options.calm_s, RECORD_BYTES, properties, records_per_s=options.rate
        )
        at_ease = perf_produce(broker.bootstrap, TOPIC, calm).stdout.splitlines()[-1]
    return (
        name,
        count,
        f"{float(_found(_RATE.pattern, said.splitlines()[-1])):.0f}",
        f"{count / use.cpu_s:.0f}",
        f"{options.rate}/s",
        _found(_PERCENTILE.format("50th"), at_ease),
        _found(_PERCENTILE.format("99th"), at_ease),
    )


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    assert match, f"{pattern!r} is not in {text!r}"
    return match[1]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench small_requests", description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--rate", type=int, default=1000, help="records/s while latency is taken")
    parser.add_argument("--calm-s", type=int, default=10, help="how long latency is taken")
    parser.add_argument("--brokers", type=broker_names, default=NAMES)
    return parser.parse_args(arguments)
