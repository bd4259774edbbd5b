"""Broker settings: where metrics are told, and how many of them."""

from typing import Any, Final

from twinlog.config.checks import at_least
from twinlog.config.declare import Setting, Settings
from twinlog.config.kinds import Kind
from twinlog.config.network import Endpoint, endpoint_in
from twinlog.model.errors import SettingsError

_HTTP: Final = "http"
_EXAMPLE: Final = "http://127.0.0.1:9404"

MONITORING_LISTENER: Final[Setting[str | None]] = Setting(
    "monitoring.listener",
    Kind.STRING,
    None,
    "Where /metrics (Prometheus text) and /healthz are told over HTTP, such as "
    f"{_EXAMPLE}; by default nowhere. Whoever can connect can read. (Not a setting of Kafka.)",
)
MONITORING_PARTITION_SERIES_MAX: Final = Setting(
    "monitoring.partition.series.max",
    Kind.INT,
    1_000,
    "With more partitions on the broker than this, /metrics has totals only, and no series for "
    "each partition; with more topics, none for each topic. (Not a setting of Kafka.)",
    at_least(0),
)

SETTINGS: Final[tuple[Setting[Any], ...]] = (MONITORING_LISTENER, MONITORING_PARTITION_SERIES_MAX)


def monitoring_endpoint(settings: Settings) -> Endpoint | None:
    """Give where metrics are told. Raises SettingsError."""
    text = settings[MONITORING_LISTENER]
    if not text:
        return None
    endpoint = endpoint_in(MONITORING_LISTENER, text.rstrip("/"), _EXAMPLE)
    if endpoint.name != _HTTP:
        raise SettingsError(
            f"monitoring.listener={text}: only {_HTTP} is spoken there, as in {_EXAMPLE}"
        )
    return endpoint


def monitoring_listener_fits(settings: Settings) -> str | None:
    """Tell what is wrong with the address."""
    try:
        monitoring_endpoint(settings)
    except SettingsError as error:
        return str(error)
    return None
