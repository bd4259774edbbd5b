from pathlib import Path

import pytest

from support.brokers import local_broker
from twinlog.broker.clock import Clock
from twinlog.broker.facts import Facts
from twinlog.broker.new_topics import NewTopics
from twinlog.broker.waiting import Waiting
from twinlog.cluster.changes import BrokerConfigSet, BrokerSet
from twinlog.cluster.facts import BrokerFact
from twinlog.cluster.image import ClusterImage
from twinlog.cluster.topics import TopicWish
from twinlog.config.broker import BROKER
from twinlog.config.declare import Settings
from twinlog.metastore.memory import open_memory_store
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import BrokerId

IMAGE = ClusterImage().with_change(BrokerSet(BrokerFact(BrokerId(1), "localhost", 9092)))


def new_topics(image: ClusterImage = IMAGE, **settings: str) -> NewTopics:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    facts = Facts(open_memory_store(lambda: 0), Waiting())
    facts.image = image
    return NewTopics(facts, Settings.of(BROKER, given), Clock())


async def test_what_a_wish_leaves_open_is_the_brokers_default() -> None:
    made = new_topics(num_partitions="7").plan(IMAGE, TopicWish("t")).topic
    assert len(made.partitions) == 7
    asked = new_topics(num_partitions="7").plan(IMAGE, TopicWish("t", 2)).topic
    assert len(asked.partitions) == 2


async def test_what_was_set_at_run_time_counts_more_than_the_brokers_file() -> None:
    for of in (None, BrokerId(1)):
        image = IMAGE.with_change(BrokerConfigSet(of, {"num.partitions": "3"}))
        topics = new_topics(image, node_id="1", num_partitions="7")
        assert len(topics.plan(image, TopicWish("t")).topic.partitions) == 3


async def test_each_topic_gets_an_id_of_its_own() -> None:
    topics = new_topics()
    ids = {topics.plan(IMAGE, TopicWish(f"t{i}")).topic.id for i in range(50)}
    assert len(ids) == 50


async def test_a_config_that_no_topic_can_have_is_refused_before_anything_is_made() -> None:
    wish = TopicWish("t", config={"retention.ms": "soon"})
    with pytest.raises(ApiError, match=r"retention\.ms=soon") as info:
        new_topics().plan(IMAGE, wish)
    assert info.value.code == ErrorCode.INVALID_CONFIG


async def test_an_internal_topic_is_made_once_however_many_ask(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        made = await broker.make_topic("t")
        again = await broker.make_topic("t")
        assert made.topic_id == again.topic_id
