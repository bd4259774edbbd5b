"""Measures how a backlog is copied from a real Kafka, by twinlog and by its peers, in one run."""

import argparse
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.catchup_peers import PEERS
from bench.processes import Use
from bench.report import print_heading, print_table
from bench.sources import Shape, fill

from support.kafka_install import KAFKA_4
from support.kafka_node import KafkaNode

COLUMNS = ("peer", "data", "GB", "MB/s", "CPU-s per GB", "peak MB")


def main(arguments: Sequence[str] | None = None) -> None:
    """Fill the source once for each shape, and let each peer copy it from nothing."""
    options = _options(arguments)
    folder = Path(tempfile.mkdtemp(prefix="twinlog-bench-", dir=options.folder))
    source = KafkaNode(folder / "source", version=KAFKA_4)
    try:
        source.start()
        print_heading("Mirror catch-up")
        print_table(COLUMNS, _measure(source, options, folder))
    finally:
        source.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _measure(
    source: KafkaNode, options: argparse.Namespace, folder: Path
) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for shape in _shapes(options):
        total = fill(source, shape, options.gb)
        for name in options.peers:
            for round_number in range(options.rounds):
                destination = folder / f"{name}-{shape.topic}-{round_number}"
                use = PEERS[name](source, shape, total, destination)
                shutil.rmtree(destination, ignore_errors=True)
                rows.append(_row(name, shape, use))
                print("  ".join(str(cell) for cell in rows[-1]), flush=True)
    print()
    return rows


def _row(name: str, shape: Shape, use: Use) -> tuple[object, ...]:
    return (
        name,
        str(shape),
        f"{use.payload_bytes / 1e9:.2f}",
        f"{use.mb_per_s:.0f}",
        f"{use.cpu_s_per_gb:.2f}",
        f"{use.peak_bytes / 1e6:.0f}",
    )


def _shapes(options: argparse.Namespace) -> list[Shape]:
    return [
        Shape(codec, batch_kb * 1024, options.partitions)
        for codec in options.codecs
        for batch_kb in options.batch_kb
    ]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench mirror_catchup", description=__doc__)
    parser.add_argument("--gb", type=float, default=2.0, help="records' bytes of each data set")
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument("--codecs", type=_words, default=["lz4", "none"])
    parser.add_argument("--batch-kb", type=_numbers, default=[64, 5])
    parser.add_argument("--peers", type=_peers, default=list(PEERS), help=", ".join(PEERS))
    parser.add_argument("--rounds", type=int, default=1, help="how often each peer copies")
    parser.add_argument("--folder", default=None, help="where the data lies; a temporary folder")
    return parser.parse_args(arguments)


def _words(text: str) -> list[str]:
    return text.split(",")


def _numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def _peers(text: str) -> list[str]:
    unknown = [name for name in _words(text) if name not in PEERS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no peer {unknown[0]}; there are: {', '.join(PEERS)}")
    return _words(text)
