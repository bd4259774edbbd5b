from pathlib import Path

from twinlog.telemetry.process import process_readings


def numbers(proc: Path) -> dict[str, float]:
    return {one.family.name: number for one in process_readings(proc) for _, number in one.samples}


def test_what_the_system_tells_is_read_in_seconds_and_bytes(tmp_path: Path) -> None:
    (tmp_path / "self" / "fd").mkdir(parents=True)
    (tmp_path / "self" / "fd" / "0").touch()
    stat = "7 (a (strange) name) S" + " 0" * 18 + " 500 0"
    (tmp_path / "self" / "stat").write_text(stat)
    (tmp_path / "self" / "statm").write_text("300 200 1 1 0 1 0\n")
    (tmp_path / "stat").write_text("cpu 1 2\nbtime 1000\n")
    found = numbers(tmp_path)
    assert found["process_virtual_memory_bytes"] == 1.5 * found["process_resident_memory_bytes"]
    assert 1_000 < found["process_start_time_seconds"] < 1_500
    assert found["process_open_fds"] == 1
    assert found["process_cpu_seconds_total"] > 0


def test_without_a_proc_only_what_is_known_is_told(tmp_path: Path) -> None:
    assert numbers(tmp_path).keys() == {"process_cpu_seconds_total", "process_max_fds"}
