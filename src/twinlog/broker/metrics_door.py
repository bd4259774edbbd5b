"""Opens the listener that tells metrics and health, if the settings ask for one."""

import logging
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version

from twinlog.broker.context import Broker
from twinlog.broker.mirror_readings import mirror_readings
from twinlog.broker.readings import Running, broker_readings
from twinlog.config.monitoring import MONITORING_PARTITION_SERIES_MAX, monitoring_endpoint
from twinlog.model.errors import SettingsError
from twinlog.network.metrics_http import MetricsListener
from twinlog.telemetry.exposition import CONTENT_TYPE, render
from twinlog.telemetry.process import process_readings

log = logging.getLogger(__name__)


async def open_metrics(
    broker: Broker, running: Running, is_serving: Callable[[], bool]
) -> MetricsListener | None:
    """Begin to answer; None when it is not wanted. Raises SettingsError."""
    endpoint = monitoring_endpoint(broker.settings)
    if endpoint is None:
        return None
    told = _version()
    listener = MetricsListener(
        lambda: metrics_page(broker, running, told), is_serving, CONTENT_TYPE
    )
    try:
        await listener.start(endpoint.host, endpoint.port)
    except OSError as error:
        raise SettingsError(
            f"monitoring.listener: cannot listen on {endpoint}: {error.strerror or error}; "
            "is another program listening there?"
        ) from error
    log.info("telling metrics", extra={"listener": str(replace(endpoint, port=listener.port))})
    return listener


def metrics_page(broker: Broker, running: Running, version_told: str) -> bytes:
    """Give all metrics of a broker as they are now."""
    readings = (
        *broker_readings(broker, running, version_told),
        *mirror_readings(
            broker.mirrors,
            broker.facts.image,
            broker.clock.now_ms(),
            series_max=broker.settings[MONITORING_PARTITION_SERIES_MAX],
        ),
        *process_readings(),
    )
    return render(readings)


def _version() -> str:
    try:
        return version("twinlog")
    except PackageNotFoundError:
        return "unknown"
