"""What a metric is: a declared family, and the values its series have when somebody asks."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias


class Kind(Enum):
    """Whether a number only grows."""

    COUNTER = "counter"
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """All series of one name. A series has a value for every label, or, as a total, none."""

    name: str
    kind: Kind
    doc: str
    labels: tuple[str, ...] = ()


Sample: TypeAlias = tuple[tuple[str | int, ...], float]
"""The values of a series' labels, in the order of its family, and its number."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What the series of a family are at the moment."""

    family: Family
    samples: Iterable[Sample]


def counter(name: str, doc: str, *labels: str) -> Family:
    """Declare a number that only grows; its name ends in ``_total``."""
    assert name.endswith("_total"), f"{name} should end in _total"
    return Family(name, Kind.COUNTER, doc, labels)


def gauge(name: str, doc: str, *labels: str) -> Family:
    """Declare a number that comes and goes."""
    return Family(name, Kind.GAUGE, doc, labels)


def one(family: Family, value: float) -> Reading:
    """Read a family that has a single series without labels."""
    return Reading(family, (((), value),))
