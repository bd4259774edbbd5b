import gc
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.server_process import accepts_connections, free_port
from support.waiting import wait_until
from twinlog.broker.process import run
from twinlog.config.broker import BROKER
from twinlog.config.declare import Settings


@pytest.fixture
def unfrozen() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_it_runs_until_it_is_told_to_end_and_its_start_is_no_garbage(
    tmp_path: Path, unfrozen: None
) -> None:
    port = free_port()
    given = {
        "node.id": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": str(tmp_path),
    }
    frozen: list[int] = []

    def end_it() -> None:
        try:
            wait_until(lambda: gc.get_freeze_count() > 0 and accepts_connections(port), "it serves")
            frozen.append(gc.get_freeze_count())
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    ending = threading.Thread(target=end_it)
    ending.start()
    assert run(Settings.of(BROKER, given)) == 0
    ending.join(60)
    assert frozen[0] > 1_000
    assert (tmp_path / ".kafka_cleanshutdown").exists()
