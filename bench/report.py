"""Prints what was measured as the table that docs/bench.md holds, with machine and command."""

import os
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path


def print_heading(title: str) -> None:
    """Say what is measured, on what, when and by which command."""
    command = " ".join(["python -m bench", *sys.argv[1:]])
    today = datetime.now(UTC).date().isoformat()
    print(f"\n## {title}\n\n{machine()}, {today}: `{command}`\n", flush=True)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table in Markdown, its columns as wide as they need to be."""
    texts = [[str(cell) for cell in row] for row in (columns, *rows)]
    widths = [max(len(row[index]) for row in texts) for index in range(len(columns))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in texts
    ]
    lines.insert(1, "| " + " | ".join("-" * width for width in widths) + " |")
    print("\n".join(lines), flush=True)


def machine() -> str:
    """Describe the machine: what it is made of, never what it is called."""
    cores = os.cpu_count() or 1
    return (
        f"{_processor()}, {cores} cores, {_memory_gb():.0f} GB, Python {platform.python_version()}"
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory_gb() -> float:
    first = Path("/proc/meminfo").read_text().splitlines()[0]
    return int(first.split()[1]) / 1e6
