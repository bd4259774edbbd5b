"""Each measurement runs to its end on little data, so that none is broken when it is needed."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.kafka_install import KAFKA_4, require

pytestmark = [pytest.mark.kafka, pytest.mark.cluster, pytest.mark.slow]

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "command",
    [
        "start --rounds 1 --idle-s 0.5 --brokers twinlog",
        "small_requests --records 500 --rate 100 --calm-s 1 --brokers twinlog",
        "produce_consume --gb 0.01 --warm-gb 0.001 --codecs lz4 --brokers twinlog",
        "mirror_catchup --gb 0.02 --codecs lz4 --batch-kb 64 --partitions 2 --peers twinlog,floor",
        "mirror_freshness --low-s 1 --rush-s 1 --high-s 1 --warm-up-s 1 --peers twinlog --diagnose",
    ],
)
def test_a_measurement_ends_with_its_table(command: str) -> None:
    require(KAFKA_4)
    run = subprocess.run(
        [sys.executable, "-m", "bench", *command.split()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "| twinlog " in run.stdout
