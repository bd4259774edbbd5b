"""``--verify``: both logs of each mirrored partition are read over the network and compared."""

import argparse
import asyncio
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from twinlog.cli.batch_comparison import Comparison, Side
from twinlog.cli.cluster import Cluster
from twinlog.cli.failures import EXIT_FAILED, EXIT_OK, CliError
from twinlog.cli.log_reading import Bounds, LogReader, OvertakenError, bounds_of, places_beside
from twinlog.cli.mirror_asking import (
    described,
    mirror_called,
    some_matching,
    source_of,
    topic_configs,
)
from twinlog.cli.mirror_tables import FAILED, PartitionRow
from twinlog.cli.progress import ProgressBar
from twinlog.cli.verdicts import (
    DIFFERENT,
    NOT_HERE_YET,
    STOPPED_STATES,
    Verdict,
    VerifyView,
)
from twinlog.model.errors import ApiError
from twinlog.wire.messages.mirrors import ListedMirror

AT_ONCE_MAX: Final = 4
STOPPED: Final = "STOPPED"
CLEANUP_POLICY: Final = "cleanup.policy"
COMPACTED: Final = (
    "the source compacts this topic; what it has cleaned since it was mirrored is not the same here"
)


@dataclass(frozen=True, slots=True)
class Task:
    """A partition, and the offsets of it (end exclusive) that are to be compared.

    Where the log of a side ends before ``end``, what the other has from there on is a difference.
    """

    topic: str
    partition: int
    start: int
    end: int
    source_end: int
    destination_end: int
    source_start: int


async def verify(cluster: Cluster, options: argparse.Namespace) -> int:
    """Compare; print what was found; 0 if every partition is equal."""
    mirror = await mirror_called(cluster, options.mirror)
    topics = some_matching(mirror, options.topics)
    async with source_of(mirror, options) as source:
        verdicts = await _compared(cluster, source, mirror, topics)
    view = VerifyView(mirror.mirror_name, verdicts)
    view.write(sys.stdout, as_json=options.json)
    return EXIT_OK if view.is_equal else EXIT_FAILED


async def _compared(
    cluster: Cluster, source: Cluster, mirror: ListedMirror, topics: Sequence[str]
) -> list[Verdict]:
    rows = await described(cluster, mirror.mirror_name, topics)
    verdicts: list[Verdict] = []
    tasks: list[Task] = []
    # The destination is asked first: then what it has, the source must have had before.
    places = [(row.topic, row.partition) for row in rows]
    here = await bounds_of(cluster, places)
    there = await bounds_of(source, places)
    for row, place in zip(rows, places, strict=True):
        task = plan_task(row, here[place], there[place])
        if isinstance(task, str):
            verdicts.append(Verdict(*place, why=task))
        else:
            tasks.append(task)
    followed = [of for row, of in zip(rows, places, strict=True) if row.state != STOPPED]
    beside = await places_beside(source, followed)
    verdicts += [Verdict(*place, why=NOT_HERE_YET) for place in beside]
    verdicts += await _Runner(cluster, source, ProgressBar(sys.stderr)).run(tasks)
    told = dict(zip(places, rows, strict=True))
    verdicts = [replace(one, row=told.get((one.topic, one.partition))) for one in verdicts]
    verdicts = await _explained(source, verdicts)
    return sorted(verdicts, key=lambda v: (v.topic, v.partition))


async def _explained(source: Cluster, verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Note beside what differs why its partition failed, or that the source compacts the topic."""
    verdicts = [
        replace(one, note=f"{one.row.state}, {one.row.error_message}")
        if one.result == DIFFERENT and one.row is not None and one.row.state == FAILED
        else one
        for one in verdicts
    ]
    unexplained = [one for one in verdicts if one.result == DIFFERENT and one.note is None]
    topics = sorted({verdict.topic for verdict in unexplained})
    if not topics:
        return verdicts
    try:
        told = await topic_configs(source, topics, (CLEANUP_POLICY,))
    except (CliError, ApiError):  # The differences stand, explained or not.
        return verdicts
    compacted = {
        topic
        for topic, configs in told.items()
        if any(c.name == CLEANUP_POLICY and "compact" in (c.value or "") for c in configs)
    }
    return [
        replace(verdict, note=COMPACTED)
        if verdict in unexplained and verdict.topic in compacted
        else verdict
        for verdict in verdicts
    ]


def plan_task(row: PartitionRow, here: Bounds | str, there: Bounds | str) -> Task | str:
    """Say which offsets of a partition are to be compared, or why none can be."""
    if isinstance(here, str):
        return f"at the destination: {here}"
    if isinstance(there, str):
        return f"at the source: {there}"
    end = here.end
    if row.state in STOPPED_STATES:
        # What was written here since is not the mirror's.
        if row.last_mirror_offset is None:
            return f"it is {row.state}, and the broker does not tell how far it was mirrored"
        end = row.last_mirror_offset
    start = max(here.start, there.start)
    if start > end:
        return (
            f"no offset is in both logs: the source's begins at {there.start}, the destination's "
            f"at {here.start}, and {end} is the end of what was mirrored"
        )
    return Task(
        row.topic,
        row.partition,
        start,
        end,
        source_end=max(start, min(end, there.end)),
        destination_end=max(start, min(end, here.end)),
        source_start=there.start,
    )


class _Runner:
    """Compares some partitions at a time."""

    def __init__(self, cluster: Cluster, source: Cluster, progress: ProgressBar) -> None:
        self._clusters: Mapping[Side, Cluster] = {Side.SOURCE: source, Side.DESTINATION: cluster}
        self._progress = progress
        self._offsets_done = 0
        self._offsets = 0
        self._name = ""

    async def run(self, tasks: Collection[Task]) -> list[Verdict]:
        self._offsets = sum(task.end - task.start for task in tasks)
        waiting = iter(list(tasks))
        verdicts: list[Verdict] = []

        async def work() -> None:
            for task in waiting:
                self._name = f"{task.topic}-{task.partition}"
                verdicts.append(await self._verdict_of(task))

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(AT_ONCE_MAX, len(tasks))):
                    group.create_task(work())
        finally:
            self._progress.clear()
        return verdicts

    async def _verdict_of(self, task: Task) -> Verdict:
        comparison = Comparison(task.start, task.end)
        why = None
        try:
            await self._compare(task, comparison)
        except CliError as error:
            why = str(error)
        verdict = Verdict(task.topic, task.partition, comparison, why)
        return replace(verdict, source_start=task.source_start)

    async def _compare(self, task: Task, comparison: Comparison) -> None:
        of = (task.topic, task.partition)
        ends = {Side.SOURCE: task.source_end, Side.DESTINATION: task.destination_end}
        readers = {
            side: LogReader(self._clusters[side], *of, task.start, end)
            for side, end in ends.items()
        }
        told = task.start
        while not comparison.is_over:
            for side in Side:
                if comparison.wants(side):
                    await self._read(side, readers, comparison)
            reached = min(task.end, *(reader.position for reader in readers.values()))
            self._offsets_done += max(0, reached - told)
            told = max(told, reached)
            self._progress.show(self._offsets_done, self._offsets, self._name)
        self._offsets_done += task.end - told

    async def _read(
        self, side: Side, readers: Mapping[Side, LogReader], comparison: Comparison
    ) -> None:
        """Read the next piece of one side; go on behind what it has deleted meanwhile."""
        reader = readers[side]
        if reader.is_at_end:
            comparison.finish(side)
            return
        try:
            piece = await reader.next_piece()
        except OvertakenError:
            await self._go_on_later(side, readers, comparison)
            return
        except CliError as error:
            raise CliError(f"at the {side.value}: {error}") from error
        comparison.take(side, piece.marks)
        if piece.fault:
            comparison.give_up(side, piece.next_offset, piece.fault)

    async def _go_on_later(
        self, side: Side, readers: Mapping[Side, LogReader], comparison: Comparison
    ) -> None:
        reader = readers[side]
        place = (reader.topic, reader.partition)
        bounds = (await bounds_of(reader.cluster, [place]))[place]
        if isinstance(bounds, str):
            raise CliError(f"at the {side.value}: {bounds}")
        if bounds.start <= reader.position:
            raise CliError(
                f"at the {side.value}: offset {reader.position} is not there; its log has "
                f"{bounds.start} up to {bounds.end}"
            )
        comparison.skip_to(bounds.start)
        for each in readers.values():
            each.position = max(each.position, bounds.start)
