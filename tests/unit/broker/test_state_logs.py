from pathlib import Path

from support.batches import batch
from twinlog.broker.partition_news import PartitionNews
from twinlog.broker.partitions import Partition
from twinlog.broker.state_logs import PartitionStateLog
from twinlog.broker.waiting import Waiting
from twinlog.model.ids import NO_TOPIC_ID, BrokerId, LeaderEpoch, Offset, TopicName, TopicPartition
from twinlog.replication.fetch_sessions import FetchSessions
from twinlog.replication.leader import LeaderReplica
from twinlog.storage.logs import Logs
from twinlog.storage.settings import LogSettings
from twinlog.wire.records.batch import iter_headers

OF = TopicPartition(TopicName("__mirror_state"), 0)
ME = BrokerId(1)


def test_what_a_coordinator_appends_it_reads_back_in_chunks_of_whole_batches(
    tmp_path: Path,
) -> None:
    log = Logs([str(tmp_path)]).create(OF, NO_TOPIC_ID, LogSettings())
    replica = LeaderReplica(
        ME,
        leader_epoch=LeaderEpoch(3),
        replicas=[ME],
        isr=[ME],
        log_start=log.start,
        log_end=log.end,
        high_watermark=log.end,
        now_ms=0,
    )
    news = PartitionNews(Waiting(), FetchSessions(1, lambda: 1))
    state_log = PartitionStateLog(Partition(OF, NO_TOPIC_ID, log, replica, news))
    for _ in range(4):
        state_log.append(batch(2, value_bytes=200), now_ms=1_000)
    assert (state_log.of, state_log.start) == (OF, 0)
    assert state_log.end == state_log.high_watermark == 8
    seen: list[int] = []
    at = Offset(0)
    while at < state_log.end:
        chunk = state_log.read(at, max_bytes=1)
        headers = [header for _, header in iter_headers(chunk)]
        assert headers, "a chunk has at least one whole batch"
        assert {header.leader_epoch for header in headers} == {3}
        seen += [header.base_offset for header in headers]
        at = Offset(headers[-1].next_offset)
    assert seen == [0, 2, 4, 6]
    assert state_log.read(state_log.end, max_bytes=1) == b""
