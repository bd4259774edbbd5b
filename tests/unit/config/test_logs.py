"""Log settings: the older names and units of Kafka."""

import pytest

from twinlog.config.broker import BROKER
from twinlog.config.declare import Settings
from twinlog.config.logs import LOG_DIRS, LOG_RETENTION_MS, LOG_ROLL_MS


def of(given: dict[str, str]) -> Settings:
    return Settings.of(BROKER, given)


@pytest.mark.parametrize(
    ("given", "retention_ms"),
    [
        ({}, 604_800_000),
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "1"}, 60_000),
        ({"log.retention.minutes": "1", "log.retention.ms": "5"}, 5),
        ({"log.retention.hours": "-1"}, -1),
    ],
    ids=str,
)
def test_the_finest_unit_of_retention_wins(given: dict[str, str], retention_ms: int) -> None:
    assert of(given)[LOG_RETENTION_MS] == retention_ms


def test_hours_serve_for_rolling_too() -> None:
    assert of({"log.roll.hours": "1"})[LOG_ROLL_MS] == 3_600_000


def test_log_dir_serves_where_log_dirs_is_not_given() -> None:
    assert of({})[LOG_DIRS] == ("data",)
    assert of({"log.dir": "/a"})[LOG_DIRS] == ("/a",)
    assert of({"log.dir": "/a", "log.dirs": "/b,/c"})[LOG_DIRS] == ("/b", "/c")
