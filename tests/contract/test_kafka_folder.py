"""A log dir is Kafka's and ours alike: Kafka's is opened here, and opened by Kafka again."""

import time
from pathlib import Path
from uuid import UUID

import pytest

from support.batches import batch
from support.kafka_install import KAFKA_4, require
from support.kafka_node import KafkaNode
from support.logs import read_all
from support.source_data import fill
from twinlog.storage.logs import Logs
from twinlog.storage.settings import LogSettings
from twinlog.wire.records.batch import iter_headers

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
SETTINGS = LogSettings(retention_ms=-1)


@pytest.fixture
def node(tmp_path: Path) -> KafkaNode:
    require(KAFKA_4)
    return KafkaNode(tmp_path / "kafka", settings={"log.segment.bytes": "1048576"})


def test_kafkas_folder_is_ours_after_a_kill_and_kafkas_again_after_our_stop(
    node: KafkaNode,
) -> None:
    node.start()
    try:
        fill(node)
        cluster_id = node.cluster_id
        node.kill()
        grown = _read_and_extend(node, cluster_id)
        node.start()
        for (topic, partition), (start, end) in grown.items():
            assert node.offsets(topic, partition) == (start, end), f"{topic}-{partition}"
    finally:
        node.stop()


def _read_and_extend(node: KafkaNode, cluster_id: str) -> dict[tuple[str, int], tuple[int, int]]:
    """Compare every log with Kafka's files, add a batch to each, stop cleanly; give their spans."""
    logs = Logs([str(node.log_folder)])
    grown: dict[tuple[str, int], tuple[int, int]] = {}
    try:
        logs.claim(cluster_id, 1, lambda: UUID(int=1))
        logs.load(lambda of: SETTINGS, now_ms=0)
        assert not logs.was_clean
        assert logs.offline == {}
        assert len(logs) > 5
        for log in logs:
            folder = node.partition_folder(log.of.topic, log.of.partition)
            kafkas = b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))
            seen = [one for one in iter_headers(kafkas) if one[1].last_offset >= log.start]
            assert read_all(log) == (kafkas[seen[0][0] :] if seen else b"")
            assert log.cut_bytes == 0
            topic_id = logs.topic_id_of(log.of)
            assert topic_id is not None
            assert topic_id.int != 0
            if log.of.topic.startswith("__") or log.open_transactions():
                continue
            epoch = max(log.epochs.latest, 0)
            now_ms = int(time.time() * 1_000)
            content = batch(3, timestamp=now_ms)
            log.append_as_leader(content, leader_epoch=epoch, now_ms=now_ms)
            grown[log.of.topic, log.of.partition] = (log.start, log.end)
    finally:
        logs.close(is_clean=True, broker_epoch=logs.last_broker_epoch)
    return grown
