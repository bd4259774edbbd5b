"""``kafka-dump-log.sh``: prints the batches of ``.log`` files, and their records if asked."""

import argparse
import mmap
import sys
from pathlib import Path
from typing import TextIO

from twinlog.cli.failures import EXIT_FAILED, EXIT_OK, CliError
from twinlog.model.errors import CorruptBatchError
from twinlog.wire.primitives import Buffer
from twinlog.wire.records.batch import BatchHeader, check_crc, iter_headers
from twinlog.wire.records.compression import Compression
from twinlog.wire.records.control import control_type_of, coordinator_epoch_of
from twinlog.wire.records.records import Record, records_of


def parser(prog: str) -> argparse.ArgumentParser:
    """Give the parser of the command's flags."""
    made = argparse.ArgumentParser(prog=prog, description="Print the batches of .log files.")
    made.add_argument(
        "--files", required=True, metavar="A.log,B.log", help="files, with commas between them"
    )
    made.add_argument("--deep-iteration", action="store_true", help="their records, too")
    made.add_argument("--print-data-log", action="store_true", help="keys and values, too")
    return made


def run(options: argparse.Namespace) -> int:
    """Print every file; 1 if one of them is damaged."""
    code = EXIT_OK
    for name in options.files.split(","):
        path = Path(name.strip())
        if path.suffix != ".log":
            raise CliError(f"{path} is not a .log file")
        first = path.name.partition(".")[0]  # more may follow it, as in a lost tail's name
        print(f"Dumping {path}\nLog starting offset: {int(first) if first.isdigit() else '?'}")
        if path.stat().st_size == 0:
            continue
        with (
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
            memoryview(mapped) as buffer,
        ):
            code = max(code, _dump(buffer, options, sys.stdout))
    return code


def _dump(buffer: Buffer, options: argparse.Namespace, out: TextIO) -> int:
    """Print the batches of one file; tell what is damaged, and what is left over."""
    is_deep = options.deep_iteration or options.print_data_log
    code, end = EXIT_OK, 0
    try:
        for position, header in iter_headers(buffer):
            is_valid = _is_valid(buffer, position, header)
            out.write(_batch_line(position, header, is_valid=is_valid))
            if is_deep:
                for record in records_of(buffer, position, header):
                    out.write(_record_line(record, header, has_data=options.print_data_log))
            code = code if is_valid else EXIT_FAILED
            end = position + header.length
    except CorruptBatchError as error:
        print(f"Found a damaged batch at byte {end}: {error}", file=sys.stderr)
        return EXIT_FAILED
    if end < len(buffer):
        print(f"Found {len(buffer) - end} bytes of an incomplete batch at the end", file=sys.stderr)
        return EXIT_FAILED
    return code


def _is_valid(buffer: Buffer, position: int, header: BatchHeader) -> bool:
    try:
        check_crc(buffer, position, header)
    except CorruptBatchError as error:
        print(error, file=sys.stderr)
        return False
    return True


def _batch_line(position: int, header: BatchHeader, *, is_valid: bool) -> str:
    horizon = f"OptionalLong[{header.base_timestamp}]" if header.has_delete_horizon else ""
    time_name = "LogAppendTime" if header.is_log_append_time else "CreateTime"
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} "
        f"count: {header.record_count} baseSequence: {header.base_sequence} "
        f"lastSequence: {header.last_sequence} producerId: {header.producer_id} "
        f"producerEpoch: {header.producer_epoch} partitionLeaderEpoch: {header.leader_epoch} "
        f"isTransactional: {_java(header.is_transactional)} isControl: {_java(header.is_control)} "
        f"deleteHorizonMs: {horizon or 'OptionalLong.empty'} position: {position} "
        f"{time_name}: {header.max_timestamp} size: {header.length} magic: {header.magic} "
        f"compresscodec: {_codec(header)} crc: {header.crc} isvalid: {_java(is_valid)}\n"
    )


def _record_line(record: Record, header: BatchHeader, *, has_data: bool) -> str:
    time_name = "LogAppendTime" if header.is_log_append_time else "CreateTime"
    headers = ",".join(key for key, _ in record.headers)
    line = (
        f"| offset: {record.offset} {time_name}: {record.timestamp} "
        f"keySize: {_size(record.key)} valueSize: {_size(record.value)} sequence: "
        f"{_sequence(record, header)} headerKeys: [{headers}]"
    )
    if header.is_control:
        return f"{line}{_control(record)}\n"
    if has_data:
        line += _named("key", record.key) + _named("payload", record.value)
    return f"{line}\n"


def _control(record: Record) -> str:
    kind = control_type_of(record.key)
    if kind is None:
        return " controlType: UNKNOWN"
    if kind.name in ("ABORT", "COMMIT"):
        epoch = coordinator_epoch_of(record.value)
        return f" endTxnMarker: {kind.name} coordinatorEpoch: {epoch}"
    return f" controlType: {kind.name}"


def _sequence(record: Record, header: BatchHeader) -> int:
    if header.base_sequence < 0:
        return -1
    return (header.base_sequence + record.offset - header.base_offset) & 0x7FFF_FFFF


def _codec(header: BatchHeader) -> str:
    try:
        return Compression(header.compression).name.lower()
    except ValueError:
        return str(header.compression)


def _size(field: bytes | None) -> int:
    return -1 if field is None else len(field)


def _named(name: str, field: bytes | None) -> str:
    return "" if field is None else f" {name}: {field.decode(errors='backslashreplace')}"


def _java(value: bool) -> str:  # noqa: FBT001 - it is all there is to it
    return "true" if value else "false"
