"""What the metrics of this broker's mirrors are at the moment."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from twinlog.broker.mirror_board import (
    ACLS,
    CONFIGS,
    GROUPS,
    SYNC_TASKS,
    TOPICS,
    LossKind,
    MirrorBoard,
    MirroredPartition,
    MirrorStatus,
)
from twinlog.cluster.image import ClusterImage
from twinlog.mirroring.lag import LagInputs
from twinlog.mirroring.states import ALIGNING, MirrorState
from twinlog.model.ids import TopicPartition
from twinlog.telemetry import families as of
from twinlog.telemetry.metrics import Reading, Sample, one

CLIENT_ID: Final = "MirrorReplica"
"""What the proposal calls the fetcher."""

BEHIND: Final = ALIGNING | {MirrorState.PAUSING, MirrorState.PAUSED, MirrorState.FAILED}
"""In which states a partition can lag: while it is stopped, nothing is expected of the source."""


def mirror_readings(
    board: MirrorBoard, image: ClusterImage, now_ms: int, *, series_max: int
) -> Iterator[Reading]:
    """Read all mirrors; each partition too, unless that are more than ``series_max``."""
    topics: Counter[str] = Counter(t.mirror.mirror for t in image.topics.values() if t.mirror)
    yield Reading(of.MIRROR_TOPICS, [((name,), topics[name]) for name in image.mirrors])
    yield from _states(board)
    yield from _lags(board, now_ms, series_max)
    yield from _counts(board)


def _states(board: MirrorBoard) -> Iterator[Reading]:
    by_mirror = {
        name: Counter(p.state for p in status.partitions.values())
        for name, status in board.statuses.items()
    }
    total: Counter[MirrorState] = sum(by_mirror.values(), Counter())
    for name, family in of.STATES.items():
        yield one(family, total[MirrorState[name]])
    yield Reading(
        of.MIRROR_PARTITIONS,
        [
            ((mirror, state.name), counts[state])
            for mirror, counts in by_mirror.items()
            for state in MirrorState
            if counts[state] or state in (MirrorState.MIRRORING, MirrorState.FAILED)
        ],
    )
    yield Reading(of.FAILED_FETCHES, [((CLIENT_ID,), total[MirrorState.FAILED])])


def _lags(board: MirrorBoard, now_ms: int, series_max: int) -> Iterator[Reading]:
    behind = {name: list(_behind(status)) for name, status in board.statuses.items()}
    lags = {name: [p.lag for _, p in found] for name, found in behind.items()}
    furthest = max((lag.records for some in lags.values() for lag in some), default=0)
    yield Reading(of.MAX_LAG, [((CLIENT_ID,), max(0, furthest))])
    yield Reading(
        of.LAG_RECORDS,
        [((name,), sum(max(0, lag.records) for lag in some)) for name, some in lags.items()],
    )
    yield Reading(
        of.LAG_BYTES,
        [
            ((name,), byte_count)
            for name, some in lags.items()
            if (byte_count := _bytes_of(some)) is not None
        ],
    )
    yield Reading(
        of.LAG_SECONDS,
        [
            ((name,), max((_seconds(lag, board.statuses[name], now_ms) for lag in some), default=0))
            for name, some in lags.items()
        ],
    )
    yield Reading(of.SOURCE_SILENT, _silences(board, now_ms))
    if sum(map(len, behind.values())) <= series_max:
        yield from _partition_lags(board, behind, now_ms)


def _bytes_of(lags: Sequence[LagInputs]) -> int | None:
    """Add up what is lacking; None if the size of no record is known, or no partition answered.

    One that has failed, or of which nothing came yet, must not hide what the others lack.
    """
    if lags and all(lag.records < 0 for lag in lags):
        return None
    sized = sum(max(0, lag.bytes) for lag in lags)
    unsized = sum(lag.records for lag in lags if lag.records > 0 and lag.bytes < 0)
    if not unsized:
        return sized
    came = sum(lag.records_mirrored for lag in lags)
    return sized + unsized * sum(lag.bytes_mirrored for lag in lags) // came if came else None


def _behind(status: MirrorStatus) -> Iterator[tuple[TopicPartition, MirroredPartition]]:
    return ((name, p) for name, p in status.partitions.items() if p.state in BEHIND)


def _silences(board: MirrorBoard, now_ms: int) -> Iterator[Sample]:
    is_held = board.throttle.wait_ms(now_ms) > 0
    for name, status in board.statuses.items():
        # What we hold back ourselves says nothing of the source.
        held = status.throttled if is_held else frozenset()
        answered = [
            p.lag.answered_at_ms
            for of_partition, p in status.partitions.items()
            if _is_asked(p) and of_partition not in held
        ]
        if answered:
            since_ms = max(max(answered), status.begun_at_ms, status.put_off_at_ms)
            yield (name,), (now_ms - since_ms) / 1000


def _is_asked(partition: MirroredPartition) -> bool:
    return partition.state in ALIGNING


def _seconds(lag: LagInputs, status: MirrorStatus, now_ms: int) -> float:
    """Give how long a partition has not been level; of one that never was, since we wait."""
    seconds = lag.seconds(now_ms)
    return seconds if seconds >= 0 else (now_ms - status.begun_at_ms) / 1000


def _partition_lags(
    board: MirrorBoard,
    behind: dict[str, list[tuple[TopicPartition, MirroredPartition]]],
    now_ms: int,
) -> Iterator[Reading]:
    named: list[tuple[tuple[str, str, int], LagInputs]] = [
        ((mirror, name.topic, name.partition), partition.lag)
        for mirror, found in behind.items()
        for name, partition in found
    ]
    yield Reading(of.PARTITION_LAG_RECORDS, [(key, lag.records) for key, lag in named])
    yield Reading(of.PARTITION_LAG_BYTES, [(key, lag.bytes) for key, lag in named])
    yield Reading(
        of.PARTITION_LAG_SECONDS,
        [(key, _seconds(lag, board.statuses[key[0]], now_ms)) for key, lag in named],
    )
    yield Reading(of.CONSUMER_LAG, [((CLIENT_ID, *key[1:]), lag.records) for key, lag in named])


def _counts(board: MirrorBoard) -> Iterator[Reading]:
    counts = board.counts.items()
    yield Reading(of.MIRROR_FETCHES, [((name,), counted.fetches) for name, counted in counts])
    yield Reading(
        of.MIRROR_FETCH_FAILURES, [((name,), counted.fetch_failures) for name, counted in counts]
    )
    yield Reading(
        of.MIRROR_FETCH_BYTES, [((name,), counted.fetched_bytes) for name, counted in counts]
    )
    yield Reading(
        of.THROTTLED,
        [((name,), len(status.throttled)) for name, status in board.statuses.items()],
    )
    rate = board.throttle.rate
    yield Reading(of.THROTTLED_RATE, [] if board.throttle.is_unlimited else [((), rate)])
    yield Reading(
        of.LOSSES,
        [((name, k.value), counted.losses[k]) for name, counted in counts for k in LossKind],
    )
    yield Reading(
        of.LOST_RECORDS,
        [((name, k.value), counted.lost_records[k]) for name, counted in counts for k in LossKind],
    )
    yield one(of.REFRESH_ERRORS, board.task_errors[TOPICS])
    yield one(of.CONFIG_ERRORS, board.task_errors[CONFIGS])
    yield one(of.GROUP_ERRORS, board.task_errors[GROUPS])
    yield one(of.ACL_ERRORS, board.task_errors[ACLS])
    yield Reading(
        of.SYNC_ERRORS,
        [
            ((name, task), counted.task_errors[task])
            for name, counted in counts
            for task in SYNC_TASKS
        ],
    )
