"""Which groups do not stand at the destination where they stand at a mirror's source."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from twinlog.cli.cluster import Cluster
from twinlog.cli.log_reading import Bounds, Place
from twinlog.cli.mirror_asking import patterns_of
from twinlog.cli.offsets import Offsets, committed_offsets, every_group
from twinlog.config.mirror import GROUPS_EXCLUDE, GROUPS_INCLUDE, matcher
from twinlog.mirroring.group_sync import LocalRange, SourceOffset, clamp
from twinlog.model.ids import Offset

NOWHERE: Final[Mapping[Place, Bounds]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, order=True)
class GroupChange:
    """A committed offset that is not, or cannot be, the source's."""

    group: str
    topic: str
    partition: int
    source_offset: int
    here: int
    """What is committed at the destination; -1 if nothing is."""
    possible: int
    """The source's, brought into what is mirrored."""
    possible_at_source: int | None = None
    """The source's, brought into what the source has; None if that is not known."""

    @property
    def is_clamped(self) -> bool:
        """Whether what is mirrored does not hold the source's offset."""
        return self.possible != self.source_offset

    @property
    def is_out_of_step(self) -> bool:
        """Whether a sync would still change it."""
        return self.here != self.possible

    @property
    def is_loss(self) -> bool:
        """Whether the group would go on elsewhere than at the source, or is not in step yet.

        What the source's own log does not hold is clamped there as well: no stop changes that.
        """
        return self.is_out_of_step or self.possible != self.possible_at_source

    def __str__(self) -> str:
        """Say it in a line."""
        at = f"group {self.group} on {self.topic}-{self.partition}"
        here = "nothing" if self.here < 0 else str(self.here)
        told = f"{at}: {self.source_offset} at the source, {here} here"
        if not self.is_clamped:
            return told
        how = "a sync would clamp it" if self.is_out_of_step else "clamped"
        told = f"{told}; {how} to {self.possible}"
        if self.is_loss:
            return told
        end = "begins" if self.source_offset < self.possible else "ends"
        return f"{told}, where the source's own log {end}"

    def as_json(self) -> dict[str, Any]:
        """Give it as a JSON object."""
        return {
            "group": self.group,
            "topic": self.topic,
            "partition": self.partition,
            "sourceOffset": self.source_offset,
            "destinationOffset": None if self.here < 0 else self.here,
            "clampedTo": self.possible if self.is_clamped else None,
            "isLoss": self.is_loss,
        }


def changes_of(
    group: str,
    at_source: Offsets,
    here: Offsets,
    mirrored: Mapping[Place, Bounds],
    there: Mapping[Place, Bounds] = NOWHERE,
) -> list[GroupChange]:
    """Compare what a group has committed on mirrored partitions."""
    found = []
    for place, offset in at_source.items():
        bounds = mirrored.get(place)
        if bounds is None:
            continue
        change = GroupChange(
            group,
            *place,
            offset,
            here.get(place, -1),
            _within(bounds, offset),
            _within(there[place], offset) if place in there else None,
        )
        if change.is_clamped or change.is_out_of_step:
            found.append(change)
    return sorted(found)


def _within(bounds: Bounds, offset: int) -> int:
    held = LocalRange(Offset(bounds.start), Offset(bounds.end))
    return clamp(SourceOffset(Offset(offset)), held).offset


async def group_changes(
    cluster: Cluster,
    source: Cluster,
    mirror: str,
    mirrored: Mapping[Place, Bounds],
    there: Mapping[Place, Bounds] = NOWHERE,
) -> list[GroupChange]:
    """Compare the groups that the mirror brings over."""
    include, exclude = await patterns_of(cluster, mirror, (GROUPS_INCLUDE, GROUPS_EXCLUDE))
    is_meant = matcher(include, exclude)
    found: list[GroupChange] = []
    for group in await every_group(source):
        if not is_meant(group.group_id):
            continue
        at_source = await committed_offsets(source, group.group_id)
        if at_source.keys() & mirrored.keys():
            here = await committed_offsets(cluster, group.group_id)
            found += changes_of(group.group_id, at_source, here, mirrored, there)
    return found
