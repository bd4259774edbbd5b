"""Fills a Kafka source with records that look like an application's, in batches of a given size."""

import json
import random
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from support.java_tools import Load, perf_produce
from support.kafka_install import cache_folder
from support.kafka_node import KafkaNode

_LINES = 20_000
RECORD_BYTES = 1000


@dataclass(frozen=True, slots=True)
class Shape:
    """One data set: its codec, the bytes a batch may hold, and over how many partitions."""

    codec: str
    batch_bytes: int
    partitions: int

    @property
    def topic(self) -> str:
        """The topic that holds it."""
        return f"{self.codec}-{self.batch_bytes // 1024}k-{self.partitions}"

    def __str__(self) -> str:
        return f"{self.codec}, {self.batch_bytes // 1024} KB batches, {self.partitions} partitions"


def fill(source: KafkaNode, shape: Shape, gigabytes: float) -> int:
    """Write so much of that shape (before compression); give the bytes of batches on disk."""
    source.create_topic(shape.topic, partitions=shape.partitions)
    count = int(gigabytes * 1e9 / RECORD_BYTES)
    properties = {
        "acks": "1",
        "compression.type": shape.codec,
        "batch.size": str(shape.batch_bytes),
        "linger.ms": "50",
        "buffer.memory": str(256 << 20),
    }
    perf_produce(source.bootstrap, shape.topic, Load(count, payload_file(), properties))
    return log_bytes(source.log_folder, shape)


def log_bytes(folder: Path, shape: Shape, *, prefix: str = "") -> int:
    """The bytes of all segments of the topic in a broker's data folder; 0 while there is none."""
    total = 0
    for partition in range(shape.partitions):
        for path in (folder / f"{prefix}{shape.topic}-{partition}").glob("*.log"):
            try:
                total += path.stat().st_size
            except FileNotFoundError:
                continue
    return total


def payloads(count: int) -> list[bytes]:
    """Give so many of those records."""
    with payload_file().open("rb") as lines:
        return [line.rstrip(b"\n") for line in islice(lines, count)]


def payload_file() -> Path:
    """Give a file of records, one a line: JSON of 1 KB that lz4 makes a quarter smaller."""
    path = cache_folder() / "payloads.jsonl"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    chance = random.Random(4711)
    text = "".join(f"{_record(chance)}\n" for _ in range(_LINES))
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.rename(path)
    return path


def _record(chance: random.Random) -> str:
    fields: dict[str, object] = {
        "event": chance.choice(["order.placed", "order.paid", "order.shipped", "order.returned"]),
        "customer": chance.randbytes(16).hex(),
        "timestamp": f"2026-01-{chance.randint(1, 28):02}T{chance.randint(0, 23):02}:00:00.000Z",
        "amount": chance.randint(1, 1_000_000) / 100,
        "currency": chance.choice(["EUR", "USD", "CHF"]),
        "items": [
            {"sku": chance.randint(10**7, 10**8), "count": chance.randint(1, 9)} for _ in "12345"
        ],
    }
    fields["note"] = ""
    bare = len(json.dumps(fields))
    fields["note"] = chance.randbytes(RECORD_BYTES)[: (RECORD_BYTES - bare) // 2].hex()
    return json.dumps(fields).ljust(RECORD_BYTES)[:RECORD_BYTES]
