"""Kafka's settings that have no effect here are told from mistakes."""

import pytest

from twinlog.config.broker import BROKER
from twinlog.config.foreign import (
    is_foreign_to_a_mirror,
    is_foreign_to_a_topic,
    is_foreign_to_the_broker,
)
from twinlog.config.mirror import MIRROR
from twinlog.config.topic import TOPIC


@pytest.mark.parametrize(
    "name",
    [
        "zookeeper.connect",
        "process.roles",
        "controller.quorum.voters",
        "num.network.threads",
        "num.io.threads",
        "group.coordinator.rebalance.protocols",
        "group.share.max.size",
        "transaction.state.log.min.isr",
        "ssl.keystore.location",
        "listener.name.internal.ssl.keystore.password",
        "authorizer.class.name",
        "allow.everyone.if.no.acl.found",
        "log.cleaner.threads",
        "auto.leader.rebalance.enable",
        "super.users",
    ],
)
def test_the_broker_settings_of_kafka_are_known(name: str) -> None:
    assert is_foreign_to_the_broker(name)


@pytest.mark.parametrize(
    "name",
    [
        "num.partitons",
        "log.retention.msec",
        "offsets.topic.num.partition",
        "log.dris",
        "nodeid",
        "listener",
        "",
    ],
)
def test_mistakes_are_no_settings_of_kafka(name: str) -> None:
    assert not is_foreign_to_the_broker(name)


def test_topics_of_older_kafkas_keep_their_settings() -> None:
    assert is_foreign_to_a_topic("message.format.version")
    assert is_foreign_to_a_topic("remote.storage.enable")
    assert not is_foreign_to_a_topic("retention.mss")


def test_a_mirror_may_be_given_what_clients_are_given() -> None:
    assert is_foreign_to_a_mirror("ssl.truststore.password")
    assert is_foreign_to_a_mirror("sasl.kerberos.service.name")
    assert not is_foreign_to_a_mirror("topic.include")


def test_no_setting_of_ours_is_called_foreign() -> None:
    for declared in (BROKER, TOPIC, MIRROR):
        own = [s.name for s in declared.settings if declared.is_foreign(s.name)]
        assert set(own) <= {"controller.listener.names"}
