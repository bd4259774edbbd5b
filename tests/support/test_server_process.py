"""Tests of starting, stopping, killing and cleaning up after server processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.reaper import Reaper
from support.server_process import ServerDiedError, ServerProcess, free_port
from support.waiting import wait_until

pytestmark = pytest.mark.slow

SLEEPER = ["sh", "-c", "echo ready; sleep 60"]


def test_a_server_is_awaited_until_it_says_it_is_ready(tmp_path: Path) -> None:
    server = ServerProcess(
        "sleeper", ["sh", "-c", "sleep 0.1; echo ready; exec sleep 60"], tmp_path / "log"
    )
    server.start(lambda: server.has_said("ready"))
    assert server.is_running
    assert server.stop() == -15
    assert not server.is_running


def test_a_restarted_server_is_judged_by_what_it_says_since(tmp_path: Path) -> None:
    server = ServerProcess("sleeper", SLEEPER, tmp_path / "log")
    server.start(lambda: server.has_said("ready"))
    server.kill()
    server.start(lambda: server.has_said("ready"))
    assert server.log_text() == "ready\n"
    assert (tmp_path / "log").read_text() == "ready\nready\n"
    server.kill()


def test_a_server_that_ends_early_is_reported_with_its_last_words(tmp_path: Path) -> None:
    server = ServerProcess("broken", ["sh", "-c", "echo no such file; exit 3"], tmp_path / "log")
    with pytest.raises(ServerDiedError, match="broken ended with 3:\nno such file"):
        server.start(lambda: False)


def test_a_server_that_is_never_ready_is_killed(tmp_path: Path) -> None:
    server = ServerProcess("slow", SLEEPER, tmp_path / "log")
    with pytest.raises(ServerDiedError, match=r"slow is not ready after 0\.1 s"):
        server.start(lambda: False, timeout_s=0.1)
    assert not server.is_running


def test_free_ports_stay_clear_of_those_given_to_clients_and_come_once() -> None:
    ports = [free_port() for _ in range(500)]
    assert all(20_000 <= port <= 32_000 for port in ports)
    assert len(set(ports)) == 500


def test_the_reaper_kills_what_is_still_watched_and_nothing_else() -> None:
    reaper = Reaper()
    watched, forgotten = (subprocess.Popen(["sleep", "60"]) for _ in range(2))
    reaper.watch(watched.pid)
    reaper.watch(forgotten.pid)
    reaper.forget(forgotten.pid)
    reaper.close()
    assert watched.wait(timeout=60) == -9
    assert forgotten.poll() is None
    forgotten.kill()
    forgotten.wait()


def test_servers_end_when_the_test_run_is_killed(tmp_path: Path) -> None:
    script = (
        "import os, pathlib, sys; from support.server_process import ServerProcess\n"
        "server = ServerProcess('s', ['sleep', '60'], pathlib.Path(sys.argv[1]))\n"
        "server.start(lambda: True); print(server.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "log")],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        check=False,
    )
    pid = int(run.stdout)
    wait_until(lambda: is_gone(pid), f"process {pid} ended", timeout_s=60)


def is_gone(pid: int) -> bool:
    """True if the process ended, also if nobody has asked for its exit code yet."""
    try:
        return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return True
