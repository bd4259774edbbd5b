"""Measures the time from launch to the first answered request, and the memory of an idle broker."""

import argparse
import statistics
import time
from collections.abc import Sequence

from bench.brokers import NAMES, BrokerProcess, broker_names, fresh_broker
from bench.processes import cpu_seconds, resident_bytes
from bench.report import print_heading, print_table

from support.twinlog_process import answers_api_versions

COLUMNS = ("broker", "first answer, s (empty)", "again, s (median)", "idle MB", "idle CPU, %")


def main(arguments: Sequence[str] | None = None) -> None:
    """Start each broker on an empty folder, then again and again on what it made there."""
    options = _options(arguments)
    print_heading("Start")
    print_table(COLUMNS, [_measure(name, options) for name in options.brokers])


def _measure(name: str, options: argparse.Namespace) -> Sequence[object]:
    with fresh_broker(name) as broker:
        if name == "kafka":
            # Formatting a folder is a command of its own there; twinlog does it as it starts.
            broker.start()
            broker.stop()
        first_s = _started_in(broker)
        pid = broker.server.pid
        time.sleep(options.idle_s)
        cpu_s = cpu_seconds(pid)
        time.sleep(options.idle_s)
        idle_percent = (cpu_seconds(pid) - cpu_s) / options.idle_s * 100
        idle_bytes = resident_bytes(pid)
        again_s = []
        for _ in range(options.rounds):
            broker.stop()
            again_s.append(_started_in(broker))
    return (
        name,
        f"{first_s:.2f}" if name != "kafka" else "-",
        f"{statistics.median(again_s):.2f}",
        f"{idle_bytes / 1e6:.0f}",
        f"{idle_percent:.1f}",
    )


def _started_in(broker: BrokerProcess) -> float:
    began = time.perf_counter()
    broker.server.start(lambda: answers_api_versions(broker.port))
    return time.perf_counter() - began


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench start", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--idle-s", type=float, default=5.0, help="rest before and while looking")
    parser.add_argument("--brokers", type=broker_names, default=NAMES)
    return parser.parse_args(arguments)
