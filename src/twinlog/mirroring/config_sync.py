"""Source and local overrides of a topic's settings -> what to set and what to delete here."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConfigPlan:
    """Overrides to set, and overrides to take away."""

    to_set: Mapping[str, str]
    to_delete: frozenset[str]

    @property
    def is_empty(self) -> bool:
        """Whether both sides agree already."""
        return not self.to_set and not self.to_delete


def plan_config(
    at_source: Mapping[str, str],
    here: Mapping[str, str],
    excluded: Collection[str],
    known_here: Collection[str],
) -> ConfigPlan:
    """Compare dynamic overrides; ``known_here`` are the settings that a topic can have here.

    What is excluded stays as it is here, and what this broker does not know is left out.
    """
    wanted = {
        key: value for key, value in at_source.items() if key not in excluded and key in known_here
    }
    return ConfigPlan(
        to_set={key: value for key, value in wanted.items() if here.get(key) != value},
        to_delete=frozenset(key for key in here if key not in wanted and key not in excluded),
    )
