from support.clusters import image_with, mirrored, topic
from twinlog.cluster.facts import DesiredState
from twinlog.model.ids import TopicName


def test_a_mirror_topic_is_read_only_until_it_is_asked_to_stop() -> None:
    for state, mirror in [
        (DesiredState.MIRRORING, "m"),
        (DesiredState.PAUSED, "m"),
        (DesiredState.STOPPED, None),
    ]:
        image = image_with(topic(), mirrored("orders", "m", state))
        assert image.topics[TopicName("orders")].read_only_for == mirror


def test_topics_of_the_broker_itself_are_internal() -> None:
    image = image_with(topic("__consumer_offsets"), topic("__mine", 2))
    assert image.topics[TopicName("__consumer_offsets")].is_internal
    assert not image.topics[TopicName("__mine")].is_internal
