"""What settings decide for the partitions of a mirror."""

from uuid import UUID

from twinlog.broker.mirrors.policies import policy_of, throttled_partitions
from twinlog.cluster.facts import PartitionFact, TopicFact
from twinlog.config.broker import BROKER
from twinlog.config.declare import Settings, Source
from twinlog.config.mirror import mirror_settings
from twinlog.mirroring.policy import FROM_EARLIEST, GapPolicy, StartSpec
from twinlog.model.ids import BrokerId, LeaderEpoch, TopicId, TopicName, TopicPartition

ME = BrokerId(1)
LED = PartitionFact(ME, LeaderEpoch(0), (ME,), (ME,))
BROKERS = Settings.of(
    BROKER, {"mirror.failed.retry.max.attempts": "3"}, source=Source.STATIC_BROKER, origin=""
)


def topic(**config: str) -> TopicFact:
    given = {key.replace("_", "."): value for key, value in config.items()}
    return TopicFact(TopicName("t"), TopicId(UUID(int=7)), (LED, LED), given)


def test_a_policy_is_of_the_mirror_the_broker_and_the_topic() -> None:
    mirror = mirror_settings(
        {
            "bootstrap.servers": "a:1",
            "mirror.gap.policy": "fail",
            "mirror.start.offset.spec": "latest",
        }
    )
    unclean = topic(mirror_support_unclean_leader_election="true")
    first = policy_of(unclean, mirror, BROKERS, is_first=True)
    assert (first.gap, first.supports_unclean_election) == (GapPolicy.FAIL, True)
    assert first.failed.attempts_max == 3
    assert first.start == StartSpec("latest", -1)
    later = policy_of(topic(), mirror, BROKERS, is_first=False)
    assert (later.supports_unclean_election, later.start) == (False, FROM_EARLIEST)


def test_the_partitions_that_a_topic_names_for_this_broker_are_throttled() -> None:
    key = "mirror_replication_throttled_replicas"
    both = {TopicPartition(TopicName("t"), index) for index in (0, 1)}
    assert set(throttled_partitions(topic(**{key: "*"}), BROKERS, ME)) == both
    named = list(throttled_partitions(topic(**{key: "0:2,1:1"}), BROKERS, ME))
    assert named == [TopicPartition(TopicName("t"), 1)]
    assert list(throttled_partitions(topic(), BROKERS, ME)) == []
