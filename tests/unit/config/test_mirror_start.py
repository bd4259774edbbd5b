"""The words of where a mirror begins."""

import pytest

from twinlog.config.mirror import mirror_settings
from twinlog.config.mirror_start import MIRROR_START_OFFSET_SPEC, start_timestamp_ms
from twinlog.model.errors import SettingsError

SOURCE = {"bootstrap.servers": "source:9092"}


@pytest.mark.parametrize(
    ("words", "timestamp_ms"),
    [
        ("earliest", -2),
        ("latest", -1),
        ("1769817600000", 1_769_817_600_000),
        ("2026-01-31T00:00:00Z", 1_769_817_600_000),
        ("2026-01-31T01:00:00.5+01:00", 1_769_817_600_500),
    ],
)
def test_a_start_is_an_end_of_the_log_or_a_time(words: str, timestamp_ms: int) -> None:
    assert start_timestamp_ms(words) == timestamp_ms
    settings = mirror_settings({**SOURCE, "mirror.start.offset.spec": words})
    assert settings[MIRROR_START_OFFSET_SPEC] == words


@pytest.mark.parametrize(
    "words", ["newest", "2026-01-31T00:00:00", "2026-01-31", "1960-01-01T00:00:00Z", "-5", "9" * 20]
)
def test_anything_else_is_refused_with_an_example(words: str) -> None:
    with pytest.raises(SettingsError, match="2026-01-31T00:00:00Z"):
        mirror_settings({**SOURCE, "mirror.start.offset.spec": words})


def test_the_default_is_everything() -> None:
    assert mirror_settings(SOURCE)[MIRROR_START_OFFSET_SPEC] == "earliest"
