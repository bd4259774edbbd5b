import pytest

from twinlog.config.broker import BROKER
from twinlog.config.declare import Settings
from twinlog.config.monitoring import monitoring_endpoint
from twinlog.config.network import Endpoint
from twinlog.model.errors import SettingsError


def test_by_default_metrics_are_told_nowhere() -> None:
    assert monitoring_endpoint(Settings.of(BROKER, {})) is None
    assert monitoring_endpoint(Settings.of(BROKER, {"monitoring.listener": ""})) is None


@pytest.mark.parametrize("text", ["http://127.0.0.1:9404", "http://127.0.0.1:9404/"])
def test_an_address_is_read(text: str) -> None:
    found = monitoring_endpoint(Settings.of(BROKER, {"monitoring.listener": text}))
    assert found == Endpoint("http", "127.0.0.1", 9404)


@pytest.mark.parametrize(
    ("text", "why"),
    [("https://127.0.0.1:9404", "only http is spoken"), ("9404", "not NAME://host:port")],
)
def test_what_is_no_address_is_told_before_the_broker_starts(text: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        Settings.of(BROKER, {"monitoring.listener": text})
