"""The verbs of topics: flags, what is asked of the broker, what is printed, exit codes."""

from uuid import UUID

import pytest

from support.answering_broker import AnsweringBroker
from support.commands import Ran, run_command
from twinlog.wire.messages import topics
from twinlog.wire.messages.configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsResponse,
    DescribedConfig,
    DescribedResource,
)
from twinlog.wire.messages.metadata import (
    METADATA,
    MetadataPartition,
    MetadataRequest,
    MetadataTopic,
)


def topics_command(broker: AnsweringBroker, *arguments: str) -> Ran:
    return run_command(["topics", "--bootstrap-server", broker.bootstrap, *arguments])


def created(code: int = 0, why: str | None = None) -> topics.CreateTopicsResponse:
    row = topics.CreatedTopic(name="a", error_code=code, error_message=why)
    return topics.CreateTopicsResponse(topics=(row,))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--create"], "--create needs --topic NAME"),
        (["--alter", "--topic", "a"], "--alter needs --partitions N"),
        (["--create", "--topic", "a", "--partitions", "0"], "--partitions must be at least 1"),
        (["--create", "--topic", "a", "--replication-factor", "-1"], "--replication-factor must"),
        (["--create", "--topic", "a", "--config", "x"], "'x' is not key=value"),
        (["--list", "--config", "x=1"], "--config goes with --create only"),
        (["--list", "--topic", "("], "missing ), unterminated subpattern"),
    ],
    ids=str,
)
def test_flags_that_do_not_fit_are_code_2_and_ask_nothing(
    broker: AnsweringBroker, arguments: list[str], message: str
) -> None:
    ran = topics_command(broker, *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert broker.asked == []


def test_create_passes_numbers_and_settings(broker: AnsweringBroker) -> None:
    broker.on(topics.CREATE_TOPICS, created())
    ran = topics_command(
        broker,
        *("--create", "--topic", "a", "--partitions", "3", "--replication-factor", "1"),
        *("--config", "retention.ms=5", "--config", "cleanup.policy=compact"),
    )
    assert (ran.code, ran.out) == (0, "Created topic a.\n")
    (asked,) = broker.asked_for(topics.CreateTopicsRequest)
    (topic,) = asked.topics
    assert (topic.name, topic.num_partitions, topic.replication_factor) == ("a", 3, 1)
    assert [(c.name, c.value) for c in topic.configs] == [
        ("retention.ms", "5"),
        ("cleanup.policy", "compact"),
    ]


def test_numbers_that_are_not_given_are_left_to_the_broker(broker: AnsweringBroker) -> None:
    broker.on(topics.CREATE_TOPICS, created())
    topics_command(broker, "--create", "--topic", "a")
    (asked,) = broker.asked_for(topics.CreateTopicsRequest)
    assert (asked.topics[0].num_partitions, asked.topics[0].replication_factor) == (-1, -1)


def test_an_existing_topic_is_an_error_unless_it_may_be(broker: AnsweringBroker) -> None:
    broker.on(topics.CREATE_TOPICS, created(36, "Topic 'a' already exists."))
    ran = topics_command(broker, "--create", "--topic", "a")
    assert ran.code == 1
    assert ran.err == (
        "twinlog topics: topic a was not created: Topic 'a' already exists "
        "(TOPIC_ALREADY_EXISTS). Choose another name, or pass --if-not-exists.\n"
    )
    ran = topics_command(broker, "--create", "--topic", "a", "--if-not-exists")
    assert (ran.code, ran.out, ran.err) == (0, "", "")


def test_list_is_sorted_and_can_be_narrowed(broker: AnsweringBroker) -> None:
    broker.logs = {(name, 0): b"" for name in ("b", "a", "__consumer_offsets")}
    assert topics_command(broker, "--list").out == "__consumer_offsets\na\nb\n"
    assert topics_command(broker, "--list", "--exclude-internal").out == "a\nb\n"
    assert topics_command(broker, "--list", "--topic", "[ab]").out == "a\nb\n"


def with_topic(broker: AnsweringBroker) -> None:
    """Let there be a topic of two partitions: one lacks a replica, the other its leader."""
    broker.logs["a", 0] = b""
    told = broker._metadata(MetadataRequest(topics=None))
    topic = MetadataTopic(
        name="a",
        topic_id=UUID(int=1),
        partitions=(
            MetadataPartition(
                partition_index=1, leader_id=-1, replica_nodes=(5, 6), isr_nodes=(5, 6)
            ),
            MetadataPartition(partition_index=0, leader_id=5, replica_nodes=(5, 6), isr_nodes=(5,)),
        ),
    )
    told.topics = (topic,)  # type: ignore[misc]
    broker.on(METADATA, told)
    configs = (
        DescribedConfig(name="retention.ms", value="5", config_source=1),
        DescribedConfig(name="cleanup.policy", value="compact", config_source=1),
        DescribedConfig(name="segment.ms", value="7", config_source=5),
    )
    resource = DescribedResource(resource_type=2, resource_name="a", configs=configs)
    broker.on(DESCRIBE_CONFIGS, DescribeConfigsResponse(results=(resource,)))


def test_describe_tells_a_topic_as_kafka_does(broker: AnsweringBroker) -> None:
    with_topic(broker)
    ran = topics_command(broker, "--describe", "--topic", "a")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "Topic: a\tTopicId: AAAAAAAAAAAAAAAAAAAAAQ\tPartitionCount: 2\tReplicationFactor: 2"
        "\tConfigs: cleanup.policy=compact,retention.ms=5",
        "\tTopic: a\tPartition: 0\tLeader: 5\tReplicas: 5,6\tIsr: 5",
        "\tTopic: a\tPartition: 1\tLeader: none\tReplicas: 5,6\tIsr: 5,6",
    ]


def test_describe_can_be_narrowed_to_what_is_wrong(broker: AnsweringBroker) -> None:
    with_topic(broker)
    under = topics_command(broker, "--describe", "--under-replicated-partitions").out
    assert "Partition: 0" in under
    assert "Partition: 1" not in under
    lost = topics_command(broker, "--describe", "--unavailable-partitions").out
    assert "Partition: 1" in lost
    assert "Topic: a\tTopicId" not in lost
    overridden = topics_command(broker, "--describe", "--topics-with-overrides").out
    assert "retention.ms=5" in overridden
    assert "Partition: " not in overridden


def test_a_topic_that_is_not_there_is_told_unless_it_may_be(broker: AnsweringBroker) -> None:
    for verb in (("--describe",), ("--delete",), ("--alter", "--partitions", "2")):
        ran = topics_command(broker, *verb, "--topic", "x")
        assert (ran.code, ran.out) == (1, "")
        assert "topic x does not exist. See which there are with" in ran.err
        ran = topics_command(broker, *verb, "--topic", "x", "--if-exists")
        assert (ran.code, ran.err) == (0, "")


def test_describe_of_no_topics_is_no_error(broker: AnsweringBroker) -> None:
    assert topics_command(broker, "--describe").code == 0


def test_alter_asks_for_more_partitions(broker: AnsweringBroker) -> None:
    broker.logs["a", 0] = b""
    row = topics.CreatePartitionsResult(name="a", error_code=37, error_message="it has 4 already")
    broker.on(topics.CREATE_PARTITIONS, topics.CreatePartitionsResponse(results=(row,)))
    ran = topics_command(broker, "--alter", "--topic", "a", "--partitions", "2")
    assert ran.code == 1
    assert ran.err == (
        "topic a: it has 4 already (INVALID_PARTITIONS). "
        "Give --partitions, more than there are now.\n"
    )
    (asked,) = broker.asked_for(topics.CreatePartitionsRequest)
    assert [(t.name, t.count) for t in asked.topics] == [("a", 2)]


def test_delete_deletes_all_that_match(broker: AnsweringBroker) -> None:
    broker.logs = {(name, 0): b"" for name in ("a1", "a2", "b")}
    rows = tuple(topics.DeletedTopic(name=name) for name in ("a1", "a2"))
    broker.on(topics.DELETE_TOPICS, topics.DeleteTopicsResponse(responses=rows))
    ran = topics_command(broker, "--delete", "--topic", "a.")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    (asked,) = broker.asked_for(topics.DeleteTopicsRequest)
    assert [topic.name for topic in asked.topics] == ["a1", "a2"]
