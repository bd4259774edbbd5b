"""Reads which topics a consumer subscribed to, from what it said when it joined."""

from twinlog.model.errors import WireError
from twinlog.model.ids import TopicName
from twinlog.wire.codec import decode_from
from twinlog.wire.primitives import Int16
from twinlog.wire.schema import message

CONSUMER_PROTOCOL = "consumer"


@message
class SubscriptionHead:
    """The part that every version of Kafka's ConsumerProtocolSubscription begins with."""

    version: Int16
    topics: tuple[str, ...]


def subscribed_topics(metadata: bytes) -> frozenset[TopicName] | None:
    """Give the topics of one member; None when its metadata is not a consumer's subscription."""
    try:
        head, _ = decode_from(SubscriptionHead, metadata, 0, flexible=False)
    except WireError:
        return None
    return frozenset(TopicName(topic) for topic in head.topics)
