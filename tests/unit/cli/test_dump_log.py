"""Dumping a log: batches, records, control records, and what is damaged."""

from pathlib import Path

import pytest

from support.commands import run_command
from twinlog.model.ids import Offset, ProducerId
from twinlog.wire.records.build import build_batch
from twinlog.wire.records.compression import Compression
from twinlog.wire.records.control import ControlType, end_marker, pid_reset_batch
from twinlog.wire.records.records import Record

RECORDS = [
    Record(Offset(0), 100, b"k", b"v\xff", (("h", b"1"), ("i", None))),
    Record(Offset(1), 90, None, None),
]
PLAIN = build_batch(RECORDS)
ZIPPED = build_batch(
    [Record(Offset(2), 200, b"z", b"")],
    base_offset=2,
    compression=Compression.GZIP,
    producer_id=ProducerId(7),
    producer_epoch=1,
    base_sequence=4,
    is_transactional=True,
)
ABORT = end_marker(
    ControlType.ABORT,
    producer_id=ProducerId(7),
    producer_epoch=1,
    coordinator_epoch=3,
    timestamp_ms=201,
    base_offset=3,
)
RESET = pid_reset_batch(timestamp_ms=202, base_offset=4)


def log_file(folder: Path, content: bytes) -> str:
    file = folder / "00000000000000000000.log"
    file.write_bytes(content)
    return str(file)


def test_the_start_offset_is_the_first_part_of_a_files_name(tmp_path: Path) -> None:
    file = tmp_path / "00000000000000000042.to-57.my.topic-0.lost.log"
    file.write_bytes(PLAIN)
    ran = run_command(["dump-log", "--files", str(file)])
    assert ran.code == 0
    assert "Log starting offset: 42" in ran.out


def test_batches_are_told_as_kafka_tells_them(tmp_path: Path) -> None:
    file = log_file(tmp_path, PLAIN + ZIPPED + ABORT + RESET)
    ran = run_command(["dump-log", "--files", file])
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[:2] == [f"Dumping {file}", "Log starting offset: 0"]
    assert lines[2].startswith(
        "baseOffset: 0 lastOffset: 1 count: 2 baseSequence: -1 lastSequence: -1 producerId: -1 "
        "producerEpoch: -1 partitionLeaderEpoch: -1 isTransactional: false isControl: false "
        "deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: 100 "
        f"size: {len(PLAIN)} magic: 2 compresscodec: none crc: "
    )
    assert lines[2].endswith("isvalid: true")
    assert "lastSequence: 4 producerId: 7" in lines[3]
    assert f"position: {len(PLAIN)} CreateTime: 200" in lines[3]
    assert "compresscodec: gzip" in lines[3]
    assert "isControl: true" in lines[4]
    assert len(lines) == 6


def test_records_are_told_when_asked_for(tmp_path: Path) -> None:
    file = log_file(tmp_path, PLAIN + ZIPPED + ABORT + RESET)
    ran = run_command(["dump-log", "--files", file, "--print-data-log"])
    records = [line for line in ran.out.splitlines() if line.startswith("|")]
    assert records == [
        "| offset: 0 CreateTime: 100 keySize: 1 valueSize: 2 sequence: -1 headerKeys: [h,i] "
        "key: k payload: v\\xff",
        "| offset: 1 CreateTime: 90 keySize: -1 valueSize: -1 sequence: -1 headerKeys: []",
        "| offset: 2 CreateTime: 200 keySize: 1 valueSize: 0 sequence: 4 headerKeys: [] "
        "key: z payload: ",
        "| offset: 3 CreateTime: 201 keySize: 4 valueSize: 6 sequence: -1 headerKeys: [] "
        "endTxnMarker: ABORT coordinatorEpoch: 3",
        "| offset: 4 CreateTime: 202 keySize: 4 valueSize: 2 sequence: -1 headerKeys: [] "
        "controlType: MIRROR_PID_RESET",
    ]
    shallow = run_command(["dump-log", "--files", file, "--deep-iteration"]).out
    assert "payload" not in shallow
    assert shallow.count("| offset") == 5


def test_several_files_and_empty_ones(tmp_path: Path) -> None:
    file = log_file(tmp_path, b"")
    ran = run_command(["dump-log", "--files", f"{file},{file}"])
    assert ran.code == 0
    assert ran.out.count("Log starting offset: 0\n") == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (PLAIN[:-1] + b"!", "CRC-32C is"),
        (PLAIN + ZIPPED[:-3], f"Found {len(ZIPPED) - 3} bytes of an incomplete batch at the end"),
        (PLAIN + b"\0" * 70, f"Found a damaged batch at byte {len(PLAIN)}: batch at offset 0"),
    ],
    ids=range(3),
)
def test_damage_is_told_and_is_code_1(tmp_path: Path, content: bytes, message: str) -> None:
    ran = run_command(["dump-log", "--files", log_file(tmp_path, content)])
    assert ran.code == 1
    assert message in ran.err
    assert "baseOffset: 0" in ran.out


def test_only_log_files_are_dumped() -> None:
    ran = run_command(["dump-log", "--files", "0.index"])
    assert (ran.code, ran.err) == (1, "twinlog dump-log: 0.index is not a .log file\n")
