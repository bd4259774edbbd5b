"""``--stop --plan``: looks at both clusters, changes nothing, tells what a stop would lose."""

import argparse
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Final

from twinlog.cli.cluster import Cluster
from twinlog.cli.failures import EXIT_FAILED, EXIT_OK, CliError
from twinlog.cli.log_reading import (
    Bounds,
    LogReader,
    OvertakenError,
    Place,
    bounds_of,
    offsets_at,
    places_beside,
    places_in,
)
from twinlog.cli.mirror_acls import acl_difference
from twinlog.cli.mirror_asking import (
    described,
    mirror_called,
    patterns_of,
    some_matching,
    source_of,
    topic_configs,
    topics_not_here,
)
from twinlog.cli.mirror_groups import GroupChange, group_changes
from twinlog.cli.mirror_tables import PartitionRow
from twinlog.cli.reading import LATEST, READ_COMMITTED
from twinlog.cli.stop_plan import (
    ConfigDifference,
    OpenTransaction,
    PartitionPlan,
    StopPlan,
    note_transactions,
)
from twinlog.cli.verdicts import NOT_HERE_YET
from twinlog.config.mirror import TOPIC_PROPERTIES_EXCLUDE
from twinlog.mirroring.config_sync import plan_config
from twinlog.model.errors import ApiError
from twinlog.wire.messages.configs import (
    DescribedConfig,
)
from twinlog.wire.messages.mirrors import ListedMirror

STOPPED: Final = "STOPPED"
UNKNOWN: Final = "UNKNOWN"
"""The state of what the mirror does not know of."""
OVERRIDE: Final = 1
"""The config source of what was set for the topic itself."""
TOPICS_AT_ONCE: Final = 100
UNDECIDED_BYTES_MAX: Final = 64 << 20
SAMPLED_BYTES_MAX: Final = 64 << 20


async def plan_stop(cluster: Cluster, options: argparse.Namespace) -> int:
    """Print what a stop would lose now; 0 if that is nothing."""
    mirror = await mirror_called(cluster, options.mirror)
    topics = some_matching(mirror, options.topics)
    here = await _Here.look(cluster, options.mirror, topics)
    async with AsyncExitStack() as stack:
        try:
            source = await stack.enter_async_context(source_of(mirror, options))
        except CliError as error:
            trouble = f"The source cannot be asked, so these are the last known figures: {error}"
            # One that hangs was waited for, and the lag has grown meanwhile.
            here = await _Here.look(cluster, options.mirror, topics)
            made = StopPlan(options.mirror, here.plans({}), None, None, troubles=(trouble,))
        else:
            made = await _with_source(cluster, source, mirror, here, options.topics)
    made.write(sys.stdout, as_json=options.json)
    return EXIT_OK if made.is_lossless else EXIT_FAILED


async def _with_source(
    cluster: Cluster, source: Cluster, mirror: ListedMirror, here: "_Here", meant: str | None
) -> StopPlan:
    there: dict[Place, Bounds | str] = {}
    not_here: list[PartitionPlan] = []
    troubles: list[str] = []
    groups: list[GroupChange] | None = None
    configs: list[ConfigDifference] | None = None
    try:
        there = await bounds_of(source, _places_of(here.rows))
        beside = await places_beside(source, _places_of(here.rows))
        new = await topics_not_here(cluster, source, mirror.mirror_name, meant)
        beside += await places_in(source, new)
        not_here = _not_here(mirror.mirror_name, await bounds_of(source, beside))
    except (CliError, ApiError) as error:
        troubles.append(f"The source's offsets are not known: {error}")
    mirrored, held = (
        {of: at for of, at in bounds.items() if isinstance(at, Bounds)}
        for bounds in (here.bounds, there)
    )
    try:
        groups = await group_changes(cluster, source, mirror.mirror_name, mirrored, held)
    except (CliError, ApiError) as error:
        troubles.append(f"Group offsets could not be compared: {error}")
    try:
        configs = await config_differences(cluster, source, mirror.mirror_name, here.topics)
    except (CliError, ApiError) as error:
        troubles.append(f"Topic settings could not be compared: {error}")
    acls = await acl_difference(cluster, source, mirror.mirror_name)
    every = sorted([*here.plans(there), *not_here], key=lambda plan: plan.row)
    plans = await _weighed(source, every)
    return StopPlan(mirror.mirror_name, plans, groups, configs, troubles, acls)


def _not_here(mirror: str, there: Mapping[Place, Bounds | str]) -> list[PartitionPlan]:
    """Plan for partitions of which nothing is here: all that the source has would be lost."""
    plans = []
    for (topic, partition), at in there.items():
        row = PartitionRow(mirror, topic, partition, None, None, UNKNOWN, 0, None)
        start, end = (at.start, at.end) if isinstance(at, Bounds) else (None, None)
        plans.append(
            PartitionPlan(row, end, here_end=start, source_start=start, trouble=NOT_HERE_YET)
        )
    return plans


async def _weighed(source: Cluster, plans: Sequence[PartitionPlan]) -> list[PartitionPlan]:
    """Read the first batches that would be lost where the mirror does not know their size."""
    made, byte_count = [], 0
    for plan in plans:
        sample = None
        if plan.byte_count is None and byte_count < SAMPLED_BYTES_MAX:
            sample = await _sample(source, plan)
        if sample is not None:
            byte_count += sample[0]
        made.append(replace(plan, sample=sample))
    return made


async def _sample(source: Cluster, plan: PartitionPlan) -> tuple[int, int] | None:
    row = plan.row
    if plan.here_end is None or plan.source_end is None:
        return None
    first = max(plan.here_end, plan.source_start or 0)
    reader = LogReader(source, row.topic, row.partition, first, plan.source_end)
    try:
        piece = await reader.next_piece()
    except (CliError, ApiError, OvertakenError):
        return None  # It is behind, if not by how many bytes.
    read = min(piece.next_offset, plan.source_end) - first
    return sum(mark.header.length for mark in piece.marks), read


@dataclass(frozen=True, slots=True)
class _Here:
    """What the destination knows by itself."""

    rows: Sequence[PartitionRow]
    bounds: Mapping[Place, Bounds | str]
    transactions: Mapping[Place, Sequence[OpenTransaction]]
    troubles: Mapping[Place, str]

    @property
    def topics(self) -> list[str]:
        return sorted({row.topic for row in self.rows})

    @classmethod
    async def look(cls, cluster: Cluster, mirror: str, topics: Collection[str]) -> "_Here":
        # What is stopped already is not changed by another stop.
        every = await described(cluster, mirror, topics)
        rows = [row for row in every if row.state != STOPPED]
        places = _places_of(rows)
        bounds = await bounds_of(cluster, places)
        stable = await offsets_at(cluster, places, LATEST, isolation=READ_COMMITTED)
        transactions: dict[Place, Sequence[OpenTransaction]] = {}
        troubles: dict[Place, str] = {}
        for place in places:
            at, undecided_from = bounds[place], stable[place]
            if not isinstance(at, Bounds):
                troubles[place] = at
            elif not isinstance(undecided_from, int):
                troubles[place] = undecided_from
            elif undecided_from < at.end:
                reader = LogReader(cluster, *place, undecided_from, at.end)
                transactions[place] = await _open_transactions(reader)
        return cls(rows, bounds, transactions, troubles)

    def plans(self, there: Mapping[Place, Bounds | str]) -> list[PartitionPlan]:
        made = []
        for row in self.rows:
            of = (row.topic, row.partition)
            at, at_source = self.bounds[of], there.get(of)
            trouble = self.troubles.get(of)
            if trouble is None and isinstance(at_source, str):
                trouble = f"at the source: {at_source}"
            made.append(
                PartitionPlan(
                    row=row,
                    source_start=at_source.start if isinstance(at_source, Bounds) else None,
                    source_end=at_source.end if isinstance(at_source, Bounds) else None,
                    here_end=at.end if isinstance(at, Bounds) else row.destination_offset,
                    transactions=self.transactions.get(of, ()),
                    trouble=trouble,
                )
            )
        return made


async def _open_transactions(reader: LogReader) -> list[OpenTransaction]:
    """Find which transactions are open behind the last stable offset, as far as the bound goes."""
    still_open: dict[int, OpenTransaction] = {}
    byte_count = 0
    first = reader.position
    try:
        while not reader.is_at_end and byte_count < UNDECIDED_BYTES_MAX:
            piece = await reader.next_piece()
            byte_count += sum(mark.header.length for mark in piece.marks)
            note_transactions(still_open, piece.marks)
            if piece.fault:
                break
    except (CliError, OvertakenError):
        pass  # That there is one is known from the last stable offset, if not whose it is.
    found = sorted(still_open.values(), key=lambda each: each.first_offset)
    return found or [OpenTransaction(-1, -1, first)]


def _places_of(rows: Sequence[PartitionRow]) -> list[Place]:
    return [(row.topic, row.partition) for row in rows]


async def config_differences(
    cluster: Cluster, source: Cluster, mirror: str, topics: Sequence[str]
) -> list[ConfigDifference]:
    """Compare what was set for each topic, by the rules of the mirror's own sync."""
    (excluded,) = await patterns_of(cluster, mirror, (TOPIC_PROPERTIES_EXCLUDE,))
    found: list[ConfigDifference] = []
    for first in range(0, len(topics), TOPICS_AT_ONCE):
        some = topics[first : first + TOPICS_AT_ONCE]
        ours, theirs = await topic_configs(cluster, some), await topic_configs(source, some)
        for topic in some:
            if topic in theirs and topic in ours:
                found += differences_of(topic, theirs[topic], ours[topic], excluded)
    return sorted(found)


def differences_of(
    topic: str,
    theirs: Sequence[DescribedConfig],
    ours: Sequence[DescribedConfig],
    excluded: Sequence[str],
) -> list[ConfigDifference]:
    """Give the settings that a sync would still change."""
    at_source, here = _overrides(theirs), _overrides(ours)
    plan = plan_config(at_source, here, excluded, {config.name for config in ours})
    names = {*plan.to_set, *plan.to_delete}
    return [ConfigDifference(topic, name, at_source.get(name), here.get(name)) for name in names]


def _overrides(configs: Sequence[DescribedConfig]) -> dict[str, str]:
    return {
        config.name: config.value
        for config in configs
        if config.config_source == OVERRIDE and config.value is not None
    }
