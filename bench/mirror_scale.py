"""Measures what thousands of mirrored partitions cost their destination, at rest and at work."""

import argparse
import asyncio
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.processes import cpu_seconds, peak_bytes, resident_bytes
from bench.report import print_heading, print_table

from support.mirror_fleet import Fleet, Of, fleet
from twinlog.storage.checkpoints import RECOVERY_POINTS, decode_offsets

COLUMNS = (
    "partitions",
    "KB each",
    "created, s",
    "caught up, s",
    "CPU-s",
    "restarted, s",
    "KB a partition",
    "without mirror",
    "peak MB",
    "idle CPU, %",
    "open files",
    "described, s",
    "flushed, CPU-s",
)
SETTLED_S = 3.0
FLUSHED_WITHIN_S = 300.0
FLUSH_POLL_S = 0.5


def main(arguments: Sequence[str] | None = None) -> None:
    """Fill a source, mirror all of it, let it rest, start the destination again."""
    options = _options(arguments)
    print_heading("Thousands of mirrored partitions")
    with TemporaryDirectory(prefix="twinlog-bench-") as folder:
        row = asyncio.run(_measure(Path(folder), options))
    print_table(COLUMNS, [row])


async def _measure(folder: Path, options: argparse.Namespace) -> tuple[object, ...]:
    count = options.partitions
    async with fleet(folder) as pair:
        bare_bytes = resident_bytes(pair.destination.server.pid)
        await pair.fill(count, per_topic=options.per_topic, bytes_each=options.kb_each * 1000)
        pid = pair.destination.server.pid
        cpu_s, began = cpu_seconds(pid), time.perf_counter()
        await pair.mirror_everything()
        created_s = time.perf_counter() - began
        await pair.until_all("MIRRORING", has_no_lag=True)
        caught_up_s, cpu_s = time.perf_counter() - began, cpu_seconds(pid) - cpu_s
        described_s = await _time_of_describe(pair)
        caught_up_bytes = resident_bytes(pid)
        peak = peak_bytes(pid)
        flushed_cpu_s = await _until_flushed(pair, pair.partitions if options.kb_each else ())
        idle = await _idle_share(pid, options.rest_s)
        files = _open_files(pid)
        restarted_s = await _restart(pair)
        mirrored_bytes = max(caught_up_bytes, resident_bytes(pair.destination.server.pid))
        plain_bytes = await _without_mirror(pair)
    return (
        count,
        options.kb_each,
        f"{created_s:.1f}",
        f"{caught_up_s:.1f}",
        f"{cpu_s:.1f}",
        f"{restarted_s:.1f}",
        f"{(mirrored_bytes - bare_bytes) / count / 1000:.1f}",
        f"{(plain_bytes - bare_bytes) / count / 1000:.1f}",
        f"{peak / 1e6:.0f}",
        f"{idle * 100:.1f}",
        files,
        f"{described_s:.2f}",
        f"{flushed_cpu_s:.1f}",
    )


async def _time_of_describe(pair: Fleet) -> float:
    began = time.perf_counter()
    await pair.describe()
    return time.perf_counter() - began


async def _until_flushed(pair: Fleet, written: Iterable[Of]) -> float:
    """Wait until what was copied is flushed, within a minute or so; give the CPU-seconds."""
    pid, wanted = pair.destination.server.pid, set(written)
    checkpoint = pair.destination.log_folder / RECOVERY_POINTS
    cpu_s, began = cpu_seconds(pid), time.perf_counter()
    while time.perf_counter() - began < FLUSHED_WITHIN_S:
        points = decode_offsets(checkpoint.read_bytes()) if checkpoint.exists() else None
        if wanted <= {(of.topic, of.partition) for of, point in (points or {}).items() if point}:
            return cpu_seconds(pid) - cpu_s
        await asyncio.sleep(FLUSH_POLL_S)
    raise TimeoutError(f"not flushed after {FLUSHED_WITHIN_S:.0f} s")


async def _idle_share(pid: int, rest_s: float) -> float:
    """Give the share of a core that is used while nothing is written anywhere."""
    await asyncio.sleep(SETTLED_S)
    cpu_s, began = cpu_seconds(pid), time.perf_counter()
    await asyncio.sleep(rest_s)
    return (cpu_seconds(pid) - cpu_s) / (time.perf_counter() - began)


def _open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


async def _restart(pair: Fleet) -> float:
    """Give how long it takes from the start until all is mirrored again."""
    began = time.perf_counter()
    stopped_s = await pair.restart()
    await pair.until_all("MIRRORING", has_no_lag=True)
    return time.perf_counter() - began - stopped_s


async def _without_mirror(pair: Fleet) -> int:
    """Give the memory of a broker that was started with as many partitions, none mirrored."""
    await pair.stop()
    await pair.until_all("STOPPED")
    pair.source.kill()
    await pair.restart()
    await pair.until_all("STOPPED")
    return resident_bytes(pair.destination.server.pid)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench mirror_scale", description=__doc__)
    parser.add_argument("--partitions", type=int, default=5_000)
    parser.add_argument("--per-topic", type=int, default=50, help="partitions of a topic")
    parser.add_argument("--kb-each", type=int, default=20, help="kilobytes in each partition")
    parser.add_argument("--rest-s", type=float, default=30.0, help="how long idleness is watched")
    return parser.parse_args(arguments)
