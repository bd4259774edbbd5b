"""Failing back drops what only this side has: not before it lies safe beside the log."""

from pathlib import Path
from typing import Any

import pytest

from support.dying_process import DyingTwinlog
from support.java_tools import dump_files
from support.log_bytes import batches_of
from support.mirror import Mirror, twinlog_command
from support.source_data import flush, producer_of
from support.twinlog_process import TwinlogProcess

pytestmark = [pytest.mark.kafka, pytest.mark.cluster, pytest.mark.slow]

OF = ("orders", 0)
MOMENTS = ("effect TruncateTo", "saved", "event StepDone")


def _produce(broker: TwinlogProcess, *values: str) -> None:
    producer = producer_of(broker, compression_type="lz4")
    for value in values:
        producer.produce(OF[0], value.encode() * 50, partition=0)
        flush(producer)


def _tails(broker: TwinlogProcess) -> list[Path]:
    return sorted(broker.partition_folder(*OF).parent.glob("*.lost*"))


def _losses(mirror: Mirror) -> list[dict[str, Any]]:
    (row,) = mirror.describe()
    losses = row["losses"]
    assert isinstance(losses, list)
    return losses


def _told(loss: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(loss[key] for key in ("kind", "firstOffset", "endOffset", "savedTo", "savedBytes"))


def _fail_over(forward: Mirror) -> None:
    """Leave the mirrored side writable, and each side with records that the other has not."""
    _produce(forward.source, "both 1", "both 2")  # type: ignore[arg-type]
    forward.create()
    forward.start([OF[0]])
    forward.await_caught_up([OF])
    forward.stop([OF[0]])
    forward.await_states([OF], "STOPPED")
    _produce(forward.twinlog, "there 1")
    _produce(forward.source, "here 1", "here 2")  # type: ignore[arg-type]


def _create(broker: TwinlogProcess) -> None:
    where = ("topics", "--bootstrap-server", broker.bootstrap)
    made = twinlog_command(*where, "--create", "--topic", OF[0], "--partitions", "1")
    assert made.exit_code == 0, made.stderr


def test_killed_around_every_cut_the_tail_is_saved_once_and_the_logs_end_equal(
    tmp_path: Path,
) -> None:
    here, there = DyingTwinlog(tmp_path / "here"), TwinlogProcess(tmp_path / "there", node_id=2)
    forward, back = Mirror(there, here, "forward"), Mirror(here, there, "back")
    try:
        here.start()
        there.start()
        _create(here)
        _fail_over(forward)
        dropped = list(batches_of(here.partition_folder(*OF)))[-2:]
        end_before = dropped[-1].base_offset + 1
        back.create()
        here.die_at(MOMENTS[0])
        twinlog_command(
            "mirrors",
            "--bootstrap-server",
            here.bootstrap,
            *("--start", "--mirror", back.name, "--topics", OF[0]),
        )
        here.await_death()
        assert not _tails(here)
        deaths = 1
        for moment in MOMENTS[1:]:
            here.die_at(moment)
            deaths += here.dies_after_start()
            assert len(_tails(here)) == 1
        assert deaths == len(MOMENTS)
        here.start()
        back.await_caught_up([OF])
        back.await_states([OF], "MIRRORING")
        back.assert_equal([OF])
        (tail,) = _tails(here)
        first = dropped[0].base_offset
        assert tail.name == f"{first:020d}.to-{end_before}.orders-0.lost.log"
        # Killed once more, it knows still what it lost, and of one loss for all those deaths.
        here.kill()
        here.start()
        back.await_states([OF], "MIRRORING")
        assert [_told(loss) for loss in _losses(back)] == [
            ("truncation", first, end_before, str(tail), tail.stat().st_size)
        ]
        told = twinlog_command("dump-log", "--print-data-log", "--files", str(tail)).stdout
        assert f"Log starting offset: {first}" in told
        assert "here 1" in told
        assert "here 2" in told
        assert "both" not in told
        dump_files([tail], "--deep-iteration")
    finally:
        here.stop()
        there.stop()
