"""Which groups do not stand at the destination where they stand at a mirror's source."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twinlog.cli.cluster import Cluster
from twinlog.cli.log_reading import Bounds, Place
from twinlog.cli.mirror_asking import patterns_of
from twinlog.cli.offsets import Offsets, committed_offsets, every_group
from twinlog.config.mirror import GROUPS_EXCLUDE, GROUPS_INCLUDE, matcher
from twinlog.mirroring.group_sync import LocalRange, SourceOffset, clamp
from twinlog.model.ids import Offset


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

    @property
    def is_clamped(self) -> bool:
        """Whether what is mirrored does not hold the source's offset."""
        return self.possible != self.source_offset

    @property
    def is_out_of_step(self) -> bool:
        """Whether a sync would still change it."""
        return self.here != self.possible

    def __str__(self) -> str:
        """Say it in a line."""
        at = f"group {self.group} on {self.topic}-{self.partition}"
        here = "nothing" if self.here < 0 else str(self.here)
        told = f"{at}: {self.source_offset} at the source, {here} here"
        if not self.is_clamped:
            return told
        how = "a sync would clamp it" if self.is_out_of_step else "clamped"
        return f"{told}; {how} to {self.possible}"

    def as_json(self) -> dict[str, Any]:
        """Give it as a JSON object."""
        return {
            "group": self.group,
            "topic": self.topic,
            "partition": self.partition,
            "sourceOffset": self.source_offset,
            "destinationOffset": None if self.here < 0 else self.here,
            "clampedTo": self.possible if self.is_clamped else None,
        }


def changes_of(
    group: str, at_source: Offsets, here: Offsets, mirrored: Mapping[Place, Bounds]
) -> list[GroupChange]:
    """Compare what a group has committed on mirrored partitions."""
    found = []
    for place, offset in at_source.items():
        bounds = mirrored.get(place)
        if bounds is None:
            continue
        held = LocalRange(Offset(bounds.start), Offset(bounds.end))
        possible = clamp(SourceOffset(Offset(offset)), held).offset
        change = GroupChange(group, *place, offset, here.get(place, -1), possible)
        if change.is_clamped or change.is_out_of_step:
            found.append(change)
    return sorted(found)


async def group_changes(
    cluster: Cluster, source: Cluster, mirror: str, mirrored: Mapping[Place, Bounds]
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
            found += changes_of(group.group_id, at_source, here, mirrored)
    return found
