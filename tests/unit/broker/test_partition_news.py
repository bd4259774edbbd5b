import asyncio

from twinlog.broker.partition_news import PartitionNews
from twinlog.broker.waiting import Waiting
from twinlog.model.ids import NO_TOPIC_ID, TopicName, TopicPartition
from twinlog.replication.fetch_sessions import FetchSessions
from twinlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

OF = TopicPartition(TopicName("t"), 3)


async def test_who_waits_for_the_partition_and_who_keeps_a_session_are_both_woken() -> None:
    waiting, sessions = Waiting(), FetchSessions(10, lambda: 5)
    asked = FetchPartition(partition=3, fetch_offset=0, partition_max_bytes=1)
    request = FetchRequest(
        max_wait_ms=1,
        min_bytes=1,
        session_epoch=0,
        topics=(FetchTopic(topic="t", partitions=(asked,)),),
    )
    session = sessions.begin(request, uses_topic_ids=False, is_follower=False, now_ms=0).session
    session.ready.clear()
    keys = (OF, session)
    waits = [asyncio.ensure_future(waiting.notice((key,), timeout_s=60)) for key in keys]
    await asyncio.sleep(0)
    PartitionNews(waiting, sessions).tell(OF, NO_TOPIC_ID)
    assert await asyncio.gather(*waits) == [True, True]
    assert len(session.ready) == 1
