"""``--wait``: looks again and again until every partition is where it is wanted, within a bound."""

import argparse
import asyncio
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from twinlog.cli.cluster import Cluster
from twinlog.cli.failures import EXIT_FAILED, EXIT_OK, CliError
from twinlog.cli.mirror_asking import (
    EVERY_STATE,
    EVERY_TOPIC,
    described,
    mirror_called,
    patterns_of,
    some_matching,
    words,
)
from twinlog.cli.mirror_tables import FAILED, PartitionRow
from twinlog.cli.progress import ProgressBar
from twinlog.config.mirror import TOPICS_INCLUDE, matcher

POLL_S: Final = 0.25
UNANSWERED_MAX: Final = 40
TOLD_MAX: Final = 20
MIRRORING: Final = "MIRRORING"
STOPPED: Final = "STOPPED"
STATE_AFTER: Final = {
    "start": MIRRORING,
    "resume": MIRRORING,
    "pause": "PAUSED",
    "stop": STOPPED,
}


@dataclass(frozen=True, slots=True)
class Goal:
    """What is waited for: a state, or with None that nothing is left to mirror."""

    state: str | None = None

    def __str__(self) -> str:
        """Say it."""
        return f"state {MIRRORING} and lag 0" if self.state is None else f"state {self.state}"

    def is_reached_by(self, row: PartitionRow) -> bool:
        """Tell whether a partition is there."""
        if self.state is None:
            # A source that is dark, or cannot be followed now, may have more than it told last.
            is_current = not row.lag_ms and not row.error_message
            return row.state == MIRRORING and row.lag == 0 and is_current
        return row.state == self.state

    def is_lost_for(self, row: PartitionRow) -> bool:
        """Tell whether a partition will not get there by itself; a stop works from any state."""
        return row.state == FAILED and row.retry_attempt < 0 and self.state != STOPPED


@dataclass(frozen=True, slots=True)
class Standing:
    """How far the partitions are."""

    row_count: int
    missing: Sequence[PartitionRow]
    lost: Sequence[PartitionRow]

    @property
    def lag(self) -> int:
        """Records still to come, as far as is known."""
        return sum(row.lag or 0 for row in self.missing)

    @property
    def is_reached(self) -> bool:
        """Whether there are partitions, and all of them are there."""
        return self.row_count > 0 and not self.missing

    def __str__(self) -> str:
        """Say it in a few words."""
        done = self.row_count - len(self.missing)
        return f"{done} of {self.row_count} partition(s), lag {self.lag}"


def standing_of(rows: Sequence[PartitionRow], goal: Goal) -> Standing:
    """See how far the partitions are from the goal."""
    missing = [row for row in rows if not goal.is_reached_by(row)]
    return Standing(len(rows), missing, [row for row in missing if goal.is_lost_for(row)])


def lines_of(rows: Sequence[PartitionRow]) -> list[str]:
    """Say of each partition where it stands; of many, only of the first."""
    told = [
        f"{row.topic}-{row.partition} is {row.state}"
        f"{_lag_of(row)}"
        f"{f': {row.error_message}' if row.error_message else ''}"
        for row in rows[:TOLD_MAX]
    ]
    more = len(rows) - TOLD_MAX
    return [*told, f"and {more} more partition(s)"] if more > 0 else told


def _lag_of(row: PartitionRow) -> str:
    if row.lag is None:
        return ""
    is_dark = row.state == MIRRORING and row.lag == 0 and row.lag_ms
    return f", lag {row.lag}" + (f" as of {row.lag_ms} ms ago" if is_dark else "")


class Deadline:
    """When waiting ends; made inside a running event loop."""

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms: Final = timeout_ms
        self._loop = asyncio.get_running_loop()
        self._at_s = self._loop.time() + timeout_ms / 1_000

    @property
    def left_ms(self) -> int:
        """How long it still is; 0 when it is over."""
        return max(0, int((self._at_s - self._loop.time()) * 1_000))


async def wait(cluster: Cluster, options: argparse.Namespace) -> int:
    """Wait for a mirror's topics: those that are named, or all that it is to mirror."""
    goal = Goal(options.state)
    deadline = Deadline(options.timeout_ms)
    is_named = bool(words(options.topics))
    states = EVERY_STATE if is_named or options.state else (MIRRORING,)
    while True:
        mirror = await mirror_called(cluster, options.mirror, states)
        if is_named or mirror.topic_names or not deadline.left_ms:
            break
        (filters,) = await patterns_of(cluster, options.mirror, (TOPICS_INCLUDE,))
        if not filters:  # nothing will come by itself
            break
        await asyncio.sleep(POLL_S)
    if not is_named and not mirror.topic_names:
        where = "is to be mirrored" if states == (MIRRORING,) else "is there"
        raise CliError(
            f"no topic of mirror {options.mirror} {where}: see what it has with "
            f"kafka-cluster-mirrors.sh --describe --mirror {options.mirror}, and its "
            f"{TOPICS_INCLUDE.name} with kafka-configs.sh --entity-type cluster-mirrors --describe"
        )
    topics = some_matching(mirror, options.topics)
    return await wait_for(cluster, options.mirror, topics, goal, deadline)


async def wait_after(cluster: Cluster, options: argparse.Namespace) -> int:
    """Wait for what --start, --stop, --pause or --resume asked for."""
    state = STATE_AFTER[options.action]
    # A filter may have left some of those that are meant stopped.
    mirror = await mirror_called(cluster, options.mirror, (state,))
    is_meant = matcher(words(options.topics) or (EVERY_TOPIC,), words(options.exclude))
    topics = [name for name in mirror.topic_names or () if is_meant(name)]
    if not topics:
        return EXIT_OK
    # After a start, MIRRORING alone says little: what counts is that nothing is left to come.
    goal = Goal(state if options.state or state != MIRRORING else None)
    deadline = Deadline(options.timeout_ms)
    return await wait_for(cluster, options.mirror, topics, goal, deadline)


async def wait_for(
    cluster: Cluster, mirror: str, topics: Collection[str], goal: Goal, deadline: Deadline
) -> int:
    """Wait until all partitions of the topics reach the goal; tell which did not, if any."""
    progress = ProgressBar(sys.stderr)
    lag_max = 0
    try:
        while True:
            rows = await _looked(cluster, mirror, topics)
            standing = standing_of(rows, goal)
            if standing.is_reached or standing.lost or not deadline.left_ms:
                break
            lag_max = max(lag_max, standing.lag)
            # Records tell more than partitions do, where there is a lag at all.
            done, total = (
                (lag_max - standing.lag, lag_max)
                if goal.state is None and lag_max
                else (standing.row_count - len(standing.missing), standing.row_count)
            )
            progress.show(done, total, str(standing))
            await asyncio.sleep(POLL_S)
    finally:
        progress.clear()
    if standing.is_reached:
        print(f"Mirror {mirror}: {standing.row_count} partition(s) in {goal}")
        return EXIT_OK
    for line in lines_of(standing.lost or standing.missing):
        print(line, file=sys.stderr)
    gone = sorted(set(topics) - {row.topic for row in rows})
    if gone:
        print(f"mirror {mirror} has no partition of {', '.join(gone[:TOLD_MAX])}", file=sys.stderr)
    why = (
        "will not get there by itself" if standing.lost else f"not within {deadline.timeout_ms} ms"
    )
    print(f"Mirror {mirror}: {goal} was not reached: {standing}; {why}", file=sys.stderr)
    return EXIT_FAILED


async def _looked(cluster: Cluster, mirror: str, topics: Collection[str]) -> list[PartitionRow]:
    """Describe; a broker that restarts meanwhile is asked again, within bounds."""
    for _ in range(UNANSWERED_MAX - 1):
        try:
            return await described(cluster, mirror, topics)
        except CliError:
            await asyncio.sleep(POLL_S)
            await cluster.reconnect()
    return await described(cluster, mirror, topics)
