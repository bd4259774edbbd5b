"""``kafka-console-producer.sh``: writes lines of standard input as records."""

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import BinaryIO, Final

from twinlog.cli.cluster import RETRIES_MAX, RETRY_DELAY_S, Cluster, add_cluster_flags, cluster_of
from twinlog.cli.failures import EXIT_OK, CliError, UsageError, sentence
from twinlog.cli.partitioning import partition_of
from twinlog.config.read import read_overrides
from twinlog.model.errors import ErrorCode, SettingsError, is_retriable
from twinlog.model.ids import Offset
from twinlog.wire.messages.produce import (
    PRODUCE,
    ProducedPartition,
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
)
from twinlog.wire.records.build import build_batch
from twinlog.wire.records.compression import Compression, compression_of
from twinlog.wire.records.records import Record

CHUNK_BYTES: Final = 256 * 1024
BATCH_BYTES: Final = 512 * 1024
ACKS: Final = {"all": -1, "-1": -1, "0": 0, "1": 1}
KNOWN_PROPERTIES: Final = ("parse.key", "key.separator", "null.marker")


def parser(prog: str) -> argparse.ArgumentParser:
    """Give the parser of the command's flags."""
    made = argparse.ArgumentParser(prog=prog, description="Write lines as records.")
    add_cluster_flags(made)
    made.add_argument("--topic", required=True, metavar="NAME")
    made.add_argument(
        "--compression-codec",
        nargs="?",
        const="gzip",
        default="none",
        metavar="NAME",
        help="none, gzip, snappy, lz4 or zstd; gzip when no name is given",
    )
    made.add_argument("--request-required-acks", choices=sorted(ACKS), default="all")
    made.add_argument(
        "--property",
        "--reader-property",
        dest="property",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="parse.key=true, key.separator=:, null.marker=NULL",
    )
    return made


@dataclass(frozen=True, slots=True)
class Line:
    """How a line becomes key and value."""

    has_key: bool
    separator: bytes
    null_marker: bytes | None

    def split(self, line: bytes, number: int) -> tuple[bytes | None, bytes | None]:
        """Give key and value; CliError when the line has no key though it should."""
        if not self.has_key:
            return None, self._field(line)
        key, found, value = line.partition(self.separator)
        if not found:
            shown = self.separator.decode(errors="replace")
            raise CliError(f"line {number} has no key: there is no {shown!r} in it")
        return self._field(key), self._field(value)

    def _field(self, text: bytes) -> bytes | None:
        return None if text == self.null_marker else text


def run(options: argparse.Namespace) -> int:
    """Write until standard input ends."""
    try:
        given = read_overrides(options.property)
        compression = compression_of(options.compression_codec)
    except (SettingsError, ValueError) as error:
        raise UsageError(str(error)) from error
    unknown = sorted(set(given) - set(KNOWN_PROPERTIES))
    if unknown:
        raise UsageError(f"no property {unknown[0]}; there are {', '.join(KNOWN_PROPERTIES)}")
    marker = given.get("null.marker")
    line = Line(
        has_key=given.get("parse.key", "false").lower() == "true",
        separator=given.get("key.separator", "\t").encode(),
        null_marker=None if marker is None else marker.encode(),
    )
    return asyncio.run(_run(options, line, compression))


async def _run(options: argparse.Namespace, line: Line, compression: Compression) -> int:
    async with cluster_of(options) as cluster:
        topic = await cluster.topic(options.topic, create=True)
        writer = _Writer(
            cluster,
            options.topic,
            compression,
            ACKS[options.request_required_acks],
            leaders={p.partition_index: p.leader_id for p in topic.partitions},
        )
        numbers = count(1)
        rest = b""
        while chunk := await asyncio.to_thread(_read_some, sys.stdin.buffer):
            *lines, rest = (rest + chunk).split(b"\n")
            await writer.write([line.split(_stripped(text), next(numbers)) for text in lines])
        if rest:
            await writer.write([line.split(_stripped(rest), next(numbers))])
    return EXIT_OK


def _read_some(stdin: BinaryIO) -> bytes:
    """Give what there is, waiting only for the first byte: who types wants each line sent."""
    reader = getattr(stdin, "read1", stdin.read)
    some: bytes = reader(CHUNK_BYTES)
    return some


def _stripped(line: bytes) -> bytes:
    return line.removesuffix(b"\r")


Pair = tuple[bytes | None, bytes | None]


@dataclass(slots=True)
class _Writer:
    """Sends batches, one at a time, and retries what may succeed later."""

    cluster: Cluster
    topic: str
    compression: Compression
    acks: int
    leaders: dict[int, int]
    _turn: Iterator[int] = field(default_factory=count)

    async def write(self, pairs: list[Pair]) -> None:
        partitions = sorted(self.leaders)
        spare = partitions[next(self._turn) % len(partitions)] if pairs else 0
        by_partition: dict[int, list[Pair]] = {}
        for pair in pairs:
            keyed = spare if pair[0] is None else partition_of(pair[0], len(partitions))
            by_partition.setdefault(keyed, []).append(pair)
        for partition, some in by_partition.items():
            for batch in _batches(some, self.compression):
                await self._send(partition, batch)

    async def _send(self, partition: int, batch: bytes) -> None:
        told: ProducedPartition | None = None
        for _ in range(RETRIES_MAX):
            told = await self._send_once(partition, batch)
            if told is None or not is_retriable(told.error_code):
                break
            await asyncio.sleep(RETRY_DELAY_S)
            topic = await self.cluster.topic(self.topic)
            self.leaders = {p.partition_index: p.leader_id for p in topic.partitions}
        if told is not None and told.error_code:
            why = sentence(told.error_code, told.error_message)
            raise CliError(f"records for {self.topic}-{partition} were not written: {why}")

    async def _send_once(self, partition: int, batch: bytes) -> ProducedPartition | None:
        request = ProduceRequest(
            acks=self.acks,
            timeout_ms=self.cluster.timeout_ms,
            topic_data=(
                ProduceTopic(
                    name=self.topic,
                    partition_data=(ProducePartition(index=partition, records=batch),),
                ),
            ),
        )
        answer = await self.cluster.ask_node(self.leaders[partition], PRODUCE, request)
        found = [p for t in answer.responses for p in t.partition_responses]
        if not found:
            return None
        if found[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise CliError(f"topic {self.topic} was deleted while it was written to")
        return found[0]


def _batches(pairs: list[Pair], compression: Compression) -> Iterator[bytes]:
    """Give batches of up to half a megabyte, or of one record that is larger."""
    now_ms = int(time.time() * 1_000)  # noqa: TID251 - the producer gives records their time
    waiting: list[Record] = []
    size = 0
    for key, value in pairs:
        length = len(key or b"") + len(value or b"")
        if waiting and size + length > BATCH_BYTES:
            yield build_batch(waiting, compression=compression)
            waiting, size = [], 0
        waiting.append(Record(Offset(len(waiting)), now_ms, key, value))
        size += length
    if waiting:
        yield build_batch(waiting, compression=compression)
