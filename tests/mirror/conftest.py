"""A fresh twinlog broker for each test; the real Kafkas beside it come from support.kafka."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.twinlog_process import TwinlogProcess


@pytest.fixture
def twinlog(tmp_path: Path) -> Iterator[TwinlogProcess]:
    """Run a twinlog broker with an empty folder."""
    process = TwinlogProcess(tmp_path / "twinlog")
    try:
        process.start()
        yield process
    finally:
        process.stop()
