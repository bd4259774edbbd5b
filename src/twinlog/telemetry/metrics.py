"""Counters and gauges: plain numbers, read when somebody asks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

SERIES_MAX: Final = 100_000


@dataclass(frozen=True, slots=True)
class Sample:
    """The value of one series at the moment of reading."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float


class Counter:
    """A number that only grows. Add to ``value`` directly where every nanosecond counts."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def add(self, count: int = 1) -> None:
        """Count ``count`` more."""
        self.value += count


class Registry:
    """All series of a process. A counter asked for twice under the same name is the same one."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, tuple[tuple[str, str], ...]], Counter | _Gauge] = {}
        self._docs: dict[str, str] = {}

    def counter(self, name: str, doc: str, **labels: str) -> Counter:
        """Give the counter of this name and these labels; it is made when it is new."""
        key = (name, tuple(sorted(labels.items())))
        found = self._series.get(key)
        if found is None:
            found = Counter()
            self._add(key, doc, found)
        assert isinstance(found, Counter), f"{name} is a gauge"
        return found

    def gauge(self, name: str, doc: str, read: Callable[[], float], **labels: str) -> None:
        """Let ``read`` tell the value whenever it is asked for; it replaces an earlier one."""
        key = (name, tuple(sorted(labels.items())))
        assert not isinstance(self._series.get(key), Counter), f"{name} is a counter"
        self._add(key, doc, _Gauge(read))

    def forget(self, name: str, **labels: str) -> None:
        """Drop a series, as when its partition is gone."""
        self._series.pop((name, tuple(sorted(labels.items()))), None)

    def doc_of(self, name: str) -> str:
        """Give what a name stands for."""
        return self._docs[name]

    def read(self) -> Iterator[Sample]:
        """Give all series, by name and labels."""
        for name, labels in sorted(self._series):
            series = self._series[name, labels]
            value = series.value if isinstance(series, Counter) else series.read()
            yield Sample(name, labels, value)

    def _add(
        self, key: tuple[str, tuple[tuple[str, str], ...]], doc: str, series: "Counter | _Gauge"
    ) -> None:
        assert len(self._series) < SERIES_MAX, f"more than {SERIES_MAX} series: which label runs?"
        self._series[key] = series
        self._docs[key[0]] = doc


@dataclass(frozen=True, slots=True)
class _Gauge:
    read: Callable[[], float]
