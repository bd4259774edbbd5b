"""``--stop --promote``: a stop that loses nothing, because it waits for all that the source has."""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

from twinlog.cli.cluster import Cluster
from twinlog.cli.failures import EXIT_FAILED, EXIT_OK, CliError
from twinlog.cli.log_reading import Bounds, Place, bounds_of, places_beside
from twinlog.cli.mirror_asking import (
    described,
    mirror_called,
    some_matching,
    source_of,
    topics_not_here,
)
from twinlog.cli.mirror_groups import group_changes
from twinlog.cli.mirror_plan import config_differences
from twinlog.cli.mirror_tables import PartitionRow
from twinlog.cli.mirror_wait import MIRRORING, STOPPED, Deadline, Goal, lines_of, wait_for
from twinlog.cli.progress import ProgressBar
from twinlog.model.errors import ApiError
from twinlog.wire.messages.mirrors import ListedMirror

POLL_S: Final = 0.25
SYNC_WAIT_MS: Final = 15_000
STOP_WAIT_MS_MIN: Final = 30_000
TOLD_MAX: Final = 20
OBSTACLES: Final = ("FAILED", "PAUSED", "PAUSING")
NOT_PROMOTED: Final = "not promoted: "
PLAIN_STOP: Final = "If the source is lost, stop without --promote: --plan shows what that loses"

Stop = Callable[[int], Awaitable[int]]
"""Given the metadata revision at which it was decided."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One look at all partitions that are not stopped: here first, then at the source."""

    rows: Sequence[PartitionRow]
    here: Mapping[Place, Bounds]
    there: Mapping[Place, Bounds]
    new: Sequence[Place] = ()
    """Partitions of the source that are not mirrored yet."""

    @property
    def lag(self) -> int:
        """Records that the source has and the destination has not."""
        return sum(max(0, at.end - self.here[of].end) for of, at in self.there.items())

    @property
    def is_level(self) -> bool:
        """Whether the destination had everything that the source has a moment later."""
        return not self.lag and not self.new and all(row.state == MIRRORING for row in self.rows)


def obstacles_of(rows: Sequence[PartitionRow]) -> list[PartitionRow]:
    """Give the partitions for which waiting is of no use."""
    return [row for row in rows if row.state in OBSTACLES]


def beyond_the_stop(rows: Sequence[PartitionRow], there: Mapping[Place, Bounds]) -> list[str]:
    """Say where the source has more than what was mirrored when it was stopped."""
    told = []
    for row in rows:
        bounds = there.get((row.topic, row.partition))
        if bounds is None or row.last_mirror_offset is None:
            continue
        more = bounds.end - row.last_mirror_offset
        if more > 0:
            told.append(
                f"{row.topic}-{row.partition}: the source has {more} record(s) more, from offset "
                f"{row.last_mirror_offset} on: a producer still writes there"
            )
    return told


def _tell(lines: Sequence[str], of: str) -> None:
    """Print the first lines, and how many more there are."""
    for line in lines[:TOLD_MAX]:
        print(line, file=sys.stderr)
    if len(lines) > TOLD_MAX:
        print(f"and {len(lines) - TOLD_MAX} more {of}", file=sys.stderr)


def _not_promoted(error: CliError | ApiError) -> CliError:
    """Say that nothing was stopped, and what to do if the source is lost."""
    why = str(error)
    if why.startswith(NOT_PROMOTED):
        return CliError(why)
    end = "" if why.endswith((".", "?")) else "."
    return CliError(f"{NOT_PROMOTED}{why}{end} Nothing was stopped. {PLAIN_STOP}")


async def promote(cluster: Cluster, options: argparse.Namespace, stop: Stop) -> int:
    """Wait for lag 0 and a last sync of the groups, stop, and see that nothing was left behind."""
    mirror = await mirror_called(cluster, options.mirror)
    topics = some_matching(mirror, options.topics)
    async with AsyncExitStack() as stack:
        try:
            source = await stack.enter_async_context(source_of(mirror, options))
        except CliError as error:
            raise _not_promoted(error) from error
        promotion = _Promotion(cluster, source, mirror, topics, options)
        return await promotion.run(stop)


@dataclass(frozen=True, slots=True)
class Behind:
    """What a sync has not brought yet; the records are all here."""

    groups: Sequence[str] = ()
    settings: Sequence[str] = ()
    trouble: str | None = None
    """Why the settings are not known."""

    @property
    def count(self) -> int:
        """What can be waited for."""
        return len(self.groups) + len(self.settings)

    def tell(self) -> None:
        """Name each."""
        _tell([f"not in step: {change}" for change in self.groups], "group offset(s)")
        _tell([f"not in step: {change}" for change in self.settings], "setting(s)")
        if self.trouble is not None:
            print(f"Topic settings could not be compared: {self.trouble}", file=sys.stderr)

    def __str__(self) -> str:
        """Say how many in a few words."""
        groups = f"{len(self.groups)} group offset(s) not" if self.groups else "groups"
        settings = f", {len(self.settings)} setting(s) not in step" if self.settings else ""
        return f"{groups} in step{settings}"


class _Promotion:
    def __init__(
        self,
        cluster: Cluster,
        source: Cluster,
        mirror: ListedMirror,
        topics: Sequence[str],
        options: argparse.Namespace,
    ) -> None:
        self._cluster = cluster
        self._source = source
        self._mirror = mirror.mirror_name
        self._decided_at = mirror.state_offset
        self._topics = topics
        self._meant: str = options.topics
        self._timeout_ms: int = options.timeout_ms
        self._deadline = Deadline(self._timeout_ms)
        self._progress = ProgressBar(sys.stderr)

    async def run(self, stop: Stop) -> int:
        try:
            behind = await self._until_ready()
        except (CliError, ApiError) as error:
            raise _not_promoted(error) from error
        finally:
            self._progress.clear()
        behind.tell()
        code = await stop(self._decided_at)
        if code != EXIT_OK:
            return code
        deadline = Deadline(max(STOP_WAIT_MS_MIN, self._deadline.left_ms))
        goal = Goal(STOPPED)
        code = await wait_for(self._cluster, self._mirror, self._topics, goal, deadline)
        if code != EXIT_OK:
            return code
        try:
            return await self._proved(behind)
        except (CliError, ApiError) as error:
            raise CliError(
                "stopped, with lag 0 a moment before, but whether the source has more by now is "
                f"not known: {error}"
            ) from error

    async def _until_ready(self) -> Behind:
        """Return when all is here; give the groups and settings that are not in step even so."""
        await self._expect_no_new_topic()
        sync_deadline = Deadline(min(SYNC_WAIT_MS, self._timeout_ms))
        while True:
            seen = await self._until_level()
            behind = await self._behind(seen)
            if behind.count and sync_deadline.left_ms:
                self._progress.show(0, 1, str(behind))
                await asyncio.sleep(POLL_S)
                continue
            await self._expect_no_new_topic()
            seen = await self._look()
            if seen.is_level:
                return behind
            self._expect_time_for(seen)

    async def _expect_no_new_topic(self) -> None:
        """Raise CliError where a topic is meant that is not here: the stop would leave it out."""
        new = await topics_not_here(self._cluster, self._source, self._mirror, self._meant)
        if new:
            more = f" and {len(new) - TOLD_MAX} more" if len(new) > TOLD_MAX else ""
            raise CliError(
                f"{NOT_PROMOTED}{', '.join(new[:TOLD_MAX])}{more} of the source is meant, too, and "
                "not mirrored yet. Wait until --describe tells of it, or name the others"
            )

    async def _behind(self, seen: Seen) -> Behind:
        changes = await group_changes(self._cluster, self._source, self._mirror, seen.here)
        groups = [str(change) for change in changes if change.is_out_of_step]
        topics = sorted({topic for topic, _ in seen.here})
        try:
            told = await config_differences(self._cluster, self._source, self._mirror, topics)
        except (CliError, ApiError) as error:  # as where they may not be seen: it stops nothing
            return Behind(groups, trouble=str(error))
        return Behind(groups, [str(difference) for difference in told])

    async def _until_level(self) -> Seen:
        lag_max = 0
        while True:
            seen = await self._look()
            if seen.is_level:
                return seen
            self._expect_time_for(seen)
            lag_max = max(lag_max, seen.lag)
            self._progress.show(lag_max - seen.lag, lag_max, f"lag {seen.lag}")
            await asyncio.sleep(POLL_S)

    def _expect_time_for(self, seen: Seen) -> None:
        """Raise CliError, which says what is behind, when the time is over."""
        if self._deadline.left_ms:
            return
        waiting = [row for row in seen.rows if row.state != MIRRORING]
        new = [f"{topic}-{partition} is not mirrored yet" for topic, partition in seen.new]
        told = "; ".join(["", *lines_of(waiting), *new[:TOLD_MAX]])
        raise CliError(
            f"not promoted: lag {seen.lag} after {self._timeout_ms} ms{told}. "
            "Stop the producers at the source first, or wait longer with --timeout-ms"
        )

    async def _look(self) -> Seen:
        rows = await described(self._cluster, self._mirror, self._topics)
        rows = [row for row in rows if row.state != STOPPED]
        hindering = obstacles_of(rows)
        if hindering:
            raise CliError(
                f"not promoted: {'; '.join(lines_of(hindering))}. Let them go on first "
                "(--recover, --resume), or stop without --promote"
            )
        here = await self._bounds(self._cluster, rows, "here")
        there = await self._bounds(self._source, rows, "at the source")
        return Seen(rows, here, there, await places_beside(self._source, list(there)))

    async def _bounds(
        self, cluster: Cluster, rows: Sequence[PartitionRow], where: str
    ) -> dict[Place, Bounds]:
        found: dict[Place, Bounds] = {}
        places = [(row.topic, row.partition) for row in rows]
        for place, bounds in (await bounds_of(cluster, places)).items():
            if isinstance(bounds, str):
                raise CliError(f"{place[0]}-{place[1]} {where}: {bounds}")
            found[place] = bounds
        return found

    async def _proved(self, behind: Behind) -> int:
        """See whether the source has gone on while it was stopped."""
        rows = await described(self._cluster, self._mirror, self._topics)
        left = beyond_the_stop(rows, await self._bounds(self._source, rows, "at the source"))
        _tell(left, "partition(s)")
        if left:
            return EXIT_FAILED
        print(f"Promoted {len(self._topics)} topic(s) of mirror {self._mirror}: lag 0, {behind}")
        return EXIT_OK
