"""Mirrors on a board, and what is told of them; then one that really runs."""

from pathlib import Path
from uuid import UUID

from support.http import http_get, samples
from support.mirrored_pair import Pair, mirrored_pair, until
from twinlog.broker.mirror_board import GROUPS, LossKind, MirrorBoard, MirrorStatus
from twinlog.broker.mirror_readings import mirror_readings
from twinlog.cluster.facts import DesiredState, MirrorFact, MirrorTopicFact, TopicFact
from twinlog.cluster.image import ClusterImage
from twinlog.mirroring.lag import LagInputs
from twinlog.mirroring.states import MirrorState
from twinlog.model.ids import Offset, TopicId, TopicName, TopicPartition
from twinlog.telemetry.exposition import render

NAME = TopicName("t")
TOPIC = TopicFact(
    NAME, TopicId(UUID(int=7)), (), mirror=MirrorTopicFact("m", DesiredState.MIRRORING)
)
IMAGE = ClusterImage(
    cluster_id="c", topics={NAME: TOPIC}, mirrors={"m": MirrorFact("m", {}, "source")}
)
MANAGER = "kafka_server_mirror_mirrormetadatamanager"


class Mirrored:
    """A partition as the board knows it."""

    def __init__(self, state: MirrorState, lag: LagInputs | None = None) -> None:
        self.state = state
        self.lag = LagInputs() if lag is None else lag
        self.trouble: str | None = None
        self.is_aligned = state == MirrorState.MIRRORING


def board_of(*partitions: Mirrored, begun_at_ms: int = 0) -> tuple[MirrorBoard, MirrorStatus]:
    board, status = MirrorBoard(), MirrorStatus()
    board.begin("m", status, begun_at_ms)
    for index, partition in enumerate(partitions):
        status.partitions[TopicPartition(NAME, index)] = partition
    return board, status


def read(board: MirrorBoard, now_ms: int, series_max: int = 10) -> dict[str, float]:
    return samples(render(mirror_readings(board, IMAGE, now_ms, series_max=series_max)).decode())


def lagging(source: int, here: int, answered_at_ms: int, bytes_each: int = 100) -> LagInputs:
    lag = LagInputs()
    lag.appended(here, here * bytes_each)
    lag.answered(Offset(here), Offset(here), answered_at_ms - 1_000)
    lag.answered(Offset(source), Offset(here), answered_at_ms)
    return lag


def test_partitions_are_counted_by_state() -> None:
    states = (MirrorState.MIRRORING, MirrorState.FAILED, MirrorState.FAILED, MirrorState.UNKNOWN)
    found = read(board_of(*map(Mirrored, states))[0], 0)
    assert found[f"{MANAGER}_mirroringpartitionstate"] == 1
    assert found[f"{MANAGER}_failedpartitionstate"] == 2
    assert found[f"{MANAGER}_ulerecoverypartitionstate"] == 0
    assert found['twinlog_mirror_partitions{mirror="m",state="FAILED"}'] == 2
    assert found['twinlog_mirror_partitions{mirror="m",state="UNKNOWN"}'] == 1
    assert found[f'{MANAGER}_mirrortopiccount{{mirrorname="m"}}'] == 1


def test_lag_is_told_in_records_bytes_and_seconds() -> None:
    near = Mirrored(MirrorState.MIRRORING, lagging(12, 10, 5_000))
    far = Mirrored(MirrorState.MIRRORING, lagging(40, 10, 5_000))
    found = read(board_of(near, far)[0], 6_000)
    assert found['twinlog_mirror_lag_records{mirror="m"}'] == 32
    assert found['twinlog_mirror_lag_bytes{mirror="m"}'] == 3_200
    assert found['twinlog_mirror_lag_seconds{mirror="m"}'] == 2
    assert found['kafka_server_mirrorfetchermanager_maxlag{clientId="MirrorReplica"}'] == 30
    labels = 'mirror="m",topic="t",partition="1"'
    assert found[f"twinlog_mirror_partition_lag_records{{{labels}}}"] == 30
    assert found[f"twinlog_mirror_partition_lag_bytes{{{labels}}}"] == 3_000
    assert found[f"twinlog_mirror_partition_lag_seconds{{{labels}}}"] == 2


def test_one_partition_of_which_nothing_is_known_does_not_hide_the_bytes_of_the_others() -> None:
    total = 'twinlog_mirror_lag_bytes{mirror="m"}'
    far = Mirrored(MirrorState.MIRRORING, lagging(40, 10, 5_000))
    failed = Mirrored(MirrorState.FAILED)
    fresh = Mirrored(MirrorState.MIRRORING, lagging(7, 0, 5_000))
    assert read(board_of(far, failed)[0], 6_000)[total] == 3_000
    assert read(board_of(far, fresh)[0], 6_000)[total] == 3_700, "of the others' size"
    assert total not in read(board_of(fresh, failed)[0], 6_000)
    assert total not in read(board_of(failed)[0], 6_000)


def test_with_many_partitions_only_the_mirror_is_told() -> None:
    found = read(board_of(*[Mirrored(MirrorState.MIRRORING)] * 3)[0], 0, series_max=2)
    assert not any("partition_lag" in series for series in found)
    assert 'twinlog_mirror_lag_seconds{mirror="m"}' in found


def test_seconds_and_silence_grow_while_the_source_is_dark() -> None:
    level = LagInputs()
    level.answered(Offset(10), Offset(10), 1_000)
    board, _ = board_of(Mirrored(MirrorState.MIRRORING, level))
    assert read(board, 2_000)['twinlog_mirror_lag_seconds{mirror="m"}'] == 0
    later = read(board, 61_000)
    assert later['twinlog_mirror_lag_seconds{mirror="m"}'] == 60
    assert later['twinlog_mirror_source_silent_seconds{mirror="m"}'] == 60


def test_a_source_whose_quota_is_used_up_is_not_silent_and_may_have_more() -> None:
    level = LagInputs()
    level.answered(Offset(10), Offset(10), 1_000)
    board, status = board_of(Mirrored(MirrorState.MIRRORING, level))
    status.put_off_at_ms = 60_000
    found = read(board, 61_000)
    assert found['twinlog_mirror_lag_seconds{mirror="m"}'] == 60
    assert found['twinlog_mirror_source_silent_seconds{mirror="m"}'] == 1


def test_a_source_that_has_never_answered_is_dark_since_the_mirror_was_begun() -> None:
    board, _ = board_of(Mirrored(MirrorState.LOG_ALIGNMENT), begun_at_ms=10_000)
    found = read(board, 40_000)
    assert found['twinlog_mirror_lag_seconds{mirror="m"}'] == 30
    assert found['twinlog_mirror_source_silent_seconds{mirror="m"}'] == 30
    assert found['twinlog_mirror_lag_records{mirror="m"}'] == 0


def test_what_is_stopped_does_not_lag() -> None:
    board, _ = board_of(Mirrored(MirrorState.STOPPED, lagging(40, 10, 5_000)))
    found = read(board, 900_000)
    assert found['twinlog_mirror_lag_seconds{mirror="m"}'] == 0
    assert 'twinlog_mirror_source_silent_seconds{mirror="m"}' not in found


def test_the_throttle_is_told_where_there_is_one() -> None:
    board, status = board_of(Mirrored(MirrorState.MIRRORING))
    status.throttled = frozenset({TopicPartition(NAME, 0)})
    found = read(board, 0)
    assert found['twinlog_mirror_throttled_partitions{mirror="m"}'] == 1
    assert "twinlog_mirror_throttled_rate_bytes" not in found
    board.throttle.set_rate(1_000, 0)
    assert read(board, 0)["twinlog_mirror_throttled_rate_bytes"] == 1_000


def test_a_source_that_is_not_asked_because_of_the_throttle_is_not_called_silent() -> None:
    partitions = [Mirrored(MirrorState.MIRRORING, lagging(40, 10, 5_000)) for _ in range(2)]
    board, status = board_of(*partitions)
    silent = 'twinlog_mirror_source_silent_seconds{mirror="m"}'
    status.throttled = frozenset(status.partitions)
    assert read(board, 65_000)[silent] == 60
    board.throttle.set_rate(0, 0)
    assert silent not in read(board, 65_000)
    status.throttled = frozenset({TopicPartition(NAME, 0)})
    assert read(board, 65_000)[silent] == 60, "the other one is asked"


def test_losses_are_told_with_their_cause_and_errors_with_their_task() -> None:
    board, status = board_of()
    status.counts.losses[LossKind.GAP] += 1
    status.counts.lost_records[LossKind.GAP] += 50
    board.task_failed(status, GROUPS, "no answer")
    found = read(board, 0)
    assert found['twinlog_mirror_losses_total{mirror="m",cause="gap"}'] == 1
    assert found['twinlog_mirror_lost_records_total{mirror="m",cause="gap"}'] == 50
    assert found['twinlog_mirror_losses_total{mirror="m",cause="truncation"}'] == 0
    assert found[f"{MANAGER}_consumergroupoffsetsyncerror_total"] == 1
    assert found['twinlog_mirror_sync_errors_total{mirror="m",task="group offsets"}'] == 1
    board.end("m", is_deleted=True)
    assert read(board, 0)[f"{MANAGER}_consumergroupoffsetsyncerror_total"] == 1


async def test_a_mirror_at_work_is_told(tmp_path: Path) -> None:
    async with mirrored_pair(tmp_path, {"monitoring.listener": "http://127.0.0.1:0"}) as pair:
        await pair.make_topic("orders")
        await pair.produce("orders", 5)
        await pair.create()
        await pair.start("orders")
        await pair.until_level("orders")
        found = await metrics_of(pair)
        bytes_here = len(pair.bytes_of(pair.destination, "orders"))
        assert found['twinlog_mirror_fetch_bytes_total{mirror="m"}'] == bytes_here
        replicated = "kafka_server_brokertopicmetrics_replicationbytesin_total"
        assert found[f'{replicated}{{topic="orders"}}'] == bytes_here
        assert found['twinlog_mirror_fetch_requests_total{mirror="m"}'] > 0
        assert found['twinlog_mirror_coordinator_partitions{state="active"}'] == 2

        async def is_level() -> bool:
            now = await metrics_of(pair)
            return now['twinlog_mirror_partitions{mirror="m",state="MIRRORING"}'] == 1

        await until(is_level)


async def metrics_of(pair: Pair) -> dict[str, float]:
    listener = pair.destination.server.metrics_listener
    assert listener is not None
    return samples((await http_get(listener.port, "/metrics")).body)
